// Errors in the shape of JSON:API.

const TITLES = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Entity',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

export class ApiError extends Error {
  constructor(status, detail, { pointer, headers = {} } = {}) {
    super(detail);
    this.status = status;
    this.pointer = pointer;
    this.headers = headers;
  }

  body() {
    const error = { detail: this.message, status: String(this.status), title: TITLES[this.status] ?? 'Error' };
    if (this.pointer) error.source = { pointer: this.pointer };
    return { jsonapi: { version: '1.0' }, errors: [error] };
  }
}

export function notFound(type, id) {
  return new ApiError(404, `The related resource does not exist: ${type} ${id}.`);
}

export function unprocessable(pointer, detail) {
  return new ApiError(422, detail, { pointer });
}

export function faultError(status, retryAfter) {
  const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
  return new ApiError(status, status === 429 ? 'Too Many Attempts.' : 'Server Error', { headers });
}
