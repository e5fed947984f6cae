// What the product does: finds long sentences and filler words in a text.

const WORDS_PER_MINUTE = 230;
const MAX_SENTENCE_WORDS = 25;
const FILLERS = new Set(
  `actually basically certainly clearly definitely essentially extremely fairly honestly just literally obviously quite rather really
  simply somewhat totally truly utterly very`.split(/\s+/),
);

/**
 * @typedef {object} TextReport
 * @property {number} words
 * @property {number} minutes To read it, at least 1.
 * @property {string[]} longSentences
 * @property {{ text: string, isFiller: boolean }[]} parts The whole text, with its filler words.
 * @property {number} score The Flesch reading ease: 0 (hard) to 100 (easy).
 */

/**
 * @param {string} text
 * @returns {TextReport}
 */
export function analyze(text) {
  const words = wordsOf(text);
  const sentences = text.match(/[^.!?]+[.!?]*/g)?.map((sentence) => sentence.trim()) ?? [];
  const spoken = sentences.filter((sentence) => wordsOf(sentence).length > 0);
  const syllables = words.reduce((sum, word) => sum + syllablesOf(word), 0);
  const ease = 206.835 - 1.015 * (words.length / spoken.length) - 84.6 * (syllables / words.length);
  return {
    words: words.length,
    minutes: Math.max(1, Math.round(words.length / WORDS_PER_MINUTE)),
    longSentences: spoken.filter((sentence) => wordsOf(sentence).length > MAX_SENTENCE_WORDS),
    parts: text.split(/(\p{L}+)/u).map((part) => ({ text: part, isFiller: FILLERS.has(part.toLowerCase()) })),
    score: words.length === 0 ? 0 : Math.round(Math.min(100, Math.max(0, ease))),
  };
}

/** @param {string} text */
const wordsOf = (text) => text.match(/[\p{L}\p{N}'’-]+/gu) ?? [];

/** Estimates the syllables of an English word. @param {string} word */
function syllablesOf(word) {
  const groups = word
    .toLowerCase()
    .replace(/e$/, '')
    .match(/[aeiouy]+/g);
  return Math.max(1, groups?.length ?? 0);
}
