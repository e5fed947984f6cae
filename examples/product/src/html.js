// A template that escapes its values. All pages are built with it, so no value can add markup.

/** Text that is HTML already. Only `html` creates it. */
export class Markup {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/**
 * @param {TemplateStringsArray} parts
 * @param {unknown[]} values Text is escaped. Lists are joined. `undefined`, `null` and `false` are left out.
 * @returns {Markup}
 */
export function html(parts, ...values) {
  return new Markup(parts.reduce((text, part, index) => text + render(values[index - 1]) + part));
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function render(value) {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(render).join('');
  if (value === undefined || value === null || value === false) return '';
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
