// Records as JSON:API documents, with relationships and included records.

import { ApiError } from './errors.mjs';
import { checkouts } from './resources/checkouts.mjs';
import { customers } from './resources/customers.mjs';
import { orderItems } from './resources/order_items.mjs';
import { orders } from './resources/orders.mjs';
import { prices } from './resources/prices.mjs';
import { products } from './resources/products.mjs';
import { stores } from './resources/stores.mjs';
import { subscriptionInvoices } from './resources/subscription_invoices.mjs';
import { subscriptions } from './resources/subscriptions.mjs';
import { variants } from './resources/variants.mjs';
import { webhooks } from './resources/webhooks.mjs';

export const RESOURCES = {
  checkouts,
  customers,
  orders,
  'order-items': orderItems,
  prices,
  products,
  stores,
  subscriptions,
  'subscription-invoices': subscriptionInvoices,
  variants,
  webhooks,
};

/** Type and field of relationships to one record. */
const TO_ONE = {
  store: ['stores', 'store_id'],
  customer: ['customers', 'customer_id'],
  order: ['orders', 'order_id'],
  'order-item': ['order-items', 'order_item_id'],
  product: ['products', 'product_id'],
  variant: ['variants', 'variant_id'],
  subscription: ['subscriptions', 'subscription_id'],
  'price-model': ['prices', 'price_id'],
};
/** Field by which other records refer to a record of this type. */
const FOREIGN_KEYS = {
  stores: 'store_id',
  customers: 'customer_id',
  orders: 'order_id',
  subscriptions: 'subscription_id',
  products: 'product_id',
};

/** Returns a function that renders records with links to this address. */
export function createView(address) {
  return (shop, record) => {
    const { attributes, relationships } = RESOURCES[record.type];
    const self = `${address()}/v1/${record.type}/${record.id}`;
    return {
      type: record.type,
      id: record.id,
      attributes: { ...attributes(shop, record), ...record.overrides },
      relationships: Object.fromEntries(
        relationships.map((name) => [
          name,
          {
            links: { related: `${self}/${name}`, self: `${self}/relationships/${name}` },
          },
        ]),
      ),
      links: { self },
    };
  };
}

/** Returns the records that `include` names, each once. */
export function includedRecords(shop, records, names) {
  const found = new Map();
  for (const record of records) {
    for (const name of names) {
      if (!RESOURCES[record.type].relationships.includes(name)) throw new ApiError(400, `Include path ${name} is not allowed.`);
      for (const other of related(shop, record, name)) found.set(`${other.type} ${other.id}`, other);
    }
  }
  return [...found.values()];
}

function related(shop, record, name) {
  if (TO_ONE[name]) {
    const [type, field] = TO_ONE[name];
    return [shop.find(type, record[field])].filter(Boolean);
  }
  const collection = shop.collection(name);
  if (!collection) return [];
  const field = FOREIGN_KEYS[record.type];
  return collection.all().filter((other) => other[field] === record.id && !other.deleted);
}
