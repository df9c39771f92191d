/** What a process wrote to: 1 is stdout, 2 stderr. */
export type Tag = 1 | 2;

/** A run of output bytes with one tag. `from` is the position of its first byte. */
export interface Piece {
  readonly tag: Tag;
  readonly from: number;
  readonly bytes: Uint8Array;
}

export function endOf(piece: Piece): number {
  return piece.from + piece.bytes.length;
}
