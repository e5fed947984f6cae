// The control API of the Stripe stand-in. `?mode=live` selects the live ledger.

import { advanceClock } from '../stand_in/advance.mjs';
import { controlHandler, sharedRoutes } from '../stand_in/control.mjs';
import { completeSession } from './billing/checkout.mjs';
import { cancelSubscription } from './billing/cancel.mjs';
import { dueAt, renewSubscription, runDue } from './billing/cycle.mjs';
import { payInvoice } from './billing/invoicing.mjs';
import { closeDispute, openDispute, refundCharge } from './billing/payments.mjs';
import { newSecret } from './resources/webhook_endpoints.mjs';
import { loadBulk } from './bulk.mjs';
import { totals } from './totals.mjs';
import { LATEST_VERSION } from './versions.mjs';
import { render } from './views.mjs';

const OUTCOMES = ['succeed', 'fail', 'requires_action'];
const SETTINGS = ['api_version', 'after_retries', 'signing_offset'];

export function stripeControl({ clock, ledgers, outbox, faults, requests, keys, settings }) {
  const advance = (target) => advanceClock(clock, timedRecords(ledgers), target, { dueAt, runDue });
  const ledgerOf = (query) => ledgers[query.get('mode') ?? 'test'];
  const record = (ledger, id) => {
    const found = ledger.find(id);
    if (!found) throw new Error(`no record ${id}`);
    return found;
  };
  const on =
    (action) =>
    ({ path, body, query }) => {
      const ledger = ledgerOf(query);
      const target = record(ledger, path.id);
      const changed = action(ledger, target, body) ?? target;
      return render(ledger, changed, body.api_version ?? LATEST_VERSION);
    };
  return controlHandler([
    ...sharedRoutes({ clock, outbox, faults, requests, advance }),
    [
      'POST',
      '/settings',
      ({ body }) => {
        for (const name of SETTINGS) if (body[name] !== undefined) settings[name] = body[name];
        return settings;
      },
    ],
    [
      'POST',
      '/keys',
      ({ body }) => {
        if (body.revoked) keys.revoke(body.key);
        if (body.permissions) keys.restrict(body.key, body.permissions);
        return {};
      },
    ],
    // A subscription or customer; the choice holds until it is changed. `null` leaves it to the payment method.
    [
      'POST',
      '/payments/:id/outcome',
      on((ledger, { id }, { outcome }) => {
        if (outcome === null) ledger.outcomes.delete(id);
        else if (OUTCOMES.includes(outcome)) ledger.outcomes.set(id, outcome);
        else throw new Error(`outcome must be one of ${OUTCOMES.join(', ')} or null`);
      }),
    ],
    // Starts the next period without moving the clock.
    [
      'POST',
      '/subscriptions/:id/renew',
      on((ledger, subscription, { outcome }) =>
        withOutcome(ledger, subscription, outcome, () => {
          renewSubscription(ledger, subscription);
        }),
      ),
    ],
    // Retries the open invoice; it succeeds unless `outcome` is given.
    [
      'POST',
      '/subscriptions/:id/recover',
      on((ledger, subscription, { outcome = 'succeed' }) => {
        payInvoice(ledger, openInvoice(ledger, subscription), { outcome });
      }),
    ],
    [
      'POST',
      '/subscriptions/:id/cancel',
      on((ledger, subscription, { reason }) => cancelSubscription(ledger, subscription, reason)),
    ],
    [
      'POST',
      '/invoices/:id/refund',
      on((ledger, invoice, { amount }) => refundCharge(ledger, chargeOf(ledger, invoice), { amount })),
    ],
    ['POST', '/invoices/:id/dispute', on((ledger, invoice, body) => openDispute(ledger, chargeOf(ledger, invoice), body))],
    ['POST', '/disputes/:id/close', on((ledger, dispute, { status }) => closeDispute(ledger, dispute, status))],
    ['POST', '/checkout_sessions/:id/complete', on((ledger, session, body) => completeSession(ledger, session, body))],
    [
      'POST',
      '/webhook_endpoints/:id/roll_secret',
      ({ path, body, query }) => {
        const ledger = ledgerOf(query);
        const endpoint = record(ledger, path.id);
        const secret = newSecret();
        for (const old of endpoint.secrets) old.expires_at ??= ledger.now() + (body.expires_in ?? 86_400);
        endpoint.secrets.unshift({ value: secret, expires_at: null });
        return { secret };
      },
    ],
    // Fields that replace those of the object in responses and events: unknown words, missing values. `null` removes them.
    [
      'POST',
      '/objects/:id/overrides',
      on((ledger, target, { fields, event }) => {
        target.overrides = fields ?? undefined;
        if (event) ledger.emit(event, target);
      }),
    ],
    // Records an event of any type for an object, with a new id.
    [
      'POST',
      '/events',
      ({ body, query }) => {
        const ledger = ledgerOf(query);
        const { id, type } = ledger.emit(body.type, record(ledger, body.object));
        return { id, type };
      },
    ],
    [
      'GET',
      '/objects/:id',
      ({ path, query }) => {
        const ledger = ledgerOf(query);
        return render(ledger, record(ledger, path.id), query.get('version') ?? LATEST_VERSION);
      },
    ],
    ['POST', '/bulk', ({ body, query }) => loadBulk(ledgerOf(query), body)],
    ['GET', '/totals', ({ query }) => totals(ledgerOf(query))],
  ]);
}

function* timedRecords(ledgers) {
  for (const ledger of Object.values(ledgers)) {
    for (const name of ['subscriptions', 'invoices', 'checkout_sessions']) {
      for (const record of ledger[name].all()) yield [ledger, record];
    }
  }
}

function withOutcome(ledger, { id }, outcome, run) {
  const previous = ledger.outcomes.get(id);
  if (outcome) ledger.outcomes.set(id, outcome);
  run();
  if (outcome) ledger.outcomes.delete(id);
  if (previous) ledger.outcomes.set(id, previous);
}

function openInvoice(ledger, subscription) {
  const invoice = ledger.invoices.all('subscription', subscription.id).findLast(({ status }) => status === 'open');
  if (!invoice) throw new Error(`${subscription.id} has no open invoice`);
  return invoice;
}

function chargeOf(ledger, invoice) {
  const charge = ledger.charges.get(invoice.charge);
  if (!charge?.paid) throw new Error(`${invoice.id} has no paid charge`);
  return charge;
}
