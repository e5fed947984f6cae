import { randomFillSync } from 'node:crypto';

const ALPHABET = Buffer.from('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789');
/** Random letters are drawn in blocks, because a system call per identifier would dominate bulk loads. */
const pool = Buffer.alloc(65_536);
let used = pool.length;

/** Returns an identifier such as `sub_1a2B3c…`. */
export function newId(prefix, length = 24) {
  if (used + length > pool.length) {
    randomFillSync(pool);
    for (let at = 0; at < pool.length; at += 1) pool[at] = ALPHABET[pool[at] % ALPHABET.length];
    used = 0;
  }
  used += length;
  return `${prefix}_${pool.latin1Slice(used - length, used)}`;
}
