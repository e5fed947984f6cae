/** A piece of a sentence: text, or a time to show as such. */
export type Piece = { text: string } | { at: string };

/** Splits a sentence of the API at its times, which have the form "2026-11-12 09:30" in UTC. */
export function piecesOf(sentence: string): Piece[] {
  return sentence.split(/(\b\d{4}-\d{2}-\d{2} \d{2}:\d{2}\b)/).flatMap((text, index): Piece[] => {
    if (text === '') return [];
    return index % 2 ? [{ at: `${text.replace(' ', 'T')}:00Z` }] : [{ text }];
  });
}
