// The state of one mode (test or live) of the account: records, events, and the webhook endpoints that receive them.

import { Collection } from '../stand_in/collection.mjs';
import { newId } from './ids.mjs';
import { invalid, missing } from './errors.mjs';

/** Collections by the prefix of their identifiers. */
const COLLECTIONS = {
  prod: ['products', 'product'],
  price: ['prices', 'price', 'product'],
  cus: ['customers', 'customer'],
  pm: ['payment_methods', 'payment_method'],
  sub: ['subscriptions', 'subscription', 'customer'],
  in: ['invoices', 'invoice', 'customer', 'subscription'],
  ii: ['invoice_items', 'invoiceitem', 'customer'],
  inpay: ['invoice_payments', 'invoice_payment', 'invoice', 'payment_intent'],
  pi: ['payment_intents', 'payment_intent', 'customer'],
  ch: ['charges', 'charge', 'customer', 'payment_intent'],
  re: ['refunds', 'refund', 'charge', 'payment_intent'],
  du: ['disputes', 'dispute', 'charge', 'payment_intent'],
  cs: ['checkout_sessions', 'checkout.session'],
  bps: ['portal_sessions', 'billing_portal.session'],
  we: ['webhook_endpoints', 'webhook_endpoint'],
  ed: ['event_destinations', 'v2.core.event_destination'],
  evt: ['events', 'event'],
};

/** Copies plain data. Faster than `structuredClone`, and events copy records all the time. */
export function copy(value) {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(copy);
  const result = {};
  for (const key in value) result[key] = copy(value[key]);
  return result;
}

export class Ledger {
  /** Outcomes of payments that a test has chosen, by subscription or customer: succeed, fail or requires_action. */
  outcomes = new Map();
  /** Responses to requests with an Idempotency-Key. */
  idempotent = new Map();
  /** Called with (endpoint, event) for each event that an endpoint is subscribed to. */
  onEvent = () => {};
  /** Sessions of the Stripe CLI by id; undefined while the CLI is not connected. */
  cli_sessions = new Map();
  #objects = {};

  constructor({ livemode, clock, settings }) {
    this.livemode = livemode;
    this.clock = clock;
    this.settings = settings;
    for (const [prefix, [name, object, ...indexed]] of Object.entries(COLLECTIONS)) {
      this[name] = new Collection(indexed);
      this.#objects[prefix] = { collection: this[name], object };
    }
  }

  now() {
    return this.clock.now();
  }

  /** Returns the record with this id from the collection that its prefix names, or undefined. */
  find(id) {
    return this.#objects[String(id).split('_')[0]]?.collection.get(id);
  }

  /** Returns a record that a path or parameter names, or throws Stripe's error for a missing one. */
  get(object, id, param) {
    const record = this.find(id);
    if (record && record.object === object && !(record.deleted && param)) return record;
    const status = param ? 400 : 404;
    if (this.other?.find(id)?.object === object) {
      const [here, there] = this.livemode ? ['live', 'test'] : ['test', 'live'];
      const message = `No such ${object}: '${id}'; a similar object exists in ${there} mode, but a ${here} mode key was used to make this request.`;
      throw invalid(message, { code: 'resource_missing', param: param ?? 'id' }, status);
    }
    throw missing(object, id, param ?? 'id', status);
  }

  /** Adds a record with a new id and records the event, if there is one. */
  insert(prefix, fields, eventType) {
    const { collection, object } = this.#objects[prefix];
    const id = fields.id ?? newId(prefix);
    const record = collection.insert({ id, object, created: this.now(), ...fields });
    if (eventType) this.emit(eventType, record);
    return record;
  }

  /** Changes fields of a record and records the event. A change that changes nothing has no event. */
  change(record, fields, eventType) {
    const before = copy(record);
    Object.assign(record, fields);
    if (JSON.stringify(before) === JSON.stringify(record)) return record;
    if (eventType) this.emit(eventType, record, before);
    return record;
  }

  /** Records an event with a snapshot of the record. */
  emit(type, record, before) {
    const event = this.events.insert({
      id: newId('evt'),
      object: 'event',
      created: this.now(),
      type,
      snapshot: copy(record),
      before: before ?? null,
      request: this.request ?? { id: null, idempotency_key: null },
      pending: 0,
    });
    for (const endpoint of [...this.webhook_endpoints.all(), ...this.event_destinations.all(), ...this.cli_sessions.values()]) {
      if (!endpoint || endpoint.deleted || endpoint.status !== 'enabled') continue;
      const name = endpoint.is_thin ? `v1.${type}` : type;
      if (endpoint.enabled_events.some((enabled) => enabled === '*' || enabled === name)) this.onEvent(endpoint, event);
    }
    return event;
  }
}
