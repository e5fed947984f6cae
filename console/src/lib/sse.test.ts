import { expect, test } from 'vitest';
import { readEvents } from './sse';

async function read(...parts: Uint8Array[]) {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
  const events = [];
  for await (const event of readEvents(stream)) events.push(event);
  return events;
}

const bytes = (text: string) => new TextEncoder().encode(text);

test('an event may arrive in several parts', async () => {
  const parts = ['id: a\nevent: plan.cre', 'ated\ndata: {"x":', '1}\n', '\nid: b\n'];
  expect(await read(...parts.map(bytes))).toEqual([{ id: 'a', data: '{"x":1}' }]);
});

test('a comment has no data, and may have a cursor', async () => {
  expect(await read(bytes(':\n\n:\nid: c\n\n'))).toEqual([
    { id: null, data: '' },
    { id: 'c', data: '' },
  ]);
});

test('a character may arrive in two parts', async () => {
  const text = bytes('data: é\n\n');
  expect(await read(text.slice(0, 7), text.slice(7))).toEqual([{ id: null, data: 'é' }]);
});
