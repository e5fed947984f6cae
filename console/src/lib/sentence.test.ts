import { expect, test } from 'vitest';
import { piecesOf } from './sentence';

test('times become pieces of their own', () => {
  expect(piecesOf('Expires on 2026-12-13 03:10 unless 49.00 USD is paid.')).toEqual([
    { text: 'Expires on ' },
    { at: '2026-12-13T03:10:00Z' },
    { text: ' unless 49.00 USD is paid.' },
  ]);
});

test('markup stays text', () => {
  expect(piecesOf('<b>2026</b>')).toEqual([{ text: '<b>2026</b>' }]);
});
