// Fills names, metadata, email addresses, plan texts, webhooks and notifications with markup, and checks
// that every screen and dialog shows it as text.
import { check, quick, url } from '../harness.mjs';
import { openDialog, opening, openScreen, press, SCREENS } from './catalog.mjs';
import { failingEndpoint, notifiedAccount } from './operations.mjs';
import { change, loaded, openOverview, settled } from './session.mjs';

const CANARY = '<img src=x onerror="window.canary=1"><script>window.canary=1</script><b>bold</b>';
/** Email addresses cannot have brackets. HTML reads these entities as brackets. */
const ENTITIES = '&ltb&gtbold&lt/b&gt';
/** Time for a control or text to appear. */
const STEP_TIMEOUT = 10_000;
const unique = Date.now().toString(36);

export async function checkMarkup(session) {
  const page = await openOverview(session);
  page.setDefaultTimeout(STEP_TIMEOUT);
  const paths = await createRecords(page, session.receiver);
  for (const [name, path, act, expected] of screens()) {
    try {
      await openScreen(page, path, paths);
      if (act) await openDialog(page, act);
      await settled(page);
      if (expected) await page.getByText(expected).first().waitFor();
    } catch (error) {
      check(false, `${name}: ${error.message}`);
    }
    const { canary, elements } = await page.evaluate(() => ({
      canary: window.canary,
      elements: document.querySelectorAll('img[src=x], b, u, i').length,
    }));
    check(!canary, `${name}: markup ran`);
    check(elements === 0, `${name}: markup became elements`);
  }
  await page.goto(`${url}/console/`);
  await loaded(page);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill(`${CANARY}${unique}`);
  await page.getByRole('option', { name: '<b>bold</b>' }).first().waitFor();
  await page.context().close();
}

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
  return quick ? own : [...own, ...SCREENS];
}

/** Returns a step that opens the first row, or the first with a text. */
function openRow(text = '') {
  return opening((opened) => opened.getByRole('row').filter({ hasText: text }).locator('[data-row]').first());
}

/** Creates a user with a subscription and payments, and returns the user's id. A provider runs an imported one. */
async function createSubscriber(create, plan, kind) {
  const isImported = kind === 'imported';
  const user = await create('/users', {
    external_user_id: `${CANARY}${isImported ? kind : ''}${unique}`,
    metadata: { note: CANARY, '<i>key</i>': '<u>value</u>' },
  });
  const subscription = await create('/subscriptions', {
    user_id: user.id,
    subscription_plan_id: plan.id,
    ...(isImported && { external_subscription_id: `${CANARY}${unique}` }),
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
async function createRecords(page, receiver) {
  const create = (path, body) => change(page, 'POST', path, body);
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
  const managed = await createSubscriber(create, plan, 'managed');
  const imported = await createSubscriber(create, plan, 'imported');
  await create('/clients', { name: CANARY });
  await create('/staff', { email: `staff-${unique}${ENTITIES}@example.com`, role: 'viewer' });
  const endpoint = await failingEndpoint(page, receiver, CANARY);
  const account = await notifiedAccount(page, CANARY);
  return {
    active: `/subscribers/${managed}`,
    imported: `/subscribers/${imported}`,
    byEmail: `/subscribers/${byEmail.id}`,
    planEvents: `/events?subject_id=${plan.id}`,
    endpoint: `/webhooks?endpoint=${endpoint.id}`,
    account: `/payment-accounts?account=${account.id}`,
  };
}
