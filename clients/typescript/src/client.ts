import createClient from 'openapi-fetch';
import { EntitlementsCache, type Entitlements, type EntitlementsUser } from './entitlements.js';
import { errorFromResponse, parseJson, PerennialError, readCode } from './errors.js';
import { streamEvents, type EventOptions, type StreamedEvent } from './events.js';
import { IDEMPOTENT_PATHS } from './idempotent_paths.js';
import type { paths } from './schema.js';
import { Session, type PostOptions } from './session.js';
import { browserTokenStore, type TokenStore } from './token_store.js';
import { openStream, prepareRequest, send, transportSettings } from './transport.js';
import type { PreparedRequest, RetryOptions, TransportSettings } from './transport.js';
import type { CallArguments, ListItem, ListPath, Method, Page, PathOf, RawClient, Result } from './types.js';

/** The settings of a {@link Perennial} client. */
export interface PerennialOptions {
  /** The address of the service, such as `https://billing.example.com`. */
  url: string;
  /** The API key: a secret one (`prn_sk_…`) on servers, a publishable one (`prn_pk_…`) in browsers. */
  clientId: string;
  /** Keeps the tokens of a signed-in user. Default: {@link browserTokenStore} in a web page, none elsewhere. */
  tokenStore?: TokenStore;
  /** Acts on behalf of the user of this access token, without refreshing it. */
  accessToken?: string;
  retry?: RetryOptions;
  /** How long {@link Perennial.entitlements} are cached, in milliseconds. Default: 5,000. */
  entitlementsTtl?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

/** The options of a call, without the types of its path. */
interface UntypedOptions {
  path?: object | undefined;
  query?: object | undefined;
  body?: unknown;
  idempotencyKey?: string | undefined;
  ifMatch?: string | undefined;
  forwardedFor?: string | undefined;
  signal?: AbortSignal;
}

/** A page of a list, without the types of its path. */
interface UntypedPage<Item> {
  data: Item[];
  has_more: boolean;
  next_cursor: string | null;
}

/** `raw.request` without the types of its path. */
type UntypedRequest = (
  method: Method,
  path: string,
  init: object,
) => Promise<{ data?: unknown; error?: unknown; response: Response }>;

/** A client of Perennial. It has no state besides the session and the cached entitlements. */
export class Perennial {
  /** The client of openapi-fetch, with the same retries. It returns `{ data, error, response }` instead of throwing problems. */
  readonly raw: RawClient;
  readonly #options: PerennialOptions;
  readonly #settings: TransportSettings;
  readonly #session: Session | undefined;
  readonly #entitlements: EntitlementsCache;

  constructor(options: PerennialOptions) {
    const isPage = typeof document !== 'undefined';
    if (isPage && options.clientId.startsWith('prn_sk_')) {
      throw new TypeError('a secret API key must not be used in a web page; use a publishable one');
    }
    // An address that is not absolute would fail with each call, as if the service could not be reached.
    this.#options = { ...options, url: new URL(options.url).href.replace(/\/+$/, '') };
    const fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
    this.#settings = transportSettings(options.retry ?? {}, fetch);
    this.raw = createClient<paths, 'application/json'>({
      baseUrl: this.#options.url,
      headers: { 'client-id': options.clientId },
      fetch: (request) => this.#authorize(request),
    });
    this.raw.use({
      onRequest: ({ schemaPath, request }) => {
        const needsKey = request.method === 'POST' && IDEMPOTENT_PATHS.has(schemaPath);
        if (needsKey && !request.headers.has('idempotency-key')) request.headers.set('idempotency-key', randomKey());
        return request;
      },
    });
    this.#entitlements = new EntitlementsCache(options.entitlementsTtl ?? 5000, (user, etag) =>
      this.#loadEntitlements(user, etag),
    );
    const store = options.tokenStore ?? (isPage && !options.accessToken ? browserTokenStore() : undefined);
    if (store) {
      this.#session = new Session(store, (path, body, given = {}) => this.#postUnauthorized(path, body, given));
      this.#session.onChange(() => this.#entitlements.invalidate());
    }
  }

