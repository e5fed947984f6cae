// The HTTP API: authentication, versions, faults, idempotency, routing and expansion.

import { applyFault } from '../stand_in/faults.mjs';
import { CONTROL } from '../stand_in/control.mjs';
import { readBody, sendJson } from '../stand_in/listen.mjs';
import { Router } from '../stand_in/router.mjs';
import { faultError, invalid, StripeError } from './errors.mjs';
import { expand } from './expand.mjs';
import { servePage, servePortal } from './hosted_pages.mjs';
import { newId } from './ids.mjs';
import { Page } from './lists.mjs';
import { parseForm } from './params.mjs';
import { checkVersion } from './versions.mjs';
import { render } from './views.mjs';
import { accountRoutes } from './resources/account.mjs';
import { chargeRoutes } from './resources/charges.mjs';
import { checkoutSessionRoutes } from './resources/checkout_sessions.mjs';
import { cliSessionRoutes, connectCli } from './resources/cli_sessions.mjs';
import { customerRoutes } from './resources/customers.mjs';
import { disputeRoutes } from './resources/disputes.mjs';
import { eventDestinationRoutes } from './resources/event_destinations.mjs';
import { eventRoutes } from './resources/events.mjs';
import { invoiceItemRoutes } from './resources/invoice_items.mjs';
import { invoicePaymentRoutes } from './resources/invoice_payments.mjs';
import { invoiceRoutes } from './resources/invoices.mjs';
import { paymentIntentRoutes } from './resources/payment_intents.mjs';
import { paymentMethodRoutes } from './resources/payment_methods.mjs';
import { portalSessionRoutes } from './resources/billing_portal_sessions.mjs';
import { priceRoutes } from './resources/prices.mjs';
import { productRoutes } from './resources/products.mjs';
import { refundRoutes } from './resources/refunds.mjs';
import { subscriptionRoutes } from './resources/subscriptions.mjs';
import { webhookEndpointRoutes } from './resources/webhook_endpoints.mjs';

const router = new Router([
  ...accountRoutes,
  ...chargeRoutes,
  ...checkoutSessionRoutes,
  ...cliSessionRoutes,
  ...customerRoutes,
  ...disputeRoutes,
  ...eventDestinationRoutes,
  ...eventRoutes,
  ...invoiceItemRoutes,
  ...invoicePaymentRoutes,
  ...invoiceRoutes,
  ...paymentIntentRoutes,
  ...paymentMethodRoutes,
  ...portalSessionRoutes,
  ...priceRoutes,
  ...productRoutes,
  ...refundRoutes,
  ...subscriptionRoutes,
  ...webhookEndpointRoutes,
]);

/** Returns the handler of all requests to the stand-in. */
export function apiHandler({ ledgers, keys, faults, requests, settings, address, control }) {
  const handle = async (request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    if (url.pathname.startsWith(CONTROL)) return control(request, response, url);
    if (url.pathname.startsWith('/c/pay/')) return servePage(request, response, url, ledgers);
    if (url.pathname.startsWith('/p/session/')) return servePortal(request, response, url, address, ledgers);
    const text = (await readBody(request)).toString();
    const { method, headers } = request;
    const call = { method, path: url.pathname, version: headers['stripe-version'] ?? settings.api_version };
    const fault = faults.take(method, url.pathname);
    const found = router.find(method, url.pathname);
    const execute = () => respond({ url, text, headers, call, found, ledgers, keys, settings, address });
    const result = fault && !fault.executes ? undefined : execute();
    const record = (status) =>
      requests.add(found?.pattern ?? url.pathname, {
        ...call,
        query: url.search,
        idempotency_key: headers['idempotency-key'] ?? null,
        status,
      });
    if (fault?.kind === 'status') {
      const error = faultError(fault.status ?? 500, fault.retry_after);
      record(error.status);
      return sendJson(response, error.status, error.body(), { 'request-id': newId('req', 14), ...error.headers });
    }
    if (fault && (await applyFault(fault, response))) return record(fault.kind);
    const { status, body, extra } = result ?? execute();
    record(status);
    // Stripe indents its responses. Long lists are not, because imports read many of them.
    const indent = body.data?.length > 10 ? 0 : 2;
    return sendJson(response, status, body, { 'request-id': newId('req', 14), 'stripe-version': call.version, ...extra }, indent);
  };
  handle.upgrade = (request, socket) => connectCli(request, socket, ledgers);
  return handle;
}

/** Runs a request to its end. Everything is synchronous, so that requests never interleave. */
function respond({ url, text, headers, call, found, ledgers, keys, settings, address }) {
  try {
    const isLive = keys.authenticate(headers.authorization, call.method, call.path, settings.account_id);
    checkVersion(call.version);
    const ledger = isLive ? ledgers.live : ledgers.test;
    if (!found) throw invalid(`Unrecognized request URL (${call.method}: ${call.path}).`, {}, 404);
    const params = parseParams(url, text, headers);
    return once(ledger, call, headers['idempotency-key'], text, () => {
      ledger.request = { id: newId('req', 14), idempotency_key: headers['idempotency-key'] ?? null };
      try {
        const result = found.handler({ ledger, params, path: found.path, version: call.version, address });
        return { status: 200, body: present(ledger, result, params, call.version) };
      } finally {
        ledger.request = undefined;
      }
    });
  } catch (error) {
    if (!(error instanceof StripeError)) throw error;
    return { status: error.status, body: error.body(), extra: error.headers };
  }
}

function parseParams(url, text, headers) {
  const query = parseForm(url.search.slice(1));
  if (text && headers['content-type']?.startsWith('application/json')) return { ...query, ...JSON.parse(text) };
  return { ...query, ...parseForm(text) };
}

function present(ledger, result, params, version) {
  if (result.raw) return result.raw;
  const body =
    result instanceof Page
      ? {
          object: 'list',
          data: result.records.map((record) => render(ledger, record, version)),
          has_more: result.hasMore,
          url: result.url,
        }
      : render(ledger, result, version);
  if (params.expand) expand(ledger, body, Object.values(params.expand), version);
  return body;
}

/** Repeats the stored response to a request with the same Idempotency-Key. Requests that were rejected are not stored. */
function once(ledger, call, key, text, run) {
  if (!key || call.method !== 'POST') return run();
  const fingerprint = `${call.path} ${text}`;
  const stored = ledger.idempotent.get(key);
  if (stored && stored.fingerprint !== fingerprint) {
    throw new StripeError(400, {
      message: `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`,
      type: 'idempotency_error',
    });
  }
  if (stored) return { ...stored.response, extra: { 'idempotent-replayed': 'true', 'idempotency-key': key } };
  let response;
  try {
    response = run();
  } catch (error) {
    if (!(error instanceof StripeError) || error.status !== 402) throw error;
    response = { status: error.status, body: error.body() };
  }
  ledger.idempotent.set(key, { fingerprint, response });
  return { ...response, extra: { 'idempotency-key': key } };
}
