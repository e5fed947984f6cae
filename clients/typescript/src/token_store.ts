import type { components } from './schema.js';
import { sleep } from './transport.js';

/** The tokens of a session. */
export interface SessionTokens {
  userId: string;
  /** Opaque, works once. */
  refreshToken: string;
  /** Not stored by every store: without it, the session refreshes. */
  accessToken?: string;
  /** When the access token expires, in milliseconds since 1970 by the clock of this machine. */
  expiresAt?: number;
}

type MaybePromise<T> = T | Promise<T>;

/**
 * Keeps the tokens of one session. Implement it to keep them elsewhere, for example in a database that the instances of your
 * server share.
 */
export interface TokenStore {
  /** Returns the newest tokens; undefined when signed out. */
  read(): MaybePromise<SessionTokens | undefined>;
  /** Stores new tokens, or undefined to sign out. The tokens must be stored when the promise resolves. */
  write(tokens: SessionTokens | undefined): MaybePromise<void>;
  /** Runs a refresh while no other tab, process or call runs one. */
  lock<T>(refresh: () => Promise<T>): Promise<T>;
  /** Calls the listener when another tab or process has written. */
  subscribe?(listener: () => void): void;
}

/** Refreshes this long before the access token expires, in milliseconds: the request takes time too. */
const EXPIRY_MARGIN = 10_000;

/** Converts the response of sign-in, sign-up or refresh-token. */
export function sessionTokens(tokens: components['schemas']['Tokens']): SessionTokens {
  return {
    userId: tokens.auth_id,
    refreshToken: tokens.refresh_token,
    accessToken: tokens.access_token,
    expiresAt: Date.now() + tokens.expires_in * 1000 - EXPIRY_MARGIN,
  };
}

/** Keeps tokens in memory: for servers, scripts, and web pages on shared computers. One store per user. */
export function memoryTokenStore(tokens?: SessionTokens): TokenStore {
  let current = tokens;
  let queue: Promise<unknown> = Promise.resolve();
  return {
    read: () => current,
    write: (next) => {
      current = next;
    },
    lock: (refresh) => {
      const result = queue.then(refresh);
      queue = result.catch(() => undefined);
      return result;
    },
  };
}

/** The state that tabs share. The highest sequence is the newest one. */
interface SharedState {
  sequence: number;
  tokens?: SessionTokens | undefined;
}

/**
 * How long the lock is kept after a refresh, in milliseconds, so that the tokens reach the other tabs before one of them gets the
 * lock.
 */
const PROPAGATION_TIMEOUT = 100;

/**
 * Shares a session between all tabs of an origin. The refresh token is in `localStorage`. The access token is in memory, and goes
 * to the other tabs through a `BroadcastChannel`. A Web Lock lets one tab refresh at a time.
 */
export function browserTokenStore(name = 'perennial.session'): TokenStore {
  let memory: SharedState = { sequence: 0 };
  let hasWritten = false;
  const listeners: (() => void)[] = [];
  const channel = new BroadcastChannel(name);

  /** Takes the newer one of two states. A tab that was frozen may have missed messages. */
  const newest = (): SharedState => {
    const stored = readStorage(name);
    if (stored.sequence > memory.sequence) memory = stored;
    return memory;
  };

  channel.addEventListener('message', ({ data }: MessageEvent<SharedState>) => {
    if (data.sequence < memory.sequence) return;
    memory = data;
    for (const listener of listeners) listener();
  });

  return {
    read: () => newest().tokens,
    write: (tokens) => {
      memory = { sequence: Math.max(newest().sequence + 1, Date.now()), tokens };
      writeStorage(name, memory);
      channel.postMessage(memory);
      hasWritten = true;
    },
    lock: (refresh) => {
      // Without locks (in old browsers), tabs that refresh within 30 seconds of each other get the same tokens.
      if (!globalThis.navigator?.locks) return refresh();
      return new Promise((resolve, reject) => {
        const run = async () => {
          hasWritten = false;
          await refresh().then(resolve, reject);
          // Browsers slow down the timers of hidden pages, which would keep the lock.
          if (hasWritten && globalThis.document?.visibilityState === 'visible') await sleep(PROPAGATION_TIMEOUT);
        };
        navigator.locks.request(name, run).catch(reject);
      });
    },
    subscribe: (listener) => {
      listeners.push(listener);
    },
  };
}

function readStorage(name: string): SharedState {
  try {
    const state = JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<SharedState>;
    return { sequence: Number(state.sequence ?? 0), tokens: state.tokens };
  } catch {
    // Storage is disabled, or has another value.
    return { sequence: 0 };
  }
}

/** Stores everything but the access token. */
function writeStorage(name: string, { sequence, tokens }: SharedState): void {
  const kept = tokens && { userId: tokens.userId, refreshToken: tokens.refreshToken };
  try {
    localStorage.setItem(name, JSON.stringify({ sequence, tokens: kept }));
  } catch {
    // Storage is disabled or full: the session lasts as long as the tabs.
  }
}
