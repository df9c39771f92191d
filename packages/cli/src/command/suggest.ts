/** The known word that was probably meant, if one is near enough. */
export function closest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.min(3, Math.floor(word.length / 2) + 1);
  for (const candidate of known) {
    const distance = candidate.startsWith(word) && word.length >= 2 ? 0.5 : distanceOf(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

/** Edits between two words: insert, delete, replace, swap of neighbours. */
function distanceOf(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3 || a.length > 64) return Infinity;
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, before[j - 2]! + 1);
      row[j] = least;
    }
    before = previous;
    previous = row;
  }
  return previous[b.length]!;
}
