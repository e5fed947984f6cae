import { html } from './html.js';

/**
 * @typedef {import('./html.js').Markup} Markup
 * @typedef {import('@perennial/client').Schemas} Schemas
 *
 * @typedef {object} Page
 * @property {string} title
 * @property {Markup} body
 * @property {Markup} [lead] Below the title.
 * @property {number} [status] Default: 200.
 * @property {boolean} [isWide]
 *
 * @typedef {object} Frame
 * @property {string} pathname
 * @property {Schemas['SessionUser'] | undefined} user
 * @property {boolean} hasTools Whether the product runs with a sandbox.
 */

export const PRODUCT_NAME = 'Tersely';

/**
 * Returns a page as a document.
 *
 * @param {Page} page
 * @param {Frame} frame
 * @returns {string}
 */
export function document(page, { pathname, user, hasTools }) {
  /**
   * @param {string} path
   * @param {string} text
   */
  const link = (path, text) =>
    html`<a href="${path}" ${path === pathname ? html`aria-current="page"` : ''}>${text}</a>`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · ${PRODUCT_NAME}</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/frame.css">
<link rel="stylesheet" href="/text.css">
<link rel="stylesheet" href="/cards.css">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
${
  hasTools &&
  html`<aside class="sandbox" aria-label="Sandbox">
  <p><strong>Sandbox:</strong> no money moves. <a href="/sandbox">Move time</a></p>
</aside>`
}
<header>
  <a class="brand" href="/"><img src="/icon.svg" alt="" width="28" height="28">${PRODUCT_NAME}</a>
  <nav aria-label="Main">${link('/', 'Pricing')}${link('/check', 'Check a text')}${user && link('/account', 'Account')}</nav>
  ${
    user
      ? html`<form class="who" method="post" action="/sign-out"><span>${user.email}</span><button class="quiet">Sign out</button></form>`
      : html`<a class="button quiet" href="/sign-in">Sign in</a>`
  }
</header>
<main id="content" tabindex="-1" class="${page.isWide ? 'wide' : ''}">
  <h1>${page.title}</h1>
  ${page.lead && html`<p class="lead">${page.lead}</p>`}
  ${page.body}
</main>
<footer><p>${PRODUCT_NAME} is an example. It sells access with Perennial.</p></footer>
</body>
</html>`.text;
}
