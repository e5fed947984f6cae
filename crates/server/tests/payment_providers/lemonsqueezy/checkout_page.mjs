// The page of a checkout. A POST, as its button sends, pays and redirects to `redirect_url`.

import { readBody } from '../stand_in/listen.mjs';
import { completeCheckout } from './resources/checkouts.mjs';

export async function servePage(request, response, url, shops) {
  const id = url.pathname.split('/').at(-1);
  const shop = Object.values(shops).find((candidate) => candidate.find('checkouts', id));
  const page = (status, text) => {
    response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
    response.end(`<!doctype html><title>Checkout</title><p>${text}</p>`);
  };
  if (!shop) return page(404, 'No such checkout.');
  const checkout = shop.find('checkouts', id);
  if (request.method !== 'POST') {
    return page(
      200,
      '</p><form method="post"><input name="email" type="email" value="customer@example.com"> <button>Pay</button></form><p>',
    );
  }
  const form = new URLSearchParams((await readBody(request)).toString());
  try {
    completeCheckout(shop, checkout, { email: form.get('email'), name: form.get('name') });
  } catch (error) {
    return page(410, error.message);
  }
  const target = checkout.product_options.redirect_url;
  if (!target) return page(200, 'Paid.');
  return response.writeHead(303, { location: target }).end();
}
