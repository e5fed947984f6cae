// Decides which mails to send, and sends each once.

import { createHash } from 'node:crypto';
import { PerennialError } from '@perennial/client';
import { createTransport } from 'nodemailer';
import { pastDue, receipt, trialEnding } from './mails.js';

/** @typedef {import('@perennial/client').Perennial} Perennial */
/** @typedef {import('@perennial/client').Schemas} Schemas */
/** @typedef {import('@perennial/client').WebhookEvent} WebhookEvent */

const DAY = 24 * 60 * 60 * 1000;
/** Perennial waits 15 seconds for the response to a webhook. In milliseconds. */
const SMTP_TIMEOUTS = { connectionTimeout: 4000, greetingTimeout: 4000, socketTimeout: 6000 };

export class Notifier {
  #perennial;
  #log;
  #settings;
  #smtp;

  /** @param {Perennial} perennial @param {import('./sent_log.js').SentLog} log @param {import('./settings.js').Settings} settings */
  constructor(perennial, log, settings) {
    this.#perennial = perennial;
    this.#log = log;
    this.#settings = settings;
    this.#smtp = createTransport({ url: settings.smtpUrl, ...SMTP_TIMEOUTS });
  }

  /** Sends the mail that an event calls for, if any. Throws if it must be tried again. @param {WebhookEvent} event */
  async handle({ type, data: event }) {
    const [record] = type.split('.');
    if (record !== 'payment' && record !== 'subscription') return;
    // A replay of old events sends nothing.
    if (Date.parse(event.occurred_at) < Date.now() - this.#settings.maxEventAgeDays * DAY) return;
    const { status } = /** @type {{ status?: string }} */ (event.data);
    const isNew = type === `${record}.created` || (event.previous !== undefined && 'status' in event.previous);
    if (record === 'payment' && status === 'completed' && isNew) {
      await this.#sendReceipt(/** @type {Schemas['Payment']} */ (/** @type {unknown} */ (event.data)));
    }
    if (record === 'subscription' && status === 'past_due' && isNew) await this.#remind(event.subject_id);
  }

  /** Sends a mail for each trial that ends soon. There is no event for it, so this runs each hour. */
  async remindOfTrials() {
    const now = this.#settings.isSandbox ? (await this.#perennial.get('/sandbox/clock')).now : new Date().toISOString();
    const query = {
      status: 'on_trial',
      suspended: 'false',
      'renews_at[gt]': now,
      'renews_at[lte]': new Date(Date.parse(now) + this.#settings.trialReminderDays * DAY).toISOString(),
    };
    for await (const subscription of this.#perennial.list('/subscriptions', { query })) {
      // With the end of the trial: if it is extended, there is a second mail.
      const key = `trial_ending ${subscription.id} ${subscription.renews_at}`;
      await this.#log.once(key, async () =>
        this.#send(subscription.user_id, key, trialEnding(subscription, await this.#plan(subscription), this.#settings)),
      );
    }
  }

  /** @param {Schemas['Payment']} payment */
  async #sendReceipt(payment) {
    const key = `receipt ${payment.id}`;
    await this.#log.once(key, async () => {
      const subscription = await this.#subscription(payment.subscription_id);
      if (!subscription) return 'skipped';
      return this.#send(subscription.user_id, key, receipt(payment, await this.#plan(subscription), this.#settings));
    });
  }

  /** @param {string} id */
  async #remind(id) {
    // Read again, because the event may be old: the user may have paid meanwhile.
    const subscription = await this.#subscription(id);
    if (!subscription || !['past_due', 'unpaid'].includes(subscription.status)) return;
    const key = `past_due ${id} ${subscription.renews_at}`;
    await this.#log.once(key, async () =>
      this.#send(subscription.user_id, key, pastDue(subscription, await this.#plan(subscription), this.#settings)),
    );
  }

  /** Returns undefined for a deleted subscription. @param {string} id */
  async #subscription(id) {
    return this.#perennial.get('/subscriptions/{id}', { path: { id } }).catch(undefinedIfMissing);
  }

  /** @param {Schemas['Subscription']} subscription */
  async #plan({ subscription_plan_id }) {
    return this.#perennial.get('/subscription-plans/{slug}', { path: { slug: subscription_plan_id } });
  }

  /** Sends a mail and returns what became of it. @param {string} userId @param {string} key @param {import('./mails.js').Mail} mail */
  async #send(userId, key, mail) {
    const user = await this.#perennial.get('/users/{id}', { path: { id: userId } }).catch(undefinedIfMissing);
    // Erased, or known by an external id only.
    if (!user?.email) return 'no address';
    const messageId = `<${createHash('sha256').update(key).digest('hex')}@${new URL(this.#settings.accountUrl).hostname}>`;
    try {
      await this.#smtp.sendMail({ ...mail, messageId, from: this.#settings.from, to: { name: '', address: user.email } });
      return 'sent';
    } catch (error) {
      // A permanent rejection of this address. Any other error is tried again.
      if (!(error instanceof Error && 'responseCode' in error && Number(error.responseCode) >= 550)) throw error;
      return 'rejected';
    }
  }
}

/** @param {unknown} error */
function undefinedIfMissing(error) {
  if (error instanceof PerennialError && error.status === 404) return undefined;
  throw error;
}
