// The part of the control API that both stand-ins share: clock, notifications, faults and request counts.

import { Router } from './router.mjs';
import { readBody, sendJson } from './listen.mjs';

export const CONTROL = '/_control';

/** Routes of the control API that depend only on `{ clock, outboxes, faults, requests }`. */
export function sharedRoutes({ clock, outbox, faults, requests, advance }) {
  const clockView = () => ({ now: clock.now() });
  return [
    ['GET', '/clock', clockView],
    [
      'POST',
      '/clock',
      ({ body }) => {
        if (body.freeze) clock.freeze(body.now);
        if (body.freeze === false) clock.unfreeze();
        const target = body.to ?? (body.seconds === undefined ? undefined : clock.now() + body.seconds);
        if (target !== undefined) advance(target);
        return clockView();
      },
    ],
    ['GET', '/notifications', ({ query }) => outbox.list(query.get('state') ?? undefined)],
    [
      'POST',
      '/notifications/mode',
      ({ body }) => {
        if (!['send', 'queue'].includes(body.mode)) throw new Error('mode must be send or queue');
        outbox.mode = body.mode;
        return { mode: outbox.mode };
      },
    ],
    ['POST', '/notifications/deliver', ({ body }) => outbox.deliver(body.ids ?? ids(outbox, 'queued'))],
    ['POST', '/notifications/retry', ({ body }) => outbox.deliver(body.ids ?? ids(outbox, 'failed'))],
    [
      'POST',
      '/notifications/drop',
      ({ body }) => {
        outbox.drop(body.ids ?? ids(outbox, 'queued'));
        return {};
      },
    ],
    [
      'POST',
      '/notifications/settle',
      async () => {
        await outbox.settle();
        return {};
      },
    ],
    ['GET', '/faults', () => faults.list()],
    [
      'POST',
      '/faults',
      ({ body }) => {
        faults.add(body);
        return {};
      },
    ],
    [
      'DELETE',
      '/faults',
      () => {
        faults.clear();
        return {};
      },
    ],
    ['GET', '/requests', () => requests.counts()],
    ['GET', '/requests/recent', () => requests.recent()],
    [
      'DELETE',
      '/requests',
      () => {
        requests.clear();
        return {};
      },
    ],
  ];
}

function ids(outbox, state) {
  return outbox.list(state).map(({ id }) => id);
}

/** Returns the handler of requests below /_control. Bodies are JSON; a rejected request gets 400 and `{ error }`. */
export function controlHandler(routes) {
  const router = new Router(routes);
  return async (request, response, url) => {
    const found = router.find(request.method, url.pathname.slice(CONTROL.length));
    if (!found) return sendJson(response, 404, { error: `no control ${request.method} ${url.pathname}` });
    try {
      const text = (await readBody(request)).toString();
      const body = text ? JSON.parse(text) : {};
      return sendJson(response, 200, await found.handler({ body, query: url.searchParams, path: found.path }));
    } catch (error) {
      return sendJson(response, 400, { error: error.message });
    }
  };
}
