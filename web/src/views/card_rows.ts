// A card has one row a program, class, back end and metric; how rows are named in addresses.

import type { Card, Cards, Row } from '../api/shapes';
import { classText } from '../format';
import type { Query } from '../route';

export interface FlatRow {
  id: string;
  card: Card;
  row: Row;
}

export function rowName(row: Row): string {
  return JSON.stringify([row.program, classText(row.class), row.backend, row.metric]);
}

export function flat(cards: Cards): FlatRow[] {
  return cards.cards.flatMap((card) => card.rows.map((row) => ({ id: `${card.key} ${rowName(row)}`, card, row })));
}

export function rowQuery(row: Row): Query {
  return { program: row.program, class: classText(row.class), backend: row.backend, metric: row.metric };
}

export type Standing = 'used' | 'not used';

/** Whether the tuning takes this row, where there is another for the same program and class; undefined: no question, or not told. */
export function usedOf(row: Row, rows: readonly Row[]): Standing | undefined {
  const same = (r: Row) => r.program === row.program && classText(r.class) === classText(row.class);
  if (row.leads === undefined || row.choice === 'none') return undefined;
  if (!row.leads) return 'not used';
  return rows.filter(same).length > 1 ? 'used' : undefined;
}

/** The row that an address means: all it names must agree; else the first. */
export function findRow(rows: readonly Row[], query: Query): Row | undefined {
  const asked = (['program', 'class', 'backend', 'metric'] as const).filter((key) => query[key] !== undefined);
  return rows.find((row) => asked.every((key) => rowQuery(row)[key] === query[key])) ?? rows[0];
}
