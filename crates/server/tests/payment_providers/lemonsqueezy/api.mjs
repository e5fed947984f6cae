// The HTTP API: authentication, rate limit, faults, routing and JSON:API documents.

import { applyFault } from '../stand_in/faults.mjs';
import { CONTROL } from '../stand_in/control.mjs';
import { readBody, sendJson } from '../stand_in/listen.mjs';
import { Router } from '../stand_in/router.mjs';
import { ApiError, faultError, unprocessable } from './errors.mjs';
import { listPage } from './lists.mjs';
import { servePage } from './checkout_page.mjs';
import { RateLimit } from './rate_limit.mjs';
import { includedRecords, RESOURCES } from './views.mjs';
import { checkoutRoutes } from './resources/checkouts.mjs';
import { customerRoutes } from './resources/customers.mjs';
import { orderRoutes } from './resources/orders.mjs';
import { subscriptionInvoiceRoutes } from './resources/subscription_invoices.mjs';
import { subscriptionRoutes } from './resources/subscriptions.mjs';
import { webhookRoutes } from './resources/webhooks.mjs';

const JSON_API = 'application/vnd.api+json';
const CREATED = new Set(['/v1/customers', '/v1/checkouts', '/v1/webhooks']);

const router = new Router([
  ...Object.keys(RESOURCES).flatMap((type) => [
    ['GET', `/v1/${type}`, ({ list }) => list(type)],
    ['GET', `/v1/${type}/:id`, ({ shop, path }) => shop.get(type, path.id)],
  ]),
  ['GET', '/v1/users/me', ({ shop, address }) => ({ raw: user(shop, address) })],
  ...checkoutRoutes,
  ...customerRoutes,
  ...orderRoutes,
  ...subscriptionInvoiceRoutes,
  ...subscriptionRoutes,
  ...webhookRoutes,
]);

/** Returns the handler of all requests to the stand-in. */
export function apiHandler({ shops, keys, faults, requests, settings, address, view, control }) {
  const limit = new RateLimit();
  return async (request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    if (url.pathname.startsWith(CONTROL)) return control(request, response, url);
    if (url.pathname.startsWith('/checkout/')) return servePage(request, response, url, shops);
    const text = (await readBody(request)).toString();
    const { method, headers } = request;
    const fault = faults.take(method, url.pathname);
    const found = router.find(method, url.pathname);
    const execute = () => respond({ url, text, method, headers, found, shops, keys, settings, address, view, limit });
    const result = fault && !fault.executes ? undefined : execute();
    const record = (status) =>
      requests.add(found?.pattern ?? url.pathname, { method, path: url.pathname, query: url.search, status });
    if (fault?.kind === 'status') {
      const error = faultError(fault.status ?? 500, fault.retry_after);
      record(error.status);
      return sendJson(response, error.status, error.body(), { 'content-type': JSON_API, ...error.headers });
    }
    if (fault && (await applyFault(fault, response))) return record(fault.kind);
    const { status, body, extra } = result ?? execute();
    record(status);
    if (status === 204) return response.writeHead(204, extra).end();
    return sendJson(response, status, body, { 'content-type': JSON_API, ...extra });
  };
}

/** Runs a request to its end. Everything is synchronous, so that requests never interleave. */
function respond({ url, text, method, headers, found, shops, keys, settings, address, view, limit }) {
  let extra = {};
  try {
    const key = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1];
    if (!key || keys.revoked.has(key)) throw new ApiError(401, 'Unauthenticated.');
    extra = limit.take(key, settings.rate_limit);
    checkMediaTypes(method, headers, text);
    if (!found) throw new ApiError(404, 'Not Found');
    const shop = keys.live.has(key) ? shops.live : shops.test;
    const document = text ? (JSON.parse(text).data ?? {}) : {};
    const result = found.handler({
      shop,
      address,
      path: found.path,
      attributes: document.attributes ?? {},
      related: (type, name) => relatedRecord(shop, document, type, name),
      list: (type) => ({ page: listPage(shop, type, url.searchParams, address) }),
    });
    if (result === null) return { status: 204, extra };
    const body = result.raw ?? documentOf(shop, result, url, view);
    return { status: method === 'POST' && CREATED.has(url.pathname) ? 201 : 200, body, extra };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: error.status, body: error.body(), extra: { ...extra, ...error.headers } };
  }
}

function checkMediaTypes(method, headers, text) {
  if (!headers.accept?.includes(JSON_API)) throw new ApiError(406, `The Accept header must be ${JSON_API}.`);
  if (text && method !== 'GET' && !headers['content-type']?.startsWith(JSON_API)) {
    throw new ApiError(415, `The Content-Type header must be ${JSON_API}.`);
  }
}

function relatedRecord(shop, document, type, name) {
  const id = document.relationships?.[name]?.data?.id;
  const record = id === undefined ? undefined : shop.find(type, id);
  if (!record) throw unprocessable(`/data/relationships/${name}`, `The related ${name} does not exist.`);
  return record;
}

function documentOf(shop, result, url, view) {
  const records = result.page ? result.page.records : [result];
  const names = url.searchParams.get('include')?.split(',').filter(Boolean) ?? [];
  const included =
    names.length === 0 ? {} : { included: includedRecords(shop, records, names).map((record) => view(shop, record)) };
  const jsonapi = { version: '1.0' };
  if (result.page) {
    const { meta, links } = result.page;
    return { meta, jsonapi, links, data: records.map((record) => view(shop, record)), ...included };
  }
  const data = view(shop, result);
  return { jsonapi, links: data.links, data, ...included };
}

function user(shop, address) {
  const self = `${address()}/v1/users/1`;
  const time = '2024-01-01T00:00:00.000000Z';
  return {
    meta: { test_mode: shop.testMode },
    jsonapi: { version: '1.0' },
    links: { self },
    data: {
      type: 'users',
      id: '1',
      attributes: {
        name: 'Owner',
        email: 'owner@example.com',
        color: '#898FA9',
        avatar_url: '',
        has_custom_avatar: false,
        createdAt: time,
        updatedAt: time,
      },
      links: { self },
    },
  };
}
