// Remembers which mails were sent, in a file with one JSON object per line.
//
// An entry is written when the SMTP server has accepted the mail. If the process is killed between the two, the mail is sent a second
// time, with the same Message-ID; otherwise it would be lost. One process writes the file. For several, use a table with a unique
// constraint on the key instead.

import { open, readFile, rename, writeFile } from 'node:fs/promises';

/** Webhooks are repeated for some days at most, so older entries are removed at the start. */
const MAX_AGE = 90 * 24 * 60 * 60 * 1000;

export class SentLog {
  /** @type {Set<string>} */
  #keys = new Set();
  /** The mails that are being sent. @type {Map<string, Promise<void>>} */
  #sending = new Map();
  #file;

  /** @param {import('node:fs/promises').FileHandle} file @param {Iterable<string>} keys */
  constructor(file, keys) {
    this.#file = file;
    this.#keys = new Set(keys);
  }

  /** Reads the file, if there is one, and writes it again without old entries. @param {string} path */
  static async open(path) {
    const text = await readFile(path, 'utf8').catch((error) => {
      if (error.code !== 'ENOENT') throw error;
      return '';
    });
    const entries = text.split('\n').flatMap(parseEntry).filter(({ at }) => Date.parse(at) > Date.now() - MAX_AGE);
    await writeFile(`${path}.new`, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''), { flush: true });
    await rename(`${path}.new`, path);
    return new SentLog(await open(path, 'a'), entries.map(({ key }) => key));
  }

  /**
   * Calls `send`, unless it was called for this key before. Concurrent calls with one key share the result. If `send` fails, a later
   * call sends again. `send` returns what became of the mail, for the file.
   *
   * @param {string} key @param {() => Promise<string>} send
   */
  async once(key, send) {
    if (this.#keys.has(key)) return;
    let sending = this.#sending.get(key);
    if (!sending) {
      sending = this.#sendAndRecord(key, send).finally(() => this.#sending.delete(key));
      this.#sending.set(key, sending);
    }
    await sending;
  }

  async close() {
    await Promise.allSettled(this.#sending.values());
    await this.#file.close();
  }

  /** @param {string} key @param {() => Promise<string>} send */
  async #sendAndRecord(key, send) {
    const result = await send();
    this.#keys.add(key);
    await this.#file.appendFile(`${JSON.stringify({ key, result, at: new Date().toISOString() })}\n`);
    await this.#file.sync();
    console.log(result, key);
  }
}

/** Returns the entry of a line, or none if the line is empty or was written in part. @param {string} line */
function parseEntry(line) {
  try {
    /** @type {{ key: string, result: string, at: string }} */
    const entry = JSON.parse(line);
    return [entry];
  } catch {
    return [];
  }
}
