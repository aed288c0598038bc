// Which races are asked for: the filters that the hub knows.

import type { Query } from '../route';

export const fields = [
  ['card', 'Card', 'key or label'],
  ['program', 'Program', 'lottery'],
  ['winner', 'Winner', 'u2-ldg'],
  ['machine', 'Machine', 'fingerprint'],
  ['driver', 'Driver', '580.95.05'],
  ['backend', 'Back end', 'cuda'],
  ['silicon', 'Silicon', '16 hex digits'],
  ['since', 'Since', '2026-03-01T00:00:00Z'],
  ['until', 'Until', '2026-03-02T00:00:00Z'],
] as const;

export const rare: readonly string[] = ['driver', 'backend', 'silicon', 'since', 'until'];

/** "2026-03-01" is taken as its midnight: the hub wants whole stamps. */
function whole(key: string, value: string): string {
  const day = (key === 'since' || key === 'until') && /^\d{4}-\d\d-\d\d$/.test(value);
  return day ? `${value}T00:00:00Z` : value;
}

export function racesPath(query: Query): string {
  const asked: Query = { limit: '50' };
  for (const key of [...fields.map(([name]) => name), 'before']) {
    const value = query[key]?.trim();
    if (value) asked[key] = whole(key, value);
  }
  return `v1/races?${new URLSearchParams(asked).toString()}`;
}
