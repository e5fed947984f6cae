// The fixtures of the official Stripe CLI run against the stand-in, offline.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startStandIn, stripeClient } from './processes.mjs';

const run = promisify(execFile);
const cli = fileURLToPath(new URL('../node_modules/@stripe/cli-linux-x64/bin/stripe', import.meta.url));
/** Triggers whose name is that of the event which they record. */
const TRIGGERS = [
  'billing_portal.session.created', 'charge.captured', 'charge.dispute.closed', 'charge.dispute.created', 'charge.failed',
  'charge.refund.updated', 'charge.refunded', 'charge.succeeded', 'checkout.session.completed', 'checkout.session.expired',
  'customer.created', 'customer.deleted', 'customer.subscription.created', 'customer.subscription.deleted',
  'customer.subscription.paused', 'customer.subscription.trial_will_end', 'customer.subscription.updated', 'customer.updated',
  'invoice.created', 'invoice.deleted', 'invoice.finalized', 'invoice.marked_uncollectible', 'invoice.paid',
  'invoice.payment_action_required', 'invoice.payment_failed', 'invoice.payment_succeeded', 'invoice.sent', 'invoice.updated',
  'invoice.voided', 'invoiceitem.created', 'payment_intent.amount_capturable_updated', 'payment_intent.canceled',
  'payment_intent.payment_failed', 'payment_intent.requires_action', 'payment_intent.succeeded', 'payment_method.attached',
  'payment_method.detached', 'price.created', 'price.updated', 'product.created', 'product.deleted', 'product.updated',
];
/** Triggers for an event of another name. */
const OTHER_NAMES = {
  'subscription.payment_failed': 'invoice.payment_failed',
  'subscription.payment_succeeded': 'invoice.payment_succeeded',
};

const { address } = await startStandIn('stripe');

async function latestEvent(type) {
  const { data } = await stripeClient(address).events.list({ type, limit: 1 });
  return data[0]?.id;
}

// The package of the CLI exists for this architecture only.
test('cli_triggers_record_their_events', { skip: process.arch !== 'x64' }, async () => {
  const home = mkdtempSync(join(tmpdir(), 'stripe-cli-'));
  const triggers = [...TRIGGERS.map((name) => [name, name]), ...Object.entries(OTHER_NAMES)];
  for (const [trigger, event] of triggers) {
    const before = await latestEvent(event);
    await run(cli, ['trigger', trigger, '--api-base', address, '--api-key', 'sk_test_judgejudgejudge'], {
      env: { HOME: home, XDG_CONFIG_HOME: home, STRIPE_CLI_TELEMETRY_OPTOUT: '1' },
    });
    const after = await latestEvent(event);
    assert.ok(after && after !== before, `${trigger} recorded no ${event}`);
  }
});
