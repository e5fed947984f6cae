// Notifications to webhook endpoints: sent immediately, or queued until a test delivers them in an order of its choice.

import http from 'node:http';
import https from 'node:https';

const DELIVERY_TIMEOUT = 20_000;
const MAX_CONNECTIONS = 16;
const agents = {
  'http:': new http.Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS }),
  'https:': new https.Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS }),
};

export class Outbox {
  #notifications = new Map();
  #inFlight = new Set();
  #prepare;
  #isAccepted;
  mode = 'send';
  /** Called once for each notification that the endpoint has accepted. */
  onDelivered = () => {};

  /**
   * @param prepare Returns `{ url, headers, body }` of a notification, or `{ send }`, which returns the status. Called for each attempt, so that signatures are fresh.
   * @param isAccepted Tells from the status whether the provider treats a delivery as successful.
   */
  constructor(prepare, isAccepted) {
    this.#prepare = prepare;
    this.#isAccepted = isAccepted;
  }

  /** Adds a notification. `fields` has the endpoint, the event and its type. */
  add(fields) {
    const id = `ntf_${this.#notifications.size + 1}`;
    const notification = { id, ...fields, state: 'queued', is_accepted: false, attempts: 0, status: null };
    this.#notifications.set(id, notification);
    if (this.mode === 'send') this.#track(this.#attempt(notification));
    return notification;
  }

  list(state) {
    return [...this.#notifications.values()].filter((notification) => !state || notification.state === state);
  }

  /** Delivers in this order, one after the other. An id may be repeated. Returns the notifications after their attempts. */
  async deliver(ids) {
    const results = [];
    for (const id of ids) {
      const notification = this.#notifications.get(id);
      if (!notification) throw new Error(`no notification ${id}`);
      await this.#attempt(notification);
      results.push({ ...notification });
    }
    return results;
  }

  drop(ids) {
    for (const id of ids) {
      const notification = this.#notifications.get(id);
      if (notification) notification.state = 'dropped';
    }
  }

  /** Waits until no delivery is in flight. */
  async settle() {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight);
  }

  #track(promise) {
    this.#inFlight.add(promise);
    promise.finally(() => this.#inFlight.delete(promise));
  }

  async #attempt(notification) {
    notification.attempts += 1;
    try {
      const delivery = this.#prepare(notification);
      notification.status = await (delivery.send ? delivery.send() : post(delivery));
      notification.error = undefined;
    } catch (error) {
      notification.status = null;
      notification.error = error.message;
    }
    const isAccepted = this.#isAccepted(notification.status);
    if (isAccepted && !notification.is_accepted) this.onDelivered(notification);
    notification.is_accepted ||= isAccepted;
    notification.state = isAccepted ? 'delivered' : 'failed';
  }
}

/** Sends a request and returns the status of the response. */
function post({ url, headers, body }) {
  return new Promise((resolve, reject) => {
    const target = new URL(url);
    const client = target.protocol === 'https:' ? https : http;
    const options = {
      method: 'POST',
      agent: agents[target.protocol],
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    };
    const request = client.request(target, options, (response) => {
      response.on('error', reject);
      response.on('end', () => resolve(response.statusCode));
      response.resume();
    });
    request.setTimeout(DELIVERY_TIMEOUT, () => request.destroy(new Error('timeout')));
    request.on('error', reject);
    request.end(body);
  });
}
