import { errorFromResponse, parseJson, PerennialError } from './errors.js';
import type { components } from './schema.js';
import { retryDelay, sleep } from './transport.js';

/** An event, and the cursor with which a stream continues after it. */
export type StreamedEvent = components['schemas']['Event'] & { cursor: string };

/** Which events to stream. */
export interface EventOptions {
  /** The `cursor` of the last processed event, or `now`. Default: the oldest event that is kept. */
  after?: string | undefined;
  /** Event types separated by commas, such as `subscription.*,plan.updated`. Default: all. */
  types?: string;
  /** Only events about this record. */
  subjectId?: string;
  /** Ends the iteration. */
  signal?: AbortSignal;
}

/** The service sends a comment every 15 seconds. */
const IDLE_TIMEOUT = 40_000;
const RECONNECT = { initialDelay: 500, maxDelay: 30_000 };

/** Opens the stream after a cursor. */
export type OpenEvents = (after: string | undefined, signal: AbortSignal) => Promise<Response>;

/**
 * Yields events in the order in which they were committed. Reconnects after the last event when the connection ends. Throws a
 * {@link PerennialError} if the service refuses the request.
 */
export async function* streamEvents(
  open: OpenEvents,
  { after, signal }: EventOptions,
): AsyncGenerator<StreamedEvent, void, undefined> {
  let cursor = after;
  let failures = 0;
  while (!signal?.aborted) {
    const connection = new AbortController();
    const abort = () => connection.abort(signal?.reason);
    signal?.addEventListener('abort', abort);
    let response: Response | undefined;
    try {
      const timer = setTimeout(() => connection.abort(), IDLE_TIMEOUT);
      response = await open(cursor, connection.signal).finally(() => clearTimeout(timer));
      if (!response.ok) throw errorFromResponse(response, parseJson(await response.text()));
      for await (const message of readMessages(response, connection)) {
        failures = 0;
        cursor = message.id ?? cursor;
        if (message.data && cursor) yield { ...(JSON.parse(message.data) as StreamedEvent), cursor };
      }
    } catch (error) {
      if (!signal?.aborted && !isTemporary(error)) throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
      // Also closes the connection when the consumer leaves the loop.
      connection.abort();
    }
    failures += 1;
    const delay = retryDelay(response, failures, RECONNECT) ?? RECONNECT.maxDelay;
    await sleep(delay, signal).catch(() => undefined);
  }
}

/** Whether a new connection may succeed. Errors of the stream itself are not a {@link PerennialError}. */
function isTemporary(error: unknown): boolean {
  if (!(error instanceof PerennialError)) return !(error instanceof SyntaxError);
  return error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500;
}

/** A message of a stream of server-sent events. */
export interface StreamMessage {
  id: string | undefined;
  data: string;
}

/** Parses server-sent events. Aborts the connection if nothing arrives for 40 seconds. */
async function* readMessages(
  { body }: Response,
  connection: AbortController,
): AsyncGenerator<StreamMessage, void, undefined> {
  if (!body) return;
  const reader = body.getReader();
  const parser = new MessageParser();
  const decoder = new TextDecoder();
  for (;;) {
    const timer = setTimeout(() => connection.abort(), IDLE_TIMEOUT);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    yield* parser.push(decoder.decode(value, { stream: true }));
  }
}

/** Splits text into messages. The text may arrive in any pieces. */
export class MessageParser {
  #rest = '';
  #id: string | undefined;
  #data: string[] = [];

  /** Returns the messages that are complete. */
  push(text: string): StreamMessage[] {
    const messages: StreamMessage[] = [];
    // A line feed after a carriage return may be in the next piece.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line !== '') {
        this.#addField(line);
      } else if (this.#id !== undefined || this.#data.length > 0) {
        messages.push({ id: this.#id, data: this.#data.join('\n') });
        this.#id = undefined;
        this.#data = [];
      }
    }
    return messages;
  }

  #addField(line: string): void {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'id') this.#id = value;
    else if (name === 'data') this.#data.push(value ?? '');
  }
}
