import { expect, test } from 'vitest';
import { csvOf } from './csv';

test('fields with commas, quotes and line breaks are quoted', () => {
  const text = csvOf([{ id: 'a', note: 'say "x", then\ny', price: 19.99, none: null }]);
  expect(text).toBe('id,note,price,none\r\na,"say ""x"", then\ny",19.99,\r\n');
});

test('text that looks like a formula is defused, numbers are not', () => {
  expect(csvOf([{ email: '=1+1@x', delta: -5 }])).toBe("email,delta\r\n'=1+1@x,-5\r\n");
});
