// Orders of tables. Absent values come last whichever way a column is sorted; equal rows keep their order.

export type SortValue = number | string | undefined;
export type Direction = 'asc' | 'desc';
export interface Sort {
  key: string;
  direction: Direction;
}

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

export function compare(a: SortValue, b: SortValue): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a), String(b));
}

function absent(value: SortValue): boolean {
  return value === undefined || value === '' || (typeof value === 'number' && Number.isNaN(value));
}

export function sorted<R>(rows: readonly R[], value: (row: R) => SortValue, direction: Direction): R[] {
  const sign = direction === 'asc' ? 1 : -1;
  return rows
    .map((row, i) => ({ row, i, v: value(row) }))
    .sort((a, b) => {
      const none = Number(absent(a.v)) - Number(absent(b.v));
      if (none !== 0) return none;
      return (absent(a.v) ? 0 : sign * compare(a.v, b.v)) || a.i - b.i;
    })
    .map(({ row }) => row);
}

/** "-gain" is the column gain, largest first. */
export function parseSort(text: string): Sort | undefined {
  if (!/^-?[a-z_]+$/.test(text)) return undefined;
  return text.startsWith('-') ? { key: text.slice(1), direction: 'desc' } : { key: text, direction: 'asc' };
}

export function formatSort(sort: Sort): string {
  return (sort.direction === 'desc' ? '-' : '') + sort.key;
}

/** What a press on a column's button does: its own direction first, then the other. */
export function press(now: Sort | undefined, key: string, first: Direction): Sort {
  if (now?.key !== key) return { key, direction: first };
  return { key, direction: now.direction === 'asc' ? 'desc' : 'asc' };
}

/** Whether all words of `filter` stand somewhere in the texts. */
export function matches(filter: string, ...texts: string[]): boolean {
  const all = texts.join('\n').toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}
