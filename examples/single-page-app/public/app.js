// The page: a sign-in form, or the user's subscriptions with a button to cancel each or to undo that.

import { call, isSignedIn, onChange, refresh, signIn, signOut } from './session.js';
import { accessUntil, subscriptionCard } from './view.js';

const element = (id) => document.getElementById(id);
const message = element('message');
const dialog = element('confirm');

function say(text, isError = false) {
  message.textContent = text;
  message.classList.toggle('error', isError);
}

/** Runs a user's action, with its button disabled meanwhile, and shows its error. */
async function act(button, action) {
  button.disabled = true;
  say('');
  try {
    await action();
  } catch (error) {
    // A session that ended shows the sign-in form, which is message enough with this text.
    say(error.message, true);
  } finally {
    button.disabled = false;
  }
}

// ---- subscriptions

/** Changes the status if nobody has changed the subscription since it was shown. */
async function setStatus({ json: subscription, etag }, status, done) {
  try {
    await call('PUT', `/subscriptions/${subscription.id}`, { body: { status }, ifMatch: etag });
    say(done);
  } catch (error) {
    if (error.code !== 'precondition_failed') throw error;
    say('The subscription has changed meanwhile. Please check it and try again.', true);
  }
  await showSubscriptions();
}

/** Asks before cancelling. */
async function confirmCancel(shown, plan) {
  const until = accessUntil(shown.json);
  element('confirm-text').textContent = shown.json.is_active && until
    ? `You keep ${plan.name} until ${until}. Until then you can change your mind.`
    : `${plan.name} ends now. This cannot be undone.`;
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  if (dialog.returnValue === 'cancel-subscription') await setStatus(shown, 'cancelled', 'Your subscription is cancelled.');
}

async function showSubscriptions() {
  const { json: page } = await call('GET', '/subscriptions?limit=20');
  const cards = await Promise.all(page.data.map(async ({ id, subscription_plan_id }) => {
    // Each is read by itself for its entity tag.
    const [shown, { json: plan }] = await Promise.all([
      call('GET', `/subscriptions/${id}`),
      call('GET', `/subscription-plans/${subscription_plan_id}`),
    ]);
    return subscriptionCard(shown.json, plan, {
      onCancel: (button) => act(button, () => confirmCancel(shown, plan)),
      onUndo: (button) => act(button, () => setStatus(shown, 'active', 'Welcome back: your subscription continues.')),
    });
  }));
  element('subscriptions').replaceChildren(...cards);
  element('no-subscriptions').hidden = cards.length > 0;
}

// ---- sign-in and sign-out

/** Shows the view for the state of the session. */
async function show() {
  const signedIn = isSignedIn();
  element('sign-in').hidden = signedIn;
  element('account').hidden = !signedIn;
  element('my-subscriptions').hidden = !signedIn;
  if (!signedIn) {
    if (dialog.open) dialog.close();
    element('subscriptions').replaceChildren();
    return;
  }
  const { json } = await call('POST', '/authentication/user-logged-in');
  element('email').textContent = json.user.email;
  await showSubscriptions();
}

const showOrSay = () => show().catch((error) => say(error.message, true));

element('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const form = event.target;
  const { token, email } = Object.fromEntries(new FormData(form));
  act(event.submitter, async () => {
    await signIn(token.trim(), email.trim());
    form.reset();
  });
});
element('sign-out').addEventListener('click', (event) => act(event.target, signOut));

onChange(showOrSay);
// A sleeping tab may have missed that the session ended.
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') showOrSay();
});
if (isSignedIn()) await refresh().catch((error) => say(error.message, true));
await showOrSay();
document.body.dataset.ready = '';
