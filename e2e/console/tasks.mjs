// Does the everyday tasks of docs/console.md by clicking and typing only, and again with the keyboard only.
// Each starts at the overview and may take five interactions: a click, a text typed, or a key such as Enter.
import { readFileSync } from 'node:fs';
import { check, only, quick as isQuick, until } from '../harness.mjs';
import { DELIVERY_TIMEOUT, failingEndpoint } from './operations.mjs';
import { change, loaded, openOverview, read } from './session.mjs';
import { stepsOf } from './steps.mjs';

const MAX_INTERACTIONS = 5;

/** The tasks: first those of the documentation, with its words. `--quick` does those that are `quick`. */
const TASKS = [
  {
    name: 'Why is this subscriber past due, and what fixes it?',
    quick: true,
    async run({ page, open, sees }) {
      await open(page.getByRole('link', { name: /^Past due/ }));
      await open(page.locator('main [data-row]').first());
      await sees(/is not paid/);
      await sees(/A completed payment of/);
    },
  },
  {
    name: 'Record the missing payment',
    async run({ page, open, sees, submit }) {
      await open(page.getByRole('link', { name: /^Past due/ }));
      await open(page.locator('main [data-row]').first());
      await open(page.getByRole('button', { name: 'Record payment' }).first());
      await sees(/makes it active/, page.getByRole('dialog'));
      await submit('Record payment');
      const payment = await latestByStaff(page, 'payment.created');
      const path = `/subscription-payments/${payment.subject_id}`;
      const { status, subscription_id } = await read(page, path);
      check(status === 'completed', `the payment is ${status}`);
      await expectStatus(page, 'active', subscription_id);
    },
  },
  {
    name: 'Refund the last payment',
    async prepare(page) {
      const { data } = await read(page, '/payments?status=completed&sort=-created_at&limit=1');
      const subscription = await read(page, `/subscriptions/${data[0].subscription_id}`);
      const { email } = await read(page, `/users/${subscription.user_id}`);
      return { email, payment: data[0].id };
    },
    async run({ page, find, open, submit, prepared }) {
      await find(prepared.email);
      await open(page.getByRole('button', { name: 'Refund' }).first());
      await submit('Record refund');
      const { subject_id } = await latestByStaff(page, 'payment.updated');
      const { status } = await read(page, `/subscription-payments/${subject_id}`);
      check(subject_id === prepared.payment && status === 'refunded', `${subject_id} is ${status}`);
    },
  },
  {
    name: 'Cancel at the end of the period, and undo it',
    quick: true,
    async run({ page, open, sees, submit }) {
      await open(page.getByRole('link', { name: 'Subscriptions', exact: true }));
      await open(rowOf(page, 'Active'));
      await open(page.getByRole('button', { name: 'Cancel', exact: true }).first());
      await sees(/Access stays until/, page.getByRole('dialog'));
      await submit('Cancel subscription');
      const { subject_id } = await latestByStaff(page, 'subscription.updated');
      await expectStatus(page, 'cancelled', subject_id);
      await open(page.getByRole('button', { name: 'Undo', exact: true }));
      await sees('Cancellation undone.');
      await expectStatus(page, 'active', subject_id);
    },
  },
  {
    name: 'What does another plan cost? Change to it',
    quick: true,
    async run({ page, open, sees, choose, submit }) {
      await open(page.getByRole('link', { name: 'Subscriptions', exact: true }));
      await open(rowOf(page, 'Active', 'pro'));
      await open(page.getByRole('button', { name: 'Change plan' }).first());
      const dialog = page.getByRole('dialog');
      await choose(dialog.getByRole('combobox'), 'free');
      await sees('becomes', dialog);
      await submit('Change plan');
      const { subject_id } = await latestByStaff(page, 'subscription.updated');
      const { subscription_plan_slug: plan } = await read(page, `/subscriptions/${subject_id}`);
      check(plan === 'free', `the plan is ${plan}`);
    },
  },
  {
    name: 'Who changed this subscription, and when?',
    async prepare(page) {
      const { data } = await read(page, '/subscriptions?status=active&limit=1');
      for (const is_active of [false, true]) {
        await change(page, 'PUT', `/subscriptions/${data[0].id}`, { is_active });
      }
      return read(page, `/users/${data[0].user_id}`);
    },
    async run({ page, find, sees, prepared }) {
      await find(prepared.email);
      const entry = page.locator('.timeline li').first();
      await sees(/by staff member/, entry);
      await sees(/request/, entry);
      check(await entry.locator('time').getAttribute('datetime'), 'the entry has no time');
    },
  },
  {
    name: 'What was MRR last month, and which customers left?',
    async run({ page, open }) {
      await open(page.getByRole('link', { name: /^MRR/ }));
      const lastMonth = page.getByRole('row').nth(2);
      await open(lastMonth.getByRole('link', { name: /^−/ }).last());
      await page.getByRole('heading', { name: 'Changes: churned' }).waitFor();
      await page.locator('main [data-row]').filter({ hasText: '@' }).first().waitFor();
    },
  },
  {
    name: 'Which trials end soon? Which payments failed?',
    async run({ page, open, sees }) {
      await open(page.getByRole('link', { name: /^On trial/ }));
      await sees(/renews before/);
      await open(page.getByRole('link', { name: 'Payments', exact: true }));
      await open(page.getByRole('link', { name: /^Failed \d/ }));
      await sees('card_declined');
    },
  },
  {
    name: 'Which webhook fails? Resend its event',
    quick: true,
    prepare: failingEndpoint,
    async run({ page, open, sees, receiver }) {
      await open(page.getByRole('link', { name: /^Webhooks failing/ }));
      await sees(/^Failing since/);
      await open(page.getByRole('link', { name: receiver.url }));
      await sees('500 Internal Server Error');
      receiver.status = 200;
      await open(page.getByRole('button', { name: 'Resend' }).first());
      await open(page.getByRole('dialog').getByRole('button', { name: 'Resend' }));
      await sees('The event is sent again');
      await until(() => receiver.received.some(({ status }) => status === 200), 'the event is sent again', DELIVERY_TIMEOUT);
      receiver.received.length = 0;
    },
  },
  {
    name: 'Give a colleague read-only access',
    async run({ page, open, sees, type }) {
      await open(page.getByRole('link', { name: 'Staff', exact: true }));
      await open(page.getByRole('button', { name: 'Invite a colleague' }));
      const dialog = page.getByRole('dialog');
      const email = `colleague-${Date.now()}@example.com`;
      // Viewer is the role that is chosen at first.
      await type(dialog.getByLabel('Email address'), email);
      await open(dialog.getByRole('button', { name: 'Invite', exact: true }));
      await sees(/\/console\/#link=/, dialog);
      const { data } = await read(page, '/staff');
      const role = data.find((member) => member.email === email)?.role;
      check(role === 'viewer', `the role is ${role}`);
    },
  },
  {
    name: 'Undo an earlier cancellation',
    async run({ page, open, submit }) {
      await open(page.getByRole('link', { name: 'Subscriptions', exact: true }));
      await open(page.getByRole('link', { name: /^Cancelled/ }));
      await open(page.locator('main [data-row]').first());
      await open(page.getByRole('button', { name: 'Undo cancellation' }).first());
      await submit('Undo cancellation');
      const { subject_id } = await latestByStaff(page, 'subscription.updated');
      await expectStatus(page, 'active', subject_id);
    },
  },
  {
    name: 'Who changed this webhook endpoint, and when?',
    prepare: failingEndpoint,
    async run({ page, open, sees, receiver }) {
      await open(page.getByRole('link', { name: 'Webhooks', exact: true }));
      await open(page.getByRole('link', { name: receiver.url }));
      await open(page.getByRole('link', { name: 'Who changed it' }));
      await open(page.locator('main [data-row]').last());
      await sees('Staff member', page.getByRole('dialog'));
    },
  },
  {
    name: 'What does MRR leave out?',
    async run({ page, open, sees }) {
      await open(page.getByRole('button', { name: 'Definitions' }));
      await sees(/lifetimes and unknown prices do not/, page.getByRole('dialog'));
    },
  },
];

export async function checkTasks(session) {
  checkDocumentation();
  const tasks = TASKS.filter(({ name, quick }) => (isQuick ? quick : name.includes(only)));
  for (const keyboard of [false, true]) {
    for (const task of tasks) await perform(task, keyboard, session);
  }
}

/** Does a task on a new page. */
async function perform(task, keyboard, session) {
  const page = await openOverview(session);
  const steps = stepsOf(page, keyboard);
  const sees = (text, within = page) => within.getByText(text).first().waitFor();
  const label = `${task.name} (${keyboard ? 'keyboard' : 'mouse'})`;
  try {
    const prepared = await task.prepare?.(page, session.receiver);
    if (prepared) {
      await page.reload();
      await loaded(page);
    }
    await task.run({ page, sees, prepared, receiver: session.receiver, ...steps });
    check(steps.count() <= MAX_INTERACTIONS, `${label}: ${steps.count()} interactions`);
  } catch (error) {
    check(false, `${label}: ${error.message}`);
  }
  await page.context().close();
}

/** Checks that the documentation lists the tasks with the same words. */
function checkDocumentation() {
  const page = readFileSync(new URL('../../docs/console.md', import.meta.url), 'utf8');
  const section = page.split('## Everyday tasks')[1].split('\n## ')[0];
  const documented = [...section.matchAll(/^\| ([^|]+?) \|/gm)].map(([, name]) => name).slice(1);
  const unknown = documented.filter((name) => !TASKS.some((task) => task.name === name));
  check(documented.length === 10 && unknown.length === 0, `docs/console.md has ${documented.length} tasks; unknown: ${unknown}`);
}

/** Returns the link of the first row with these texts. */
function rowOf(page, ...texts) {
  let rows = page.getByRole('row');
  for (const text of texts) rows = rows.filter({ hasText: text });
  return rows.locator('[data-row]').first();
}

/** Returns the latest event of the open subscriber, which the signed-in staff member must have caused. */
async function latestByStaff(page, type) {
  const user = new URL(page.url()).pathname.split('/').at(-1);
  const { entries } = await read(page, `/users/${user}/timeline`);
  const { staff_member } = await read(page, '/console/session');
  const entry = entries.find((candidate) => candidate.type === type);
  const isByStaff = entry?.actor.type === 'staff' && entry.actor.id === staff_member.id;
  check(isByStaff, `${type} has the actor ${JSON.stringify(entry?.actor)}`);
  return entry;
}

async function expectStatus(page, expected, id) {
  const { status } = await read(page, `/subscriptions/${id}`);
  check(status === expected, `${id} is ${status}, not ${expected}`);
}
