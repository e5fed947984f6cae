// Every screen and dialog of the console: its name, its path, and the steps that open the dialog.
import { url } from '../harness.mjs';
import { failingEndpoint, notifiedAccount, startReceiver } from './operations.mjs';
import { loaded, openOverview, read, signIn } from './session.mjs';

const OPEN_ROW = opening((page) => page.locator('main [data-row]').last());

/** A path that does not start with a slash is a record, or the status of a subscription (`openScreen`). */
export const SCREENS = [
  ['overview', '/'],
  ['subscribers', '/subscribers'],
  ['subscribers-none', '/subscribers?q=no-such-address'],
  ['subscriber-past-due', 'past_due'],
  ['subscriber-trial', 'on_trial'],
  ['subscriber-cancelled', 'cancelled'],
  ['subscriptions', '/subscriptions'],
  ['subscriptions-past-due', '/subscriptions?status=past_due'],
  ['payments', '/payments'],
  ['revenue', '/revenue'],
  ['changes', '/revenue/changes'],
  ['changes-churned', '/revenue/changes?kind=churned'],
  ['churn', '/churn'],
  ['trials', '/trials'],
  ['cohorts', '/cohorts'],
  ['plans', '/plans'],
  ['events', '/events'],
  ['events-of-a-type', '/events?types=subscription.*'],
  ['event', '/events?types=subscription.updated,subscription.renewed', OPEN_ROW],
  ['webhooks', '/webhooks'],
  ['webhook-endpoint', 'endpoint'],
  ['webhook-attempt', 'endpoint', OPEN_ROW],
  ['webhook-resend', 'endpoint', press('Resend', ready)],
  ['webhook-replay', 'endpoint', press('Replay', ready)],
  ['webhook-add', '/webhooks', press('Add endpoint', ready)],
  ['payment-accounts', '/payment-accounts'],
  ['payment-account', 'account'],
  ['payment-notification', 'account', OPEN_ROW],
  ['payment-connect', '/payment-accounts', press('Connect account', ready)],
  ['api-keys', '/api-keys'],
  ['identity-providers', '/identity-providers'],
  ['staff', '/staff'],
  ['health', '/health'],
  ['sandbox', '/sandbox'],
  ['find', '/', (page) => page.keyboard.press('Control+k')],
  ['help', '/', (page) => page.keyboard.press('?')],
  ['definitions', '/revenue', press('Definitions')],
  ['invite', '/staff', press('Invite a colleague')],
  ['create-key', '/api-keys', press('Create a key')],
  ['add-provider', '/identity-providers', press('Add a provider')],
  ['advance', '/sandbox', press('Advance by a month')],
  ['demo-data', '/sandbox', press('Fill with demo data')],
  ['dialog-record-payment', 'past_due', press('Record payment')],
  ['dialog-change-plan', 'active', press('Change plan', choosePlan)],
  ['dialog-extend', 'active', press('Extend', previewed)],
  ['dialog-pause', 'active', press('Pause', previewed)],
  ['dialog-suspend', 'active', press('Suspend', previewed)],
  ['dialog-cancel', 'active', press('Cancel', previewed)],
  ['dialog-undo', 'cancelled', press('Undo cancellation', previewed)],
  ['dialog-reopen', 'expired', press('Reopen', previewed)],
  ['dialog-refund', 'active', press('Refund', showCommands)],
  ['dialog-erase', 'active', press('Erase')],
  ['not-found', '/no-such-screen'],
];

/** Signs in as an admin, and creates what the screens of webhooks and payment accounts show. Returns the session with their paths. */
export async function prepare(browser) {
  const session = { ...(await signIn(browser)), receiver: await startReceiver() };
  const page = await openOverview(session);
  const endpoint = await failingEndpoint(page, session.receiver);
  const account = await notifiedAccount(page);
  await page.context().close();
  const paths = { endpoint: `/webhooks?endpoint=${endpoint.id}`, account: `/payment-accounts?account=${account.id}` };
  return { ...session, paths };
}

/** Opens a screen, without its dialog. For a status, it is the page of a subscriber with such a subscription. */
export async function openScreen(page, path, paths) {
  if (!path.startsWith('/') && !paths[path]) {
    const { data } = await read(page, `/subscriptions?status=${path}&limit=1`);
    if (!data[0]) throw new Error(`no subscription is ${path}`);
    paths[path] = `/subscribers/${data[0].user_id}`;
  }
  await page.goto(`${url}/console${paths[path] ?? path}`);
  await loaded(page);
}

/** Does the steps that open a dialog. */
export async function openDialog(page, act) {
  await act(page);
  await page.getByRole('dialog').waitFor();
}

/** Returns a step that opens a dialog by its button, and then does the rest. */
export function press(name, then = async () => {}) {
  return opening((page) => page.getByRole('button', { name, exact: true }).first(), then);
}

/** Returns a step that clicks a control, which `control` finds, and waits for its dialog. */
export function opening(control, then = async () => {}) {
  const act = async (page) => {
    await control(page).click();
    await page.getByRole('dialog').waitFor();
    await then(page);
  };
  return Object.assign(act, { control });
}

/** Waits for the content of a dialog that is loaded with it. */
async function ready(page) {
  const content = '[role=dialog] :is(.dialog-actions, .copy-text):visible';
  await page.locator(content).first().waitFor();
}

/** Waits for the preview of a change. */
async function previewed(page) {
  await page.locator('.outcome').waitFor();
}

async function choosePlan(page) {
  const plan = page.getByRole('dialog').getByRole('combobox');
  await plan.selectOption((await plan.inputValue()) === 'team' ? 'pro' : 'team');
  await previewed(page);
}

async function showCommands(page) {
  await page.locator('.commands summary').click();
}
