// Amounts are in the units of Stripe: ISO 4217 minor units, except that ISK and UGX have two decimals, which must be 00, and
// MGA has none. Currencies with three decimals must end in 0.

import { allow, boolean, currency, integer, mergeMetadata, oneOf, required } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { invalid } from '../errors.mjs';

/** Smallest steps that Stripe accepts, where they are not 1. */
const STEPS = { isk: 100, ugx: 100, bhd: 10, kwd: 10, omr: 10, tnd: 10 };

/** Rejects amounts that Stripe cannot charge in this currency. */
export function checkAmount(amount, code, param) {
  const step = STEPS[code] ?? 1;
  if (amount % step !== 0) {
    throw invalid(`Invalid amount: ${amount} must be divisible by ${step} for ${code}.`, { param });
  }
  return amount;
}

export function priceView(ledger, price) {
  return {
    id: price.id,
    object: 'price',
    active: price.active,
    billing_scheme: 'per_unit',
    created: price.created,
    currency: price.currency,
    custom_unit_amount: null,
    livemode: ledger.livemode,
    lookup_key: price.lookup_key,
    metadata: price.metadata,
    nickname: price.nickname,
    product: price.product,
    recurring:
      price.interval === null
        ? null
        : {
            interval: price.interval,
            interval_count: price.interval_count,
            meter: null,
            trial_period_days: null,
            usage_type: 'licensed',
          },
    tax_behavior: 'unspecified',
    tiers_mode: null,
    transform_quantity: null,
    type: price.interval === null ? 'one_time' : 'recurring',
    unit_amount: price.unit_amount,
    unit_amount_decimal: String(price.unit_amount),
  };
}

/** Returns the price in the shape of the older Plan object, which subscription items still have. */
export function planView(ledger, price) {
  return {
    id: price.id,
    object: 'plan',
    active: price.active,
    amount: price.unit_amount,
    amount_decimal: String(price.unit_amount),
    billing_scheme: 'per_unit',
    created: price.created,
    currency: price.currency,
    interval: price.interval,
    interval_count: price.interval_count,
    livemode: ledger.livemode,
    metadata: price.metadata,
    meter: null,
    nickname: price.nickname,
    product: price.product,
    tiers_mode: null,
    transform_usage: null,
    trial_period_days: null,
    usage_type: 'licensed',
  };
}

export function createPrice(ledger, params) {
  const code = currency(required(params, 'currency'));
  const recurring = params.recurring && params.recurring !== '' ? params.recurring : null;
  if (recurring) required(recurring, 'interval');
  return ledger.insert(
    'price',
    {
      product: ledger.get('product', required(params, 'product'), 'product').id,
      currency: code,
      unit_amount: checkAmount(integer(required(params, 'unit_amount'), 'unit_amount'), code, 'unit_amount'),
      interval: recurring ? oneOf(recurring.interval, ['day', 'week', 'month', 'year'], 'recurring[interval]') : null,
      interval_count: recurring ? (integer(recurring.interval_count, 'recurring[interval_count]') ?? 1) : null,
      active: boolean(params.active, 'active') ?? true,
      nickname: params.nickname ?? null,
      lookup_key: params.lookup_key ?? null,
      metadata: mergeMetadata({}, params.metadata),
    },
    'price.created',
  );
}

function create({ ledger, params }) {
  allow(params, [
    'product',
    'product_data',
    'currency',
    'unit_amount',
    'recurring',
    'active',
    'nickname',
    'lookup_key',
    'metadata',
    'expand',
  ]);
  if (!params.product_data) return createPrice(ledger, params);
  const product = ledger.insert(
    'prod',
    {
      name: required(params.product_data, 'name'),
      active: true,
      description: null,
      default_price: null,
      updated: ledger.now(),
      metadata: mergeMetadata({}, params.product_data.metadata),
    },
    'product.created',
  );
  return createPrice(ledger, { ...params, product: product.id });
}

function update({ ledger, params, path }) {
  allow(params, ['active', 'nickname', 'lookup_key', 'metadata', 'expand']);
  const price = ledger.get('price', path.id);
  return ledger.change(
    price,
    {
      active: boolean(params.active, 'active') ?? price.active,
      nickname: params.nickname ?? price.nickname,
      lookup_key: params.lookup_key ?? price.lookup_key,
      metadata: mergeMetadata(price.metadata, params.metadata),
    },
    'price.updated',
  );
}

export const priceRoutes = [
  ['POST', '/v1/prices', create],
  [
    'GET',
    '/v1/prices',
    ({ ledger, params }) =>
      listPage(ledger.prices, '/v1/prices', params, {
        filters: { product: 'product', currency: 'currency' },
        matches: ({ active, interval, lookup_key }) =>
          (params.active === undefined || active === boolean(params.active, 'active')) &&
          (params.type === undefined || (params.type === 'recurring') === (interval !== null)) &&
          (params.lookup_keys === undefined || params.lookup_keys.includes(lookup_key)),
        also: ['active', 'type', 'lookup_keys'],
      }),
  ],
  ['GET', '/v1/prices/:id', ({ ledger, path }) => ledger.get('price', path.id)],
  ['POST', '/v1/prices/:id', update],
];
