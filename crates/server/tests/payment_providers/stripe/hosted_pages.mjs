// The pages that Stripe hosts: checkout and billing portal.

import { readBody } from '../stand_in/listen.mjs';
import { completeSession } from './billing/checkout.mjs';

/** Serves the page of a checkout session. A POST, as its button sends, pays and redirects to `success_url`. */
export async function servePage(request, response, url, ledgers) {
  const id = url.pathname.split('/').at(-1);
  const ledger = [ledgers.test, ledgers.live].find((candidate) => candidate.find(id));
  const session = ledger?.find(id);
  const page = (status, text) => {
    response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
    response.end(`<!doctype html><title>Checkout</title><p>${text}</p>`);
  };
  if (!session) return page(404, 'No such session.');
  if (session.status !== 'open') return page(410, `This session is ${session.status}.`);
  if (request.method !== 'POST') {
    const email = session.customer_email ? '' : '<input name="email" type="email" value="customer@example.com"> ';
    return page(200, `${session.amount_total} ${session.currency}</p><form method="post">${email}<button>Pay</button></form><p>`);
  }
  const form = new URLSearchParams((await readBody(request)).toString());
  try {
    completeSession(ledger, session, { email: form.get('email'), card: form.get('card') ?? 'pm_card_visa' });
  } catch (error) {
    return page(402, error.message);
  }
  response.writeHead(303, { location: session.success_url.replaceAll('{CHECKOUT_SESSION_ID}', session.id) });
  return response.end();
}

/** Serves the page of a portal session, which only names the customer. */
export function servePortal(response, url, address, ledgers) {
  const sessions = Object.values(ledgers).flatMap((ledger) => ledger.portal_sessions.all());
  const session = sessions.find((candidate) => candidate.url === `${address()}${url.pathname}`);
  response.writeHead(session ? 200 : 404, { 'content-type': 'text/html; charset=utf-8' });
  response.end(`<!doctype html><title>Billing portal</title><p>${session ? session.customer : 'No such session.'}</p>`);
}
