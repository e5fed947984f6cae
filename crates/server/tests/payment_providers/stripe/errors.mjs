// Errors in Stripe's shape. The official SDKs choose their error class by status, `type` and `code`.

export class StripeError extends Error {
  constructor(status, fields, headers = {}) {
    super(fields.message);
    this.status = status;
    this.fields = fields;
    this.headers = headers;
  }

  body() {
    return { error: this.fields };
  }
}

export function invalid(message, fields = {}, status = 400) {
  return new StripeError(status, { ...fields, message, type: 'invalid_request_error' });
}

export function missing(object, id, param = 'id', status = 404) {
  return invalid(
    `No such ${object.replaceAll('_', ' ').replace('.', ' ')}: '${id}'`,
    { code: 'resource_missing', param },
    status,
  );
}

export function cardError(message, fields) {
  return new StripeError(402, { ...fields, message, type: 'card_error' });
}

/** Returns the error that Stripe sends with this status when it is overloaded or broken. */
export function faultError(status, retryAfter) {
  const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
  if (status === 429) {
    const fields = { code: 'rate_limit', message: 'Request rate limit exceeded.', type: 'invalid_request_error' };
    return new StripeError(429, fields, { ...headers, 'stripe-rate-limited-reason': 'global-rate' });
  }
  if (status === 401) return invalid('Expired API Key provided.', { code: 'api_key_expired' }, 401);
  return new StripeError(status, { message: 'An unknown error occurred', type: 'api_error' }, headers);
}
