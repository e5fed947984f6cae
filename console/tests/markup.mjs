// Fills names, metadata, email addresses, plan texts, webhooks and notifications with markup, and checks
// that every screen and dialog shows it as text.
import { loaded, openPage, options, settled, start } from './browser.mjs';
import { opening, pathOf, press, SCREENS } from './catalog.mjs';
import { change, failingEndpoint, notifiedAccount, startReceiver } from './operations.mjs';

const CANARY = '<img src=x onerror="window.canary=1"><script>window.canary=1</script><b>bold</b>';
/** Email addresses cannot have brackets. HTML reads these entities as brackets. */
const ENTITIES = '&ltb&gtbold&lt/b&gt';
/** Time for a control or text to appear. */
const STEP_TIMEOUT = 10_000;

const started = performance.now();
const session = await start();
const receiver = await startReceiver();
const { page, findings } = await openPage(session, { viewport: { width: 1440, height: 900 } });
page.setDefaultTimeout(STEP_TIMEOUT);
await page.goto(`${options.url}/console/`);
await loaded(page);

const create = (path, body) => change(page, 'POST', path, body);
const unique = Date.now().toString(36);
const records = await createRecords();
let failures = 0;
for (const [name, path, act, expected] of screens()) {
  findings.length = 0;
  try {
    await page.goto(`${options.url}/console${await pathOf(page, path, records)}`);
    await loaded(page);
    if (act) {
      await act(page);
      await page.getByRole('dialog').waitFor();
    }
    await settled(page);
    if (expected) await page.getByText(expected).first().waitFor();
  } catch (error) {
    findings.push(error.message);
  }
  const seen = await page.evaluate(() => ({
    canary: window.canary,
    elements: document.querySelectorAll('img[src=x], b, u, i').length,
  }));
  if (seen.canary) findings.push('markup ran');
  if (seen.elements) findings.push('markup became elements');
  for (const finding of findings) console.log(`${name}: ${finding}`);
  failures += findings.length;
}
await page.goto(`${options.url}/console/`);
await loaded(page);
await page.keyboard.press('Control+k');
await page.getByRole('combobox').fill(`${CANARY}${unique}`);
await page.getByRole('option', { name: '<b>bold</b>' }).first().waitFor();

await session.browser.close();
receiver.close();
const seconds = Math.round((performance.now() - started) / 1000);
console.log(`markup: ${screens().length + 1} screens, ${failures} findings in ${seconds} s`);
process.exitCode = failures ? 1 : 0;

/** Returns the screens that show the records with the text that they must show, and all others. */
function screens() {
  const text = '<b>bold</b>';
  const own = [
    ['subscribers', '/subscribers', null, text],
    ['subscribers-by-email', `/subscribers?q=${unique}`, null, ENTITIES],
    ['search-without-result', `/subscribers?q=${encodeURIComponent(CANARY)}`, null, null],
    ['subscriber', 'active', null, text],
    ['subscriber-of-a-provider', 'imported', null, text],
    ['subscriber-by-email', 'byEmail', null, ENTITIES],
    ['change-plan', 'active', press('Change plan'), null],
    ['record-payment', 'active', press('Record payment'), null],
    ['refund', 'active', press('Refund'), null],
    ['erase', 'active', press('Erase'), null],
    ['subscriptions', '/subscriptions?sort=-created_at', null, null],
    ['payments', '/payments', null, text],
    ['plans', '/plans', null, text],
    ['event', 'planEvents', openRow(), text],
    ['webhooks', '/webhooks', null, text],
    ['webhook-endpoint', 'endpoint', null, text],
    ['webhook-body', 'endpoint', openRow(), text],
    ['payment-accounts', '/payment-accounts', null, text],
    ['payment-account', 'account', null, text],
    ['payment-notification', 'account', openRow(text), text],
    ['api-keys', '/api-keys', null, text],
    ['rotate-key', '/api-keys', press(`Rotate the key of ${CANARY}`), text],
    ['disable-key', '/api-keys', press(`Disable ${CANARY}`), text],
    ['staff', '/staff', null, ENTITIES],
  ];
  return options.quick ? own : [...own, ...SCREENS];
}

/** Returns a step that opens the first row, or the first with a text. */
function openRow(text = '') {
  return opening((opened) =>
    opened.getByRole('row').filter({ hasText: text }).locator('[data-row]').first(),
  );
}

/** Creates a user with a subscription and payments, and returns the user's id. A provider runs an imported one. */
async function createSubscriber(plan, kind) {
  const user = await create('/users', {
    external_user_id: `${CANARY}${kind === 'managed' ? '' : kind}${unique}`,
    metadata: { note: CANARY, '<i>key</i>': '<u>value</u>' },
  });
  const subscription = await create('/subscriptions', {
    user_id: user.id,
    subscription_plan_id: plan.id,
    ...(kind === 'imported' && { external_subscription_id: `${CANARY}${unique}` }),
  });
  for (const status of ['completed', 'failed']) {
    await create('/subscription-payments', {
      subscription_id: subscription.id,
      amount: '9.99',
      currency: 'USD',
      status,
      ...(status === 'failed' && { failure_reason: CANARY }),
      external_payment_id: `${CANARY}${kind}${status}${unique}`,
    });
  }
  return user.id;
}

/** Creates records full of markup, and returns their paths. */
async function createRecords() {
  const byEmail = await create('/users', { email: `${unique}${ENTITIES}@example.com` });
  const plan = await create('/subscription-plans', {
    slug: `markup-${unique}`,
    name: CANARY,
    description: CANARY,
    features: CANARY.replaceAll(',', ''),
    price: '9.99',
    currency: 'USD',
    billing_cycle: 'monthly',
  });
  const managed = await createSubscriber(plan, 'managed');
  const imported = await createSubscriber(plan, 'imported');
  await create('/clients', { name: CANARY });
  await create('/staff', { email: `staff-${unique}${ENTITIES}@example.com`, role: 'viewer' });
  const endpoint = await failingEndpoint(page, receiver, CANARY);
  const account = await notifiedAccount(page, options.url, CANARY);
  return {
    active: `/subscribers/${managed}`,
    imported: `/subscribers/${imported}`,
    byEmail: `/subscribers/${byEmail.id}`,
    planEvents: `/events?subject_id=${plan.id}`,
    endpoint: `/webhooks?endpoint=${endpoint.id}`,
    account: `/payment-accounts?account=${account.id}`,
  };
}
