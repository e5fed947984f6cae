// The devices on which the user is signed in: the sessions at Perennial.
import { PerennialError } from '@perennial/client';
import { day, device } from './format.js';
import { html } from './html.js';

/**
 * @typedef {import('@perennial/client').Schemas} Schemas
 * @typedef {import('./app.js').Handler} Handler
 */

/** @param {Schemas['Session'][]} sessions */
export function deviceList(sessions) {
  return html`<ul class="rows">${sessions.map(
    (session) => html`<li>
  <p><strong>${device(session.user_agent)}</strong>${session.current && html` <span class="badge good">This device</span>`}<br>
    <span class="muted">Signed in on ${day(session.created_at)} from ${session.ip}</span></p>
  ${!session.current && endForm(session)}
</li>`,
  )}</ul>
${
  sessions.length > 1 &&
  html`<form method="post" action="/account/devices/end-others">
  <button class="quiet">Sign out all other devices</button>
</form>`
}`;
}

/** @param {Schemas['Session']} session */
const endForm = (session) => html`<form method="post" action="/account/devices/end">
  <input type="hidden" name="id" value="${session.id}">
  <button class="quiet" aria-label="Sign out ${device(session.user_agent)}">Sign out</button>
</form>`;

/** @type {Handler} */
export async function endDevice(visit) {
  if (!(await visit.user())) return { redirect: '/sign-in?next=/account' };
  const id = (await visit.form()).get('id') ?? '';
  try {
    await visit.perennial.delete('/authentication/tokens/{id}', { path: { id } });
  } catch (error) {
    // The session has ended already, or is that of another user.
    if (!(error instanceof PerennialError) || error.status !== 404) throw error;
  }
  return { redirect: '/account?notice=ended' };
}

/** @type {Handler} */
export async function endOtherDevices(visit) {
  if (!(await visit.user())) return { redirect: '/sign-in?next=/account' };
  await visit.perennial.post('/authentication/tokens/revoke-all-except-current');
  return { redirect: '/account?notice=ended' };
}
