// The fixtures of the official Stripe CLI run against the stand-in, offline.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startReceiver, startStandIn, stripeClient } from './processes.mjs';

const run = promisify(execFile);
const cli = fileURLToPath(new URL('../node_modules/@stripe/cli-linux-x64/bin/stripe', import.meta.url));
/** Triggers whose name is that of the event which they record. */
const TRIGGERS = [
  'billing_portal.session.created',
  'charge.captured',
  'charge.dispute.closed',
  'charge.dispute.created',
  'charge.failed',
  'charge.refund.updated',
  'charge.refunded',
  'charge.succeeded',
  'checkout.session.completed',
  'checkout.session.expired',
  'customer.created',
  'customer.deleted',
  'customer.subscription.created',
  'customer.subscription.deleted',
  'customer.subscription.paused',
  'customer.subscription.trial_will_end',
  'customer.subscription.updated',
  'customer.updated',
  'invoice.created',
  'invoice.deleted',
  'invoice.finalized',
  'invoice.marked_uncollectible',
  'invoice.paid',
  'invoice.payment_action_required',
  'invoice.payment_failed',
  'invoice.payment_succeeded',
  'invoice.sent',
  'invoice.updated',
  'invoice.voided',
  'invoiceitem.created',
  'payment_intent.amount_capturable_updated',
  'payment_intent.canceled',
  'payment_intent.payment_failed',
  'payment_intent.requires_action',
  'payment_intent.succeeded',
  'payment_method.attached',
  'payment_method.detached',
  'price.created',
  'price.updated',
  'product.created',
  'product.deleted',
  'product.updated',
];
/** Triggers for an event of another name. */
const OTHER_NAMES = {
  'subscription.payment_failed': 'invoice.payment_failed',
  'subscription.payment_succeeded': 'invoice.payment_succeeded',
};

const { address, control } = await startStandIn('stripe');

async function latestEvent(type) {
  const { data } = await stripeClient(address).events.list({ type, limit: 1 });
  return data[0]?.id;
}

const home = mkdtempSync(join(tmpdir(), 'stripe-cli-'));
after(() => rmSync(home, { recursive: true }));

const env = { HOME: home, XDG_CONFIG_HOME: home, STRIPE_API_KEY: 'sk_test_judgejudgejudge', STRIPE_CLI_TELEMETRY_OPTOUT: '1' };

/** Runs a command of the CLI and returns its output. */
async function stripe(...args) {
  const { stdout } = await run(cli, [...args, '--api-base', address], { env });
  return stdout;
}

// The package of the CLI exists for this architecture only.
const skip = process.arch !== 'x64';

test('cli_triggers_record_their_events', { skip }, async () => {
  const triggers = [...TRIGGERS.map((name) => [name, name]), ...Object.entries(OTHER_NAMES)];
  for (const [trigger, event] of triggers) {
    const before = await latestEvent(event);
    await stripe('trigger', trigger);
    const latest = await latestEvent(event);
    assert.ok(latest && latest !== before, `${trigger} recorded no ${event}`);
  }
});

test('cli_commands_fail_refund_and_cancel_a_subscription', { skip }, async () => {
  // Some commands print a sentence before the response.
  const create = async (...args) => {
    const output = await stripe(...args);
    return JSON.parse(output.slice(output.indexOf('{')));
  };
  const product = await create('products', 'create', '--name', 'Pro');
  const price = await create(
    'prices',
    'create',
    '--product',
    product.id,
    '--currency',
    'usd',
    '--unit-amount',
    '1999',
    '-d',
    'recurring[interval]=month',
  );
  const customer = await create(
    'customers',
    'create',
    '--email',
    'cli@example.com',
    '-d',
    'payment_method=pm_card_visa',
    '-d',
    'invoice_settings[default_payment_method]=pm_card_visa',
  );
  const started = await create('subscriptions', 'create', '--customer', customer.id, '-d', `items[0][price]=${price.id}`);
  assert.equal(started.status, 'active');
  const failing = await create('payment_methods', 'attach', 'pm_card_chargeCustomerFail', '--customer', customer.id);
  const late = await create(
    'subscriptions',
    'update',
    started.id,
    '--default-payment-method',
    failing.id,
    '--billing-cycle-anchor',
    'now',
    '--proration-behavior',
    'none',
  );
  assert.equal(late.status, 'past_due');
  const invoice = await create(
    'invoices',
    'pay',
    late.latest_invoice,
    '--payment-method',
    'pm_card_visa',
    '-d',
    'expand[]=payments',
  );
  assert.equal(invoice.status, 'paid');
  const refund = await create('refunds', 'create', '--payment-intent', invoice.payments.data[0].payment.payment_intent);
  assert.equal(refund.amount, invoice.amount_paid);
  const ended = await create('subscriptions', 'cancel', started.id, '--confirm');
  assert.equal(ended.status, 'canceled');
});

test('cli_forwards_events_that_the_sdk_accepts', { skip }, async () => {
  const receiver = await startReceiver();
  const secret = (await stripe('listen', '--print-secret')).trim();
  const listen = ['listen', '--all-snapshot', '--forward-to', receiver.url, '--api-base', address];
  const child = spawn(cli, listen, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  after(() => child.kill());
  for (let output = ''; !output.includes('Ready!'); ) output += (await once(child.stderr, 'data'))[0];
  const client = stripeClient(address);
  const customer = await client.customers.create({ name: 'Forwarded '.repeat(200) });
  await control('POST', '/notifications/settle');
  const [message] = receiver.received;
  const event = client.webhooks.constructEvent(message.body, message.headers['stripe-signature'], secret);
  assert.deepEqual([event.type, event.data.object.id], ['customer.created', customer.id]);
  const [notification] = (await control('GET', '/notifications?state=delivered')).slice(-1);
  assert.equal(notification.status, 200);
});
