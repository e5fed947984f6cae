import { expect, test } from 'vitest';
import { amount, decimals, money, percent, pluralize } from './money';

test('amount has all decimals of its currency', () => {
  expect(amount(19.9, 'USD')).toBe('19.90');
  expect(amount(1500, 'JPY')).toBe('1,500');
  expect(amount('0.5', 'KWD')).toBe('0.500');
});

test('amount keeps every digit of a decimal string', () => {
  expect(amount('90071992547409931.25', 'USD')).toBe('90,071,992,547,409,931.25');
});

test('amount shows a minus sign, and a plus sign on request', () => {
  expect(money('-39.98', 'EUR')).toBe('−39.98 EUR');
  expect(money('39.98', 'EUR', true)).toBe('+39.98 EUR');
  expect(money('0.00', 'EUR', true)).toBe('0.00 EUR');
});

test('an unknown currency has two decimals', () => {
  expect(decimals('not a currency')).toBe(2);
});

test('percent of an unknown share is a dash', () => {
  expect(percent('0.0310')).toBe('3.1 %');
  expect(percent('-0.0150')).toBe('−1.5 %');
  expect(percent(null)).toBe('–');
});

test('pluralize', () => {
  expect(pluralize(1, 'endpoint')).toBe('1 endpoint');
  expect(pluralize(1200, 'endpoint')).toBe('1,200 endpoints');
});
