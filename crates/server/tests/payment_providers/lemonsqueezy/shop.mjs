// The state of one mode (test or live): records, and the webhooks that receive events.

import { randomUUID } from 'node:crypto';
import { Collection } from '../stand_in/collection.mjs';
import { notFound } from './errors.mjs';

const INDEXED = {
  stores: [],
  products: ['store_id'],
  variants: ['product_id'],
  prices: ['variant_id'],
  customers: ['store_id'],
  orders: ['customer_id'],
  'order-items': ['order_id'],
  subscriptions: ['customer_id', 'order_id'],
  'subscription-invoices': ['subscription_id', 'customer_id'],
  checkouts: ['variant_id'],
  webhooks: ['store_id'],
};

export class Shop {
  /** Outcomes of payments that a test has chosen, by subscription id: succeed or fail. */
  outcomes = new Map();
  /** Called with (webhook, event) for each event that a webhook is subscribed to. */
  onEvent = () => {};
  #collections = new Map();
  #view;
  #ids;

  /** @param ids A function that returns the next number for a type, shared by both modes. */
  constructor({ testMode, clock, settings, ids, view }) {
    this.testMode = testMode;
    this.clock = clock;
    this.settings = settings;
    this.#ids = ids;
    this.#view = view;
    for (const [type, indexed] of Object.entries(INDEXED)) this.#collections.set(type, new Collection(indexed));
  }

  now() {
    return this.clock.now();
  }

  collection(type) {
    return this.#collections.get(type);
  }

  all(type, field, value) {
    return this.collection(type).all(field, value);
  }

  find(type, id) {
    const record = this.collection(type)?.get(String(id));
    return record?.deleted ? undefined : record;
  }

  get(type, id) {
    const record = this.find(type, id);
    if (!record) throw notFound(type, id);
    return record;
  }

  insert(type, fields) {
    const now = this.now();
    const id = type === 'checkouts' ? randomUUID() : String(this.#ids(type));
    return this.collection(type).insert({ id, type, created_at: now, updated_at: now, ...fields });
  }

  change(record, fields) {
    return Object.assign(record, fields, { updated_at: this.now() });
  }

  /** Sends an event with the current state of the record. `custom` is the custom data of the checkout. */
  emit(name, record, custom) {
    const event = { id: randomUUID(), name, record: record.id, type: record.type, custom, data: this.#view(this, record) };
    for (const webhook of this.all('webhooks')) {
      if (!webhook.deleted && webhook.events.includes(name)) this.onEvent(webhook, event);
    }
    return event;
  }
}
