// Receives the events of Perennial. They make the cached entitlements current, and wake up pages that wait for a change.
import { verifyWebhook, WebhookVerificationError } from '@perennial/client';
import { HttpError, readBody } from './visit.js';

/**
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('@perennial/client').Perennial} Perennial
 * @typedef {import('@perennial/client').WebhookEvent} WebhookEvent
 */

/** The events that change what users may use. `sandbox/start.js` registers the endpoint with them. */
export const EVENT_TYPES = ['subscription.*', 'plan.*', 'user.*'];
const MAX_PROCESSED = 10_000;

/**
 * Returns a function that processes a webhook request and returns the status of the response.
 *
 * @param {{ webhookSecrets: string[] }} settings
 * @param {Perennial} perennial
 * @param {UserChanges} changes
 */
export function webhookReceiver({ webhookSecrets }, perennial, changes) {
  // An event can arrive more than once. Here it could only clear a cache twice. If it does more than that in your product, keep the ids
  // in a table with a unique constraint, and insert in the transaction that processes the event.
  /** @type {Set<string>} */
  const processed = new Set();

  /** @param {WebhookEvent} event */
  function processEvent({ id, type, data: event }) {
    if (processed.has(id)) return;
    processed.add(id);
    const [oldest] = processed;
    if (oldest && processed.size > MAX_PROCESSED) processed.delete(oldest);
    const { user_id } = /** @type {{ user_id?: string }} */ (event.data);
    const userId = type.startsWith('user.') ? event.subject_id : user_id;
    // A changed plan concerns all of its subscribers.
    perennial.invalidateEntitlements(userId);
    if (userId) changes.report(userId);
  }

  /**
   * @param {IncomingMessage} request
   * @returns {Promise<number>}
   */
  return async (request) => {
    try {
      const body = await readBody(request);
      processEvent(await verifyWebhook({ body, headers: request.headers, secrets: webhookSecrets }));
      return 204;
    } catch (error) {
      if (error instanceof WebhookVerificationError) return 401;
      if (error instanceof HttpError) return error.status;
      // Perennial sends the event again.
      console.error(error);
      return 500;
    }
  };
}

/** Lets a page wait until something of a user has changed. With several instances of your server, use your message broker. */
export class UserChanges {
  /** @type {Map<string, Set<(hasChanged: boolean) => void>>} */
  #waiting = new Map();

  /** @param {string} userId */
  report(userId) {
    for (const resolve of this.#waiting.get(userId) ?? []) resolve(true);
  }

  /**
   * Resolves to true with the next change, or to false after the timeout.
   *
   * @param {string} userId
   * @param {number} timeout In milliseconds.
   * @returns {Promise<boolean>}
   */
  async next(userId, timeout) {
    const waiting = this.#waiting.get(userId) ?? new Set();
    this.#waiting.set(userId, waiting);
    /** @type {(hasChanged: boolean) => void} */
    let resolve = () => {};
    /** @type {Promise<boolean>} */
    const changed = new Promise((settle) => {
      resolve = settle;
    });
    waiting.add(resolve);
    const timer = setTimeout(() => resolve(false), timeout);
    try {
      return await changed;
    } finally {
      clearTimeout(timer);
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(userId);
    }
  }
}
