import { PerennialError, parseJson, readCode } from './errors.js';

/** How requests are repeated. Every field has a default. */
export interface RetryOptions {
  /** How often a request is sent at most. Default: 5. */
  attempts?: number;
  /** The delay before the second attempt, in milliseconds. It doubles with each attempt. Default: 500. */
  initialDelay?: number;
  /** The longest delay, in milliseconds. A longer `Retry-After` ends the attempts. Default: 60,000. */
  maxDelay?: number;
  /** The timeout of one attempt, in milliseconds. Default: 15,000. */
  timeout?: number;
}

/** The parts of a request that every attempt sends unchanged. */
export interface PreparedRequest {
  url: string;
  method: string;
  headers: Headers;
  body: ArrayBuffer | undefined;
  signal: AbortSignal;
}

export interface TransportSettings extends Required<RetryOptions> {
  fetch: typeof globalThis.fetch;
}

/** Statuses whose responses have no body. */
const NULL_BODY_STATUSES = new Set([204, 205, 304]);
/** A status 500 is repeated this often at most. */
const MAX_INTERNAL_RETRIES = 2;
/** POST without an Idempotency-Key that has the same effect if it is repeated. */
const REPEATABLE_POST = /\/(authentication\/.*|preview|export|enable|billing-portal-sessions)$/;
/** PUT that has another effect if it is repeated: it advances the clock. */
const UNREPEATABLE_PUT = /\/sandbox\/clock$/;

export function transportSettings(retry: RetryOptions, fetch: typeof globalThis.fetch): TransportSettings {
  const { attempts = 5, initialDelay = 500, maxDelay = 60_000, timeout = 15_000 } = retry;
  return { attempts, initialDelay, maxDelay, timeout, fetch };
}

/** Reads the body of a request, so that it can be sent several times. */
export async function prepareRequest(request: Request): Promise<PreparedRequest> {
  const { url, method, signal } = request;
  const body = method === 'GET' ? undefined : await request.arrayBuffer();
  return { url, method, headers: new Headers(request.headers), body: body?.byteLength ? body : undefined, signal };
}

/**
 * Sends a request until its outcome is known, and returns the response with its whole body. Throws `connection_failed` or
 * `timeout` after the last attempt, and the reason of the signal if it is aborted.
 */
export async function send(request: PreparedRequest, settings: TransportSettings): Promise<Response> {
  // Whether an earlier attempt may have taken effect.
  let isUncertain = false;
  for (let attempt = 1; ; attempt += 1) {
    let response: Response | undefined;
    let failure: PerennialError | undefined;
    try {
      response = await sendOnce(request, settings);
    } catch (error) {
      request.signal.throwIfAborted();
      failure = connectionError(error);
    }
    if (response?.status === 404 && request.method === 'DELETE' && isUncertain) {
      return new Response(null, { status: 204, headers: response.headers });
    }
    const outcome = await classify(response);
    const canRepeat =
      outcome === 'no_effect' ||
      (outcome === 'unknown' && isRepeatable(request)) ||
      (outcome === 'internal' && isRepeatable(request) && attempt <= MAX_INTERNAL_RETRIES);
    const delay = retryDelay(response, attempt, settings);
    if (!canRepeat || attempt >= settings.attempts || delay === undefined) {
      if (response) return response;
      throw failure ?? connectionError(undefined);
    }
    isUncertain ||= outcome !== 'no_effect';
    await sleep(delay, request.signal);
  }
}

/** Sends a request and returns the response with an unread body, for streams. */
export async function openStream(request: PreparedRequest, settings: TransportSettings): Promise<Response> {
  try {
    return await startFetch(request, settings, request.signal);
  } catch (error) {
    request.signal.throwIfAborted();
    throw connectionError(error);
  }
}

function startFetch(request: PreparedRequest, settings: TransportSettings, signal: AbortSignal): Promise<Response> {
  const { url, method, headers, body } = request;
  // The service never redirects. A redirect would send the API key to another host.
  const options: RequestInit = { method, headers, signal, credentials: 'omit', redirect: 'error' };
  return settings.fetch(url, body ? { ...options, body } : options);
}

/** Sends a request once and reads the whole response, which can be cut off after its headers. */
async function sendOnce(request: PreparedRequest, settings: TransportSettings): Promise<Response> {
  request.signal.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort(request.signal.reason);
  request.signal.addEventListener('abort', abort);
  const timer = setTimeout(() => controller.abort(timeoutError(settings.timeout)), settings.timeout);
  try {
    const response = await startFetch(request, settings, controller.signal);
    const body = await response.arrayBuffer();
    const { status, statusText, headers } = response;
    if (response.ok && isJson(response) && parseJson(new TextDecoder().decode(body)) === undefined) {
      throw new TypeError('the response is not complete');
    }
    return new Response(NULL_BODY_STATUSES.has(status) ? null : body, { status, statusText, headers });
  } finally {
    clearTimeout(timer);
    request.signal.removeEventListener('abort', abort);
  }
}

const isJson = (response: Response) => response.headers.get('content-type')?.startsWith('application/json') === true;

/** Whether the request had no effect, may have had one, or is complete. */
type Outcome = 'complete' | 'no_effect' | 'unknown' | 'internal';

async function classify(response: Response | undefined): Promise<Outcome> {
  if (!response) return 'unknown';
  switch (response.status) {
    case 408:
    case 429:
      return 'no_effect';
    case 409:
      return (await readCode(response)) === 'idempotency_in_progress' ? 'no_effect' : 'complete';
    case 500:
      return 'internal';
    case 502:
      return (await readCode(response)) === 'payment_provider_failed' ? 'complete' : 'unknown';
    case 503:
      return (await readCode(response)) === 'overloaded' ? 'no_effect' : 'unknown';
    case 504:
      return 'unknown';
    default:
      return 'complete';
  }
}

function isRepeatable({ method, url, headers }: PreparedRequest): boolean {
  const { pathname } = new URL(url);
  if (method === 'PUT') return !UNREPEATABLE_PUT.test(pathname);
  return method !== 'POST' || headers.has('idempotency-key') || REPEATABLE_POST.test(pathname);
}

/** Returns the milliseconds to wait, with jitter; undefined if the service asks for a longer delay than allowed. */
export function retryDelay(
  response: Response | undefined,
  attempt: number,
  { initialDelay, maxDelay }: Pick<TransportSettings, 'initialDelay' | 'maxDelay'>,
): number | undefined {
  const retryAfter = parseRetryAfter(response?.headers.get('retry-after'));
  if (retryAfter > maxDelay) return undefined;
  const backoff = Math.min(initialDelay * 2 ** (attempt - 1), maxDelay);
  return Math.max(retryAfter, backoff) * (1 + Math.random() / 2);
}

/** Returns milliseconds: the header has seconds or, from a proxy, a date. */
function parseRetryAfter(value: string | null | undefined): number {
  if (!value) return 0;
  const milliseconds = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(milliseconds) ? 0 : Math.max(milliseconds, 0);
}

/** Waits, and rejects with the reason of the signal when it is aborted. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

const timeoutError = (milliseconds: number) =>
  new PerennialError(0, 'timeout', `the service did not respond within ${milliseconds} ms`);

function connectionError(error: unknown): PerennialError {
  if (error instanceof PerennialError) return error;
  return new PerennialError(0, 'connection_failed', 'the service did not send a complete response', undefined, error);
}
