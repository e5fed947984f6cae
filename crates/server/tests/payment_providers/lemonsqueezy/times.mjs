/** Formats seconds as Lemon Squeezy does. */
export function timestamp(seconds) {
  return seconds == null ? null : new Date(seconds * 1000).toISOString().replace('.000Z', '.000000Z');
}

/** Returns `created_at` and `updated_at`, which every resource has. */
export function formatTimes(record) {
  return { created_at: timestamp(record.created_at), updated_at: timestamp(record.updated_at) };
}
