export type ServerSentEvent = { id: string | null; data: string };

/** Reads the events of a `text/event-stream`. An entry without data has a cursor only. */
export async function* readEvents(stream: ReadableStream<Uint8Array>) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- the parts of a stream come one after another
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) yield parseEvent(block);
    }
  } finally {
    reader.releaseLock();
  }
}

export function parseEvent(block: string): ServerSentEvent {
  const valuesOf = (name: string) =>
    block
      .split('\n')
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ''));
  return { id: valuesOf('id').at(-1) ?? null, data: valuesOf('data').join('\n') };
}
