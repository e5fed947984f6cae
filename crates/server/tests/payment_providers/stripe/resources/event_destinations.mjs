// Destinations of thin events. This API takes and returns JSON.

import { required } from '../params.mjs';
import { invalid } from '../errors.mjs';
import { newSecret } from './webhook_endpoints.mjs';

export function eventDestinationView(ledger, destination, { hasSecret = false } = {}) {
  const time = new Date(destination.created * 1000).toISOString();
  return {
    id: destination.id,
    object: 'v2.core.event_destination',
    created: time,
    description: destination.description,
    enabled_events: destination.enabled_events,
    event_payload: 'thin',
    livemode: ledger.livemode,
    metadata: {},
    name: destination.name,
    status: destination.status,
    type: 'webhook_endpoint',
    updated: time,
    webhook_endpoint: {
      url: destination.url,
      ...(hasSecret ? { signing_secret: destination.secrets[0].value } : {}),
    },
  };
}

function create({ ledger, params }) {
  if (required(params, 'event_payload') !== 'thin' || required(params, 'type') !== 'webhook_endpoint') {
    throw invalid('This stand-in has thin events to webhook endpoints only; see /v1/webhook_endpoints for snapshots.');
  }
  const destination = ledger.insert('ed', {
    name: required(params, 'name'),
    description: params.description ?? '',
    enabled_events: required(params, 'enabled_events'),
    url: required(params.webhook_endpoint ?? {}, 'url'),
    status: 'enabled',
    secrets: [{ value: newSecret(), expires_at: null }],
    is_thin: true,
  });
  const hasSecret = (params.include ?? []).includes('webhook_endpoint.signing_secret');
  return { raw: eventDestinationView(ledger, destination, { hasSecret }) };
}

function remove({ ledger, path }) {
  const destination = ledger.get('v2.core.event_destination', path.id);
  destination.deleted = true;
  return { raw: { id: destination.id, object: destination.object } };
}

function list({ ledger }) {
  const data = ledger.event_destinations
    .all()
    .filter(({ deleted }) => !deleted)
    .map((record) => eventDestinationView(ledger, record));
  return { raw: { data, next_page_url: null, previous_page_url: null } };
}

export const eventDestinationRoutes = [
  ['POST', '/v2/core/event_destinations', create],
  ['GET', '/v2/core/event_destinations', list],
  ['GET', '/v2/core/event_destinations/:id', ({ ledger, path }) => ledger.get('v2.core.event_destination', path.id)],
  ['DELETE', '/v2/core/event_destinations/:id', remove],
];
