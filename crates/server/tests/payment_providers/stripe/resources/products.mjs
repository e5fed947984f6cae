import { allow, boolean, emptyable, mergeMetadata, required } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { createPrice } from './prices.mjs';
import { invalid } from '../errors.mjs';

const FIELDS = [
  'name',
  'active',
  'description',
  'metadata',
  'images',
  'url',
  'statement_descriptor',
  'unit_label',
  'tax_code',
  'default_price',
  'expand',
];

export function productView(ledger, product) {
  if (product.deleted) return { id: product.id, object: 'product', deleted: true };
  return {
    id: product.id,
    object: 'product',
    active: product.active,
    created: product.created,
    default_price: product.default_price,
    description: product.description,
    images: [],
    livemode: ledger.livemode,
    marketing_features: [],
    metadata: product.metadata,
    name: product.name,
    package_dimensions: null,
    shippable: null,
    statement_descriptor: null,
    tax_code: null,
    tax_details: null,
    type: 'service',
    unit_label: null,
    updated: product.updated,
    url: null,
  };
}

function create({ ledger, params }) {
  allow(params, ['id', 'default_price_data', ...FIELDS]);
  const product = ledger.insert(
    'prod',
    {
      ...(params.id ? { id: params.id } : {}),
      name: required(params, 'name'),
      active: boolean(params.active, 'active') ?? true,
      description: params.description || null,
      metadata: mergeMetadata({}, params.metadata),
      default_price: null,
      updated: ledger.now(),
    },
    'product.created',
  );
  if (params.default_price_data) {
    product.default_price = createPrice(ledger, { ...params.default_price_data, product: product.id }).id;
  }
  return product;
}

function update({ ledger, params, path }) {
  allow(params, FIELDS);
  const product = ledger.get('product', path.id);
  return ledger.change(
    product,
    {
      name: params.name ?? product.name,
      active: boolean(params.active, 'active') ?? product.active,
      description: emptyable(params.description, product.description),
      metadata: mergeMetadata(product.metadata, params.metadata),
      default_price: emptyable(params.default_price, product.default_price),
      updated: ledger.now(),
    },
    'product.updated',
  );
}

function remove({ ledger, path }) {
  const product = ledger.get('product', path.id);
  if (ledger.prices.all('product', product.id).length > 0) {
    throw invalid('This product cannot be deleted because it has one or more user-created prices.');
  }
  ledger.emit('product.deleted', product);
  product.deleted = true;
  return product;
}

export const productRoutes = [
  ['POST', '/v1/products', create],
  [
    'GET',
    '/v1/products',
    ({ ledger, params }) =>
      listPage(ledger.products, '/v1/products', params, {
        matches: ({ active }) => params.active === undefined || active === boolean(params.active, 'active'),
        also: ['active'],
      }),
  ],
  ['GET', '/v1/products/:id', ({ ledger, path }) => ledger.get('product', path.id)],
  ['POST', '/v1/products/:id', update],
  ['DELETE', '/v1/products/:id', remove],
];
