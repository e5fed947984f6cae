import { randomFillSync } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
/** Random bytes are drawn in blocks, because a system call per identifier would dominate bulk loads. */
const pool = Buffer.alloc(65_536);
let used = pool.length;

/** Returns an identifier such as `sub_1a2B3c…`. */
export function newId(prefix, length = 24) {
  if (used + length > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  let id = `${prefix}_`;
  for (const end = used + length; used < end; used += 1) id += ALPHABET[pool[used] % ALPHABET.length];
  return id;
}
