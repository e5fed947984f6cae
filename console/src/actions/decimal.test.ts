import { expect, test } from 'vitest';
import { addDecimals, compareDecimals, isDecimal } from './decimal';

test('sums are exact', () => {
  expect(addDecimals('0.1', '0.2')).toBe('0.3');
  expect(addDecimals('19.9', '0.05')).toBe('19.95');
  expect(addDecimals('0', '5.00')).toBe('5.00');
  expect(addDecimals('1500', '500')).toBe('2000');
});

test('amounts compare by value', () => {
  expect(compareDecimals('19.9', '19.90')).toBe(0);
  expect(compareDecimals('9.99', '19.9')).toBe(-1);
  expect(compareDecimals('20', '19.99')).toBe(1);
});

test('only digits with decimals are an amount', () => {
  expect(['1', '1.50', '', '1.', '-1', '1e3', '1,50'].map(isDecimal)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
    false,
  ]);
});
