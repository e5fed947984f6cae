import type { components } from './schema.js';

/** What a user may use now. */
export type Entitlements = components['schemas']['Entitlements'];

/** Whose entitlements to read: a user's id, a user by the id in your system, or the signed-in user. */
export type EntitlementsUser = string | { externalUserId: string } | undefined;

/** Reads entitlements; `undefined` if they still have this entity tag. */
export type LoadEntitlements = (
  user: EntitlementsUser,
  etag: string | undefined,
) => Promise<{ entitlements: Entitlements; etag: string | undefined } | undefined>;

interface CacheEntry {
  entitlements: Entitlements;
  etag: string | undefined;
  /** In milliseconds since 1970. */
  expiresAt: number;
}

const MAX_ENTRIES = 10_000;

/**
 * Caches entitlements for a short time. Concurrent misses share one request. Errors are not cached, and an expired entry is never
 * returned. An invalidation also prevents a request in flight from filling the cache.
 */
export class EntitlementsCache {
  readonly #load: LoadEntitlements;
  readonly #ttl: number;
  readonly #entries = new Map<string, CacheEntry>();
  readonly #loading = new Map<string, Promise<Entitlements>>();
  #epoch = 0;

  constructor(ttl: number, load: LoadEntitlements) {
    this.#ttl = ttl;
    this.#load = load;
  }

  read(user: EntitlementsUser): Promise<Entitlements> {
    const key = cacheKey(user);
    const entry = this.#entries.get(key);
    if (entry && Date.now() < entry.expiresAt) return Promise.resolve(entry.entitlements);
    const running = this.#loading.get(key);
    if (running) return running;
    const loading = this.#fill(key, user, entry).finally(() => {
      if (this.#loading.get(key) === loading) this.#loading.delete(key);
    });
    this.#loading.set(key, loading);
    return loading;
  }

  /** Removes the entries of a user, or all. */
  invalidate(userId?: string): void {
    this.#epoch += 1;
    this.#loading.clear();
    for (const [key, { entitlements }] of this.#entries) {
      if (userId === undefined || entitlements.user_id === userId) this.#entries.delete(key);
    }
  }

  /** Removes the entries that an event changes. */
  apply({ type, subject_id, data }: components['schemas']['Event']): void {
    if (type.startsWith('plan.')) this.invalidate();
    else if (type.startsWith('user.')) this.invalidate(subject_id);
    else if (type.startsWith('subscription.')) {
      this.invalidate((data as { user_id?: string }).user_id);
    }
  }

  async #fill(key: string, user: EntitlementsUser, known: CacheEntry | undefined): Promise<Entitlements> {
    const epoch = this.#epoch;
    const started = Date.now();
    const loaded = await this.#load(user, known?.etag);
    // The service sends no body for an unchanged entity tag, which is only sent with a known entry.
    const { entitlements, etag } = loaded ?? (known as CacheEntry);
    if (epoch === this.#epoch) {
      const ends = entitlements.subscriptions.flatMap(({ ends_at }) => (ends_at ? Date.parse(ends_at) : []));
      const expiresAt = Math.min(started + this.#ttl, ...ends);
      // Deleted first, so that the oldest entry is the first one of the map.
      this.#entries.delete(key);
      this.#entries.set(key, { entitlements, etag, expiresAt });
      if (this.#entries.size > MAX_ENTRIES) this.#entries.delete(this.#entries.keys().next().value as string);
    }
    return entitlements;
  }
}

function cacheKey(user: EntitlementsUser): string {
  if (user === undefined) return 'me';
  return typeof user === 'string' ? `id ${user}` : `external ${user.externalUserId}`;
}
