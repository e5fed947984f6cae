/** @typedef {import('./visit.js').Visit} Visit */

const PATHS = ['/', '/check', '/account'];

/**
 * Returns where a sign-in leads: the page that required it. Only pages of this site, so that a link cannot lead elsewhere.
 *
 * @param {Visit} visit
 */
export function nextPath(visit) {
  const next = visit.url.searchParams.get('next') ?? '/';
  return PATHS.includes(next) ? next : '/';
}
