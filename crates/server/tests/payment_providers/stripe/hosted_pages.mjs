// The pages that Stripe hosts: checkout and billing portal.

import { readBody } from '../stand_in/listen.mjs';
import { completeSession } from './billing/checkout.mjs';
import { payWithNewCard } from './billing/portal.mjs';

const STYLE = `:root { color-scheme: light dark } body { max-width: 26rem; margin: 12vh auto; padding: 0 1.5rem; font: 1rem/1.5 system-ui, sans-serif }
input, button { width: 100%; box-sizing: border-box; margin: .25rem 0 1rem; padding: .625rem; font: inherit }`;

function sendPage(response, status, title, content) {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
  response.end(`<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>${STYLE}</style><main><h1>${title}</h1>${content}<p>This is a stand-in of Stripe.</p></main>`);
}

/** Serves the page of a checkout session. A POST, as its button sends, pays and redirects to `success_url`. */
export async function servePage(request, response, url, ledgers) {
  const id = url.pathname.split('/').at(-1);
  const ledger = [ledgers.test, ledgers.live].find((candidate) => candidate.find(id));
  const session = ledger?.find(id);
  const page = (status, content) => sendPage(response, status, 'Checkout', content);
  if (!session) return page(404, '<p>No such session.</p>');
  if (session.status !== 'open') return page(410, `<p>This session is ${session.status}.</p>`);
  if (request.method !== 'POST') {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency: session.currency });
    const amount = format.format(session.amount_total / 10 ** format.resolvedOptions().maximumFractionDigits);
    const email = '<label>Email <input name="email" type="email" value="customer@example.com"></label>';
    return page(200, `<p>Amount: ${amount}</p><form method="post">${session.customer_email ? '' : email}<button>Pay</button></form>`);
  }
  const form = new URLSearchParams((await readBody(request)).toString());
  try {
    completeSession(ledger, session, { email: form.get('email'), card: form.get('card') ?? 'pm_card_visa' });
  } catch (error) {
    return page(402, `<p>${error.message}</p>`);
  }
  response.writeHead(303, { location: session.success_url.replaceAll('{CHECKOUT_SESSION_ID}', session.id) });
  return response.end();
}

/** Serves the page of a portal session. A POST, as its button sends, pays open invoices with a new card and redirects to `return_url`. */
export function servePortal(request, response, url, address, ledgers) {
  const sessions = Object.values(ledgers).flatMap((ledger) => ledger.portal_sessions.all().map((session) => ({ ledger, session })));
  const found = sessions.find(({ session }) => session.url === `${address()}${url.pathname}`);
  if (!found) return sendPage(response, 404, 'Billing portal', '<p>No such session.</p>');
  const { customer, return_url } = found.session;
  if (request.method !== 'POST') {
    const form = '<form method="post"><button>Use a new card</button></form>';
    return sendPage(response, 200, 'Billing portal', `<p>Customer: ${customer}</p>${form}`);
  }
  payWithNewCard(found.ledger, found.ledger.customers.get(customer));
  response.writeHead(303, { location: return_url ?? url.pathname });
  return response.end();
}
