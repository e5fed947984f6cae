import { PerennialError } from './errors.js';
import type { components } from './schema.js';
import { sessionTokens, type SessionTokens, type TokenStore } from './token_store.js';

/** An identity provider's access token and the user's email address. */
export type Credentials = components['schemas']['Credentials'];

type Tokens = components['schemas']['Tokens'];

/** The options of a request that a session sends. */
export interface PostOptions {
  accessToken?: string;
  signal?: AbortSignal | undefined;
}

/** Sends a POST request with this access token only. */
type Post = (path: AuthenticationPath, body: unknown, options?: PostOptions) => Promise<unknown>;

type AuthenticationPath =
  | '/authentication/sign-in'
  | '/authentication/sign-up'
  | '/authentication/refresh-token'
  | '/authentication/tokens/logout';

/** The session of a user, from `perennial.session`. */
export class Session {
  readonly #store: TokenStore;
  readonly #post: Post;
  readonly #listeners = new Set<(userId: string | undefined) => void>();
  #refreshing: Promise<string | undefined> | undefined;
  /** The user that listeners have been called with. */
  #userId: string | undefined;
  readonly #restored: Promise<void>;

  constructor(store: TokenStore, post: Post) {
    this.#store = store;
    this.#post = post;
    this.#restored = this.#readUserId().then((userId) => {
      this.#userId = userId;
    });
    store.subscribe?.(() => void this.#notify());
  }

  /**
   * Signs in with a token of your identity provider. With `signUp`, creates the account if there is none. Returns the user.
   * A sign-in limit can delay it for up to a minute, unless `signal` is aborted.
   */
  async signIn(
    credentials: Credentials,
    options: { signUp?: boolean; signal?: AbortSignal } = {},
  ): Promise<components['schemas']['SessionUser']> {
    const tokens = await this.#exchangeCredentials(credentials, options);
    await this.#write(sessionTokens(tokens));
    return tokens.user;
  }

  /** Ends the session at the service, then in all tabs. If the service cannot be reached, the user stays signed in. */
  async signOut(): Promise<void> {
    const accessToken = await this.accessToken();
    if (accessToken) {
      await this.#post('/authentication/tokens/logout', undefined, { accessToken }).catch((error: unknown) => {
        // The session has ended already.
        if (!hasCode(error, 'invalid_token')) throw error;
      });
    }
    await this.#write(undefined);
  }

  /** Returns the id of the signed-in user; undefined when signed out. Sends no request. */
  async userId(): Promise<string | undefined> {
    return (await this.#store.read())?.userId;
  }

  /** Returns a valid access token, for example for your own server. Refreshes if it has expired; undefined when signed out. */
  async accessToken(): Promise<string | undefined> {
    const tokens = await this.#store.read();
    return currentAccessToken(tokens) ?? (tokens && this.refresh());
  }

  /** Calls the listener when a user has signed in or out, in this tab or another one. Returns a function that removes it. */
  onChange(listener: (userId: string | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Gets new tokens, unless another tab has got them. `rejected` is the access token that the service did not accept. Concurrent
   * calls share one request. Returns undefined if the session has ended.
   */
  refresh(rejected?: string): Promise<string | undefined> {
    this.#refreshing ??= this.#store
      .lock(() => this.#refreshTokens(rejected))
      .finally(() => {
        this.#refreshing = undefined;
      });
    return this.#refreshing;
  }

  async #exchangeCredentials(
    credentials: Credentials,
    { signUp, signal }: { signUp?: boolean; signal?: AbortSignal },
  ): Promise<Tokens> {
    try {
      return (await this.#post('/authentication/sign-in', credentials, { signal })) as Tokens;
    } catch (error) {
      if (!signUp || !hasCode(error, 'account_not_found')) throw error;
    }
    try {
      return (await this.#post('/authentication/sign-up', credentials, { signal })) as Tokens;
    } catch (error) {
      // The response to the first attempt of the sign-up was lost, or another tab has signed up.
      if (!hasCode(error, 'account_exists')) throw error;
      return (await this.#post('/authentication/sign-in', credentials, { signal })) as Tokens;
    }
  }

  /** Runs under the lock, so that the tokens of the store are the newest ones. */
  async #refreshTokens(rejected: string | undefined): Promise<string | undefined> {
    for (;;) {
      const tokens = await this.#store.read();
      const current = currentAccessToken(tokens);
      if (!tokens || (current && current !== rejected)) return current;
      const { refreshToken } = tokens;
      try {
        const body = { refresh_token: refreshToken };
        const next = (await this.#post('/authentication/refresh-token', body)) as Tokens;
        // Stored before the new access token is used. Until then, the old refresh token still works.
        await this.#write(sessionTokens(next));
        return next.access_token;
      } catch (error) {
        // Only this code ends the session. After any other error, the refresh token still works.
        if (!hasCode(error, 'invalid_grant')) throw error;
        // Another tab has replaced the token, without a lock.
        if ((await this.#store.read())?.refreshToken !== refreshToken) continue;
        await this.#write(undefined);
        return undefined;
      }
    }
  }

  async #write(tokens: SessionTokens | undefined): Promise<void> {
    await this.#store.write(tokens);
    await this.#notify();
  }

  /** Returns undefined also if the store fails, which the next call reports. */
  #readUserId(): Promise<string | undefined> {
    return this.userId().catch(() => undefined);
  }

  async #notify(): Promise<void> {
    await this.#restored;
    const userId = await this.#readUserId();
    if (userId === this.#userId) return;
    this.#userId = userId;
    for (const listener of this.#listeners) listener(userId);
  }
}

function currentAccessToken(tokens: SessionTokens | undefined): string | undefined {
  return tokens && Date.now() < (tokens.expiresAt ?? 0) ? tokens.accessToken : undefined;
}

function hasCode(error: unknown, code: PerennialError['code']): boolean {
  return error instanceof PerennialError && error.code === code;
}
