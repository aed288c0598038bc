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

/** The row that an address means: all it names must agree; else the first. */
export function findRow(rows: readonly Row[], query: Query): Row | undefined {
  const asked = (['program', 'class', 'backend', 'metric'] as const).filter((key) => query[key] !== undefined);
  return rows.find((row) => asked.every((key) => rowQuery(row)[key] === query[key])) ?? rows[0];
}
