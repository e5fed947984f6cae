import { piecesOf } from '../lib/sentence';
import { Time } from './values';

/** A sentence of the API, with its times shown as such. */
export function Sentence({ text }: { text: string }) {
  return piecesOf(text).map((piece, index) =>
    'at' in piece ? (
      // oxlint-disable-next-line react/no-array-index-key -- the pieces of a sentence do not move
      <Time key={index} at={piece.at} format="moment" />
    ) : (
      piece.text
    ),
  );
}
