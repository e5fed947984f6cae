import assert from 'node:assert/strict';
import test from 'node:test';
import { MessageParser } from '../../dist/events.js';

const STREAM = ':\nid: a\n\nid: b\nevent: plan.created\ndata: {"x":\ndata: 1}\n\n: comment\r\nid:c\r\ndata:2\r\n\r\n';
const MESSAGES = [
  { id: 'a', data: '' },
  { id: 'b', data: '{"x":\n1}' },
  { id: 'c', data: '2' },
];

test('messages are the same for all pieces of the text', () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parser = new MessageParser();
    const messages = [];
    for (let at = 0; at < STREAM.length; at += size) messages.push(...parser.push(STREAM.slice(at, at + size)));
    assert.deepEqual(messages, MESSAGES, `pieces of ${size}`);
  }
});

test('an incomplete message is not returned', () => {
  assert.deepEqual(new MessageParser().push('id: a\ndata: 1\n'), []);
});
