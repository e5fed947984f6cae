import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyze } from '../src/text_report.js';

test('report_counts_words_and_finds_fillers', () => {
  const { words, minutes, parts, longSentences } = analyze('It is really short. It is very clear.');
  assert.deepEqual([words, minutes, longSentences], [8, 1, []]);
  assert.deepEqual(
    parts.filter(({ isFiller }) => isFiller).map(({ text }) => text),
    ['really', 'very'],
  );
  assert.equal(parts.map(({ text }) => text).join(''), 'It is really short. It is very clear.');
});

test('long_sentence_is_found', () => {
  const long = `${'word '.repeat(25)}word.`;
  assert.deepEqual(analyze(`Short. ${long} Short.`).longSentences, [long]);
});

test('empty_text_has_no_words', () => {
  const { words, minutes, score } = analyze('  ');
  assert.deepEqual([words, minutes, score], [0, 1, 0]);
});
