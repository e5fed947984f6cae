// The page that users pay for. Each part of the report requires a feature of the user's plan.
import { html } from './html.js';
import { analyze } from './text_report.js';

/**
 * @typedef {import('@perennial/client').Perennial} Perennial
 * @typedef {import('./app.js').Handler} Handler
 * @typedef {import('./html.js').Markup} Markup
 * @typedef {import('./text_report.js').TextReport} TextReport
 */

/** The entries of `features` of the plans. `sandbox/catalog.js` creates plans with them. */
export const FEATURES = /** @type {const} */ ({
  longSentences: 'Long sentences',
  fillerWords: 'Filler words',
  readability: 'Readability score',
});

const SAMPLE = [
  'It is really very important that we basically try to write in a way that is actually easy to read,',
  'because most people who open a page are in a hurry and will simply leave it when the first sentence does not end.',
  'Short sentences help. So does the full stop.',
].join(' ');

/**
 * @param {Perennial} perennial
 * @returns {Handler}
 */
export function checkPage(perennial) {
  return async (visit) => {
    const user = await visit.user();
    if (!user) return { redirect: '/sign-in?next=/check' };
    const text = visit.request.method === 'POST' ? ((await visit.form()).get('text') ?? '') : SAMPLE;
    // Cached, and current as soon as a webhook reports a change.
    const { features } = await perennial.entitlements(user.id);
    const report = analyze(text);
    return {
      title: 'Check a text',
      isWide: true,
      body: html`<div class="desk">
<form method="post" action="/check">
  <label for="text">Your text</label>
  <textarea id="text" name="text" rows="12" maxlength="100000">${text}</textarea>
  <p><button>Check</button></p>
</form>
<div class="report">
  <section class="card"><h2>Length</h2><p class="figure"><strong>${report.words}</strong> ${report.words === 1 ? 'word' : 'words'},
    ${report.minutes} min to read</p></section>
  ${part(features, FEATURES.longSentences, () => longSentences(report))}
  ${part(features, FEATURES.fillerWords, () => fillerWords(report))}
  ${part(
    features,
    FEATURES.readability,
    () => html`<p class="figure"><strong>${report.score}</strong> of 100,
    ${report.score >= 60 ? 'easy to read' : report.score >= 30 ? 'hard to read' : 'very hard to read'}</p>`,
  )}
</div>
</div>`,
    };
  };
}

/**
 * Returns a part of the report if the user has the feature, and an offer otherwise. The part is not even computed without it.
 *
 * @param {string[]} features The features that the user has.
 * @param {string} feature
 * @param {() => Markup} content
 */
function part(features, feature, content) {
  if (features.includes(feature)) return html`<section class="card"><h2>${feature}</h2>${content()}</section>`;
  return html`<section class="card locked"><h2>${feature}</h2><p>Not in your plan. <a href="/">See the plans</a></p></section>`;
}

/** @param {TextReport} report */
function longSentences({ longSentences: found }) {
  if (found.length === 0) return html`<p>None. Well done.</p>`;
  return html`<ol>${found.map((sentence) => html`<li>${sentence}</li>`)}</ol>`;
}

/** @param {TextReport} report */
function fillerWords({ parts }) {
  const count = parts.filter(({ isFiller }) => isFiller).length;
  if (count === 0) return html`<p>None. Well done.</p>`;
  return html`<p class="marked">${parts.map(({ text, isFiller }) => (isFiller ? html`<mark>${text}</mark>` : text))}</p>`;
}
