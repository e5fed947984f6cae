// API keys: the mode that they belong to, and what restricted keys may do.

import { invalid } from './errors.mjs';

/** Resources of restricted keys, by the beginning of the path. */
const PERMISSIONS = [
  ['/v1/account', 'account'],
  ['/v1/billing_portal', 'customer_portal'],
  ['/v1/charges', 'charge'],
  ['/v1/checkout/sessions', 'checkout_session'],
  ['/v1/customers', 'customer'],
  ['/v1/disputes', 'dispute'],
  ['/v1/events', 'event'],
  ['/v1/invoice', 'invoice'],
  ['/v1/payment_intents', 'payment_intent'],
  ['/v1/payment_methods', 'payment_method'],
  ['/v1/prices', 'plan'],
  ['/v1/products', 'product'],
  ['/v1/refunds', 'charge'],
  ['/v1/subscription', 'subscription'],
  ['/v1/webhook_endpoints', 'webhook'],
  ['/v2/core/event_destinations', 'webhook'],
  ['/v2/core/events', 'event'],
];

export class ApiKeys {
  #revoked = new Set();
  #permissions = new Map();

  revoke(key) {
    this.#revoked.add(key);
  }

  /** Limits a restricted key to these permissions: resource → read or write. Other restricted keys may do everything. */
  restrict(key, permissions) {
    this.#permissions.set(key, permissions);
  }

  /** Returns whether the key of a request is a live key, or throws Stripe's error. */
  authenticate(authorization = '', method, path, accountId) {
    const key = readKey(authorization);
    if (!key) {
      throw invalid(
        'You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth.',
        {},
        401,
      );
    }
    const shown = `${key.slice(0, 8)}****${key.slice(-4)}`;
    const mode = /^(?:sk|rk)_(test|live)_\w+$/.exec(key)?.[1];
    if (!mode) throw invalid(`Invalid API Key provided: ${shown}`, {}, 401);
    if (this.#revoked.has(key)) throw invalid(`Expired API Key provided: ${shown}`, { code: 'api_key_expired' }, 401);
    const permissions = this.#permissions.get(key);
    if (permissions && key.startsWith('rk_')) checkPermission(permissions, method, path, shown, accountId);
    return mode === 'live';
  }
}

function readKey(authorization) {
  const [scheme, value = ''] = authorization.split(' ');
  if (scheme === 'Bearer') return value;
  if (scheme === 'Basic') return Buffer.from(value, 'base64').toString().split(':')[0];
  return '';
}

function checkPermission(permissions, method, path, shown, accountId) {
  const resource = PERMISSIONS.find(([prefix]) => path.startsWith(prefix))?.[1];
  const needed = method === 'GET' ? 'read' : 'write';
  const granted = permissions[resource];
  if (granted === 'write' || granted === needed) return;
  throw invalid(
    `The provided key '${shown}' does not have the required permissions for this endpoint on account '${accountId}'. Having the 'rak_${resource}_${needed}' permission would allow this request to continue.`,
    {},
    403,
  );
}