  /** The session of the signed-in user. Throws without a token store. */
  get session(): Session {
    if (!this.#session) throw new TypeError('a session needs the option tokenStore, one for each user');
    return this.#session;
  }

  /** Returns a client that acts on behalf of the user of an access token, which it does not refresh. */
  as(accessToken: string): Perennial {
    const { tokenStore: _, ...options } = this.#options;
    return new Perennial({ ...options, accessToken });
  }

  /** Reads a record. Throws a {@link PerennialError}. */
  get<P extends PathOf<'get'>>(path: P, ...args: CallArguments<'get', P>): Promise<Result<'get', P>> {
    return this.#call('get', path, args[0]);
  }

  /**
   * Creates a record, or runs another operation. All attempts of a call have the same `Idempotency-Key`: `idempotencyKey`, or a
   * random one. Throws a {@link PerennialError}.
   */
  post<P extends PathOf<'post'>>(path: P, ...args: CallArguments<'post', P>): Promise<Result<'post', P>> {
    return this.#call('post', path, args[0]);
  }

  /** Changes a record. With `ifMatch`, only if its `ETag` is still the same. Throws a {@link PerennialError}. */
  put<P extends PathOf<'put'>>(path: P, ...args: CallArguments<'put', P>): Promise<Result<'put', P>> {
    return this.#call('put', path, args[0]);
  }

  /** Deletes a record. A 404 after a lost response counts as deleted. Throws a {@link PerennialError}. */
  async delete<P extends PathOf<'delete'>>(path: P, ...args: CallArguments<'delete', P>): Promise<void> {
    await this.#call('delete', path, args[0]);
  }

  /** Iterates over all records of a list. Reads pages of 200 records, or of `query.limit`, while you consume them. */
  async *list<P extends ListPath>(
    path: P,
    ...args: CallArguments<'get', P>
  ): AsyncGenerator<ListItem<P>, void, undefined> {
    for await (const page of this.pages(path, ...args)) yield* (page as UntypedPage<ListItem<P>>).data;
  }

  /** Iterates over the pages of a list. Continue later with `next_cursor` as `query.cursor`, or as `query.after` of events. */
  async *pages<P extends ListPath>(
    path: P,
    ...args: CallArguments<'get', P>
  ): AsyncGenerator<Page<P>, void, undefined> {
    const options: UntypedOptions = args[0] ?? {};
    const parameter = path === '/events' ? 'after' : 'cursor';
    for (let cursor: object = {}; ;) {
      const query = { limit: 200, ...options.query, ...cursor };
      const page = await this.#call<UntypedPage<ListItem<P>>>('get', path, { ...options, query });
      yield page as Page<P>;
      if (!page.has_more) return;
      cursor = { [parameter]: page.next_cursor };
    }
  }

  /**
   * Iterates over events as they are committed. Reconnects, and continues after the last event without a gap. Save `cursor` of each
   * processed event, and send it as `after` when your process starts again. Needs a secret client with the scope `events:read`.
   */
  events(options: EventOptions = {}): AsyncGenerator<StreamedEvent, void, undefined> {
    const { types, subjectId } = options;
    const open = (after: string | undefined, signal: AbortSignal) => {
      const query = Object.entries({ after, types, subject_id: subjectId });
      const given = query.filter((entry): entry is [string, string] => entry[1] !== undefined);
      const request = this.#request('GET', `/events?${new URLSearchParams(given).toString()}`, signal);
      request.headers.set('accept', 'text/event-stream');
      return openStream(request, this.#settings);
    };
    return streamEvents(open, options);
  }

  /**
   * Returns what a user may use now: of the signed-in user, or of the user with an id. Cached for `entitlementsTtl`, at most until a
   * subscription ends. Throws if the service cannot be reached, and never returns an expired entry.
   */
  entitlements(user?: EntitlementsUser): Promise<Entitlements> {
    return this.#entitlements.read(user);
  }

  /** Removes cached entitlements of a user, or all. Call it when a webhook reports a change. */
  invalidateEntitlements(userId?: string): void {
    this.#entitlements.invalidate(userId);
  }

  /**
   * Follows the event log and removes the cached entitlements that change. The promise resolves when the signal is aborted. It
   * rejects if the service cannot be reached at the start, or refuses the stream later; then `entitlementsTtl` applies again.
   */
  async followEntitlements({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const given = signal ? { signal } : {};
    try {
      const { next_cursor } = await this.get('/events', { query: { after: 'now' }, ...given });
      // Entries from before the cursor may miss changes.
      this.#entitlements.invalidate();
      const events = this.events({ after: next_cursor, types: 'subscription.*,plan.*,user.*', ...given });
      for await (const event of events) this.#entitlements.apply(event);
    } catch (error) {
      if (!signal?.aborted) throw error;
    } finally {
      this.#entitlements.invalidate();
    }
  }

  async #call<T>(method: Method, path: string, options: UntypedOptions = {}): Promise<T> {
    const request = this.raw.request as unknown as UntypedRequest;
    const { path: pathParameters, query, body, signal } = options;
    const headers = {
      'idempotency-key': options.idempotencyKey,
      'if-match': options.ifMatch,
      'x-forwarded-for': options.forwardedFor,
    };
    const init = { params: { path: pathParameters, query }, headers, body, signal };
    const { data, error, response } = await request(method, path, init).catch((thrown: unknown) => {
      if (!(thrown instanceof SyntaxError)) throw thrown;
      throw new PerennialError(0, 'unexpected_response', 'the response is not JSON', undefined, thrown);
    });
    if (!response.ok) throw errorFromResponse(response, error);
    return data as T;
  }

  async #loadEntitlements(user: EntitlementsUser, etag: string | undefined) {
    const header = etag ? { 'If-None-Match': etag } : {};
    const { data, error, response } =
      typeof user === 'string'
        ? await this.raw.GET('/entitlements/{user_id}', { params: { path: { user_id: user }, header } })
        : await this.raw.GET('/entitlements', {
            params: { query: user ? { external_user_id: user.externalUserId } : {}, header },
          });
    if (response.status === 304) return undefined;
    if (!data) throw errorFromResponse(response, error);
    return { entitlements: data, etag: response.headers.get('etag') ?? undefined };
  }

  /** Sends a request on behalf of the signed-in user, if there is one. Refreshes the access token if it was rejected. */
  async #authorize(request: Request): Promise<Response> {
    const prepared = await prepareRequest(request);
    if (prepared.headers.has('authorization')) return send(prepared, this.#settings);
    const accessToken = this.#options.accessToken ?? (await this.#abortable(this.#session?.accessToken(), prepared));
    if (!accessToken) return send(prepared, this.#settings);
    const response = await this.#sendAs(prepared, accessToken);
    if (response.status !== 401 || (await readCode(response)) !== 'invalid_token') return response;
    this.#entitlements.invalidate();
    const next = await this.#abortable(this.#session?.refresh(accessToken), prepared);
    return next ? this.#sendAs(prepared, next) : response;
  }

  #sendAs(request: PreparedRequest, accessToken: string): Promise<Response> {
    request.headers.set('authorization', `Bearer ${accessToken}`);
    return send(request, this.#settings);
  }

  /** Waits for a shared promise, but no longer than until the call is aborted. */
  #abortable<T>(promise: Promise<T> | undefined, { signal }: PreparedRequest): Promise<T | undefined> {
    if (!promise) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason as Error);
      if (signal.aborted) abort();
      signal.addEventListener('abort', abort, { once: true });
      promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
    });
  }

  #request(method: string, path: string, signal: AbortSignal): PreparedRequest {
    const headers = new Headers({ 'client-id': this.#options.clientId });
    if (this.#options.accessToken) headers.set('authorization', `Bearer ${this.#options.accessToken}`);
    return { url: this.#options.url + path, method, headers, body: undefined, signal };
  }

  /** Sends a request of the session, which has no access token or a given one. */
  async #postUnauthorized(path: string, body: unknown, { accessToken, signal }: PostOptions): Promise<unknown> {
    const request = this.#request('POST', path, signal ?? new AbortController().signal);
    if (accessToken) request.headers.set('authorization', `Bearer ${accessToken}`);
    if (body !== undefined) {
      request.headers.set('content-type', 'application/json');
      request.body = new TextEncoder().encode(JSON.stringify(body)).buffer;
    }
    const response = await send(request, this.#settings);
    const json = parseJson(await response.text());
    if (!response.ok) throw errorFromResponse(response, json);
    return json;
  }
}

/** Returns 128 random bits. `crypto.randomUUID` exists in secure contexts only. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
