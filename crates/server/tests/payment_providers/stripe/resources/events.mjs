// Events: snapshots in the shape of an API version, and thin events.

import { boolean } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { missing } from '../errors.mjs';
import { render } from '../views.mjs';

/** Events can be listed for 30 days. */
const EVENT_TTL = 30 * 86_400;
const PATHS = {
  'checkout.session': '/v1/checkout/sessions',
  'billing_portal.session': '/v1/billing_portal/sessions',
};

/** Returns a snapshot event, whose object has the shape of this version. */
export function eventView(ledger, event, version) {
  const object = render(ledger, event.snapshot, version);
  const data = { object };
  if (event.before && event.type.endsWith('.updated')) {
    const before = render(ledger, event.before, version);
    data.previous_attributes = Object.fromEntries(
      Object.entries(before).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(object[name])),
    );
  }
  return {
    id: event.id,
    object: 'event',
    api_version: version,
    created: event.created,
    data,
    livemode: ledger.livemode,
    pending_webhooks: event.pending,
    request: event.request,
    type: event.type,
  };
}

export function thinEventView(ledger, event) {
  const { id, object } = event.snapshot;
  return {
    id: event.id,
    object: 'v2.core.event',
    created: new Date(event.created * 1000).toISOString(),
    livemode: ledger.livemode,
    reason: event.request.id
      ? { type: 'request', request: { id: event.request.id, idempotency_key: event.request.idempotency_key ?? '' } }
      : null,
    related_object: { id, type: object, url: `${PATHS[object] ?? `/v1/${object}s`}/${id}` },
    type: `v1.${event.type}`,
  };
}

function list({ ledger, params }) {
  const oldest = ledger.now() - EVENT_TTL;
  const isType = params.type ? wildcard(params.type) : () => true;
  const delivered = boolean(params.delivery_success, 'delivery_success');
  return listPage(ledger.events, '/v1/events', params, {
    matches: (event) =>
      event.created >= oldest &&
      isType(event.type) &&
      (!params.types || params.types.includes(event.type)) &&
      (delivered === undefined || delivered === (event.pending === 0)),
    also: ['type', 'types', 'delivery_success'],
  });
}

function wildcard(pattern) {
  return pattern.endsWith('*') ? (type) => type.startsWith(pattern.slice(0, -1)) : (type) => type === pattern;
}

function find(ledger, id) {
  const event = ledger.events.get(id);
  if (!event || event.created < ledger.now() - EVENT_TTL) throw missing('event', id);
  return event;
}

export const eventRoutes = [
  ['GET', '/v1/events', list],
  ['GET', '/v1/events/:id', ({ ledger, path }) => find(ledger, path.id)],
  ['GET', '/v2/core/events/:id', ({ ledger, path }) => ({ raw: thinEventView(ledger, find(ledger, path.id)) })],
];
