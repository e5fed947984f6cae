import { allow, boolean, emptyable, mergeMetadata, required } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { invalid } from '../errors.mjs';
import { newId } from '../ids.mjs';
import { EVENT_TYPES } from '../event_types.mjs';
import { checkVersion } from '../versions.mjs';

const MAX_ENDPOINTS = 16;

export function webhookEndpointView(ledger, endpoint) {
  if (endpoint.deleted) return { id: endpoint.id, object: 'webhook_endpoint', deleted: true };
  return {
    id: endpoint.id,
    object: 'webhook_endpoint',
    api_version: endpoint.api_version,
    application: null,
    created: endpoint.created,
    description: endpoint.description,
    enabled_events: endpoint.enabled_events,
    livemode: ledger.livemode,
    metadata: endpoint.metadata,
    status: endpoint.status,
    url: endpoint.url,
  };
}

export function newSecret() {
  return newId('whsec', 32);
}

/** Creates an endpoint. Only this response has the secret. */
function create({ ledger, params }) {
  allow(params, ['url', 'enabled_events', 'api_version', 'description', 'metadata', 'connect', 'expand']);
  if (ledger.webhook_endpoints.all().filter(({ deleted }) => !deleted).length >= MAX_ENDPOINTS) {
    throw invalid(`You have reached the maximum of ${MAX_ENDPOINTS} test webhook endpoints.`);
  }
  const secret = newSecret();
  const endpoint = ledger.insert('we', {
    url: checkUrl(ledger, required(params, 'url')),
    enabled_events: checkEvents(required(params, 'enabled_events')),
    api_version: params.api_version ? checkVersion(params.api_version) : null,
    description: params.description || null,
    metadata: mergeMetadata({}, params.metadata),
    status: 'enabled',
    secrets: [{ value: secret, expires_at: null }],
    is_thin: false,
  });
  return { raw: { ...webhookEndpointView(ledger, endpoint), secret } };
}

function checkUrl(ledger, url) {
  if (!/^https?:\/\/\S+$/.test(url)) throw invalid('Not a valid URL', { code: 'url_invalid', param: 'url' });
  if (ledger.livemode && !url.startsWith('https://')) {
    throw invalid('Invalid URL: URL must begin with https:// in live mode', { code: 'url_invalid', param: 'url' });
  }
  return url;
}

function checkEvents(names) {
  names.forEach((name, at) => {
    if (name !== '*' && !EVENT_TYPES.has(name)) {
      throw invalid(`Invalid enabled_events[${at}]: ${name} is not an event type of this stand-in.`, {
        param: `enabled_events[${at}]`,
      });
    }
  });
  return names;
}

function update({ ledger, params, path }) {
  allow(params, ['url', 'enabled_events', 'description', 'metadata', 'disabled', 'expand']);
  const endpoint = find(ledger, path.id);
  const disabled = boolean(params.disabled, 'disabled');
  return Object.assign(endpoint, {
    url: params.url ? checkUrl(ledger, params.url) : endpoint.url,
    enabled_events: params.enabled_events ? checkEvents(params.enabled_events) : endpoint.enabled_events,
    description: emptyable(params.description, endpoint.description),
    metadata: mergeMetadata(endpoint.metadata, params.metadata),
    status: disabled === undefined ? endpoint.status : disabled ? 'disabled' : 'enabled',
  });
}

function find(ledger, id) {
  const endpoint = ledger.get('webhook_endpoint', id);
  if (endpoint.deleted)
    throw invalid(`No such webhook endpoint: '${id}'`, { code: 'resource_missing', param: 'webhook_endpoint' }, 404);
  return endpoint;
}

function remove({ ledger, path }) {
  return Object.assign(find(ledger, path.id), { deleted: true });
}

export const webhookEndpointRoutes = [
  ['POST', '/v1/webhook_endpoints', create],
  ['GET', '/v1/webhook_endpoints', ({ ledger, params }) => listPage(ledger.webhook_endpoints, '/v1/webhook_endpoints', params)],
  ['GET', '/v1/webhook_endpoints/:id', ({ ledger, path }) => find(ledger, path.id)],
  ['POST', '/v1/webhook_endpoints/:id', update],
  ['DELETE', '/v1/webhook_endpoints/:id', remove],
];
