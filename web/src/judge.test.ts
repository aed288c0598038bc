import { describe, expect, it } from 'vitest';
import { ofRow, ofVariant, ofVerdict } from './judge';
import { findRow, rowQuery, usedOf } from './views/card_rows';
import { scaleOf } from './parts/strip';
import { racesPath } from './views/races_path';
import type { Row } from './api/shapes';

describe('judgements', () => {
  it('an interval that holds zero is a dead heat, whatever the gain', () => {
    expect(ofRow({ variant: 'u2', gain_pct: 0.28, ci: [-0.03, 0.59] }).words).toBe('dead heat');
    expect(ofVariant({ name: 'u2', gain_pct: 0.28, ci: [-0.03, 0.59] }).words).toBe('dead heat with base');
    expect(ofRow({ variant: 'u2', gain_pct: 2, ci: [1, 3] }).words).toBe('faster');
    expect(ofVariant({ name: 'u2', gain_pct: -2, ci: [-3, -1] }).words).toBe('slower');
  });
  it('nothing is claimed without an interval', () => {
    expect(ofRow({ variant: 'u2', gain_pct: 2 }).words).toBe('no interval yet');
    expect(ofRow({ variant: '' }).words).toBe('too few samples');
    expect(ofRow({ variant: 'base', gain_pct: 0 }).words).toBe('base stands');
    expect(ofVariant({ name: 'u8' }).words).toBe('not timed');
  });
  it('verdicts of races, also unknown ones', () => {
    expect(ofVerdict({ verdict: 'dead-heat', winner: 'base' })).toEqual({ tone: 'even', words: 'dead heat' });
    expect(ofVerdict({ verdict: 'winner', winner: 'base' }).words).toBe('base stands');
    expect(ofVerdict({ verdict: 'new-word', winner: '' }).words).toBe('new-word');
  });
});

describe('rows of a card', () => {
  const rows = [{ program: 'a', class: {}, backend: 'cuda', metric: '' }, { program: 'a', class: { n: 1 }, backend: 'cuda', metric: '' }, { program: 'a', class: { n: 1 }, backend: 'cuda', metric: 'energy' }] as unknown as Row[];
  it('each is found by its own address, and the first where the address names none', () => {
    for (const row of rows) expect(findRow(rows, rowQuery(row))).toBe(row);
    expect(findRow(rows, {})).toBe(rows[0]);
    expect(findRow(rows, { program: 'z' })).toBe(rows[0]);
    expect(findRow([], {})).toBeUndefined();
  });
});

describe('which of several back ends’ rows the tuning takes', () => {
  const row = (backend: string, leads?: boolean, choice = 'race') => ({ program: 'a', class: { n: 1 }, backend, metric: '', choice, leads }) as unknown as Row;
  it('is told of both, and of none where the hub does not tell', () => {
    const [cuda, opencl] = [row('cuda', true), row('opencl', false)];
    expect([usedOf(cuda, [cuda, opencl]), usedOf(opencl, [cuda, opencl])]).toEqual(['used', 'not used']);
    const old = [row('cuda'), row('opencl')] as const;
    expect(old.map((r) => usedOf(r, old))).toEqual([undefined, undefined]);
  });
  it('is no question of a row alone, or without a choice', () => {
    const alone = row('cuda', true);
    expect(usedOf(alone, [alone])).toBeUndefined();
    const none = row('opencl', false, 'none');
    expect(usedOf(none, [alone, none])).toBeUndefined();
  });
});

describe('scales of strips', () => {
  it('hold zero and all gains', () => {
    const scale = scaleOf([{ gain_pct: 3, ci: [2, 4] }, { gain_pct: -1 }]);
    expect(scale.lo).toBeLessThan(-1);
    expect(scale.hi).toBeGreaterThan(4);
  });
  it('are not spoilt by one wild interval, and exist without any gain', () => {
    const scale = scaleOf([{ gain_pct: 1, ci: [-500, 500] }, { gain_pct: 2, ci: [1.9, 2.1] }]);
    expect(scale.hi - scale.lo).toBeLessThan(10);
    const none = scaleOf([]);
    expect(none.hi).toBeGreaterThan(none.lo);
    expect(Number.isFinite(none.step)).toBe(true);
  });
});

describe('the path of a page of races', () => {
  it('asks what the hub knows, and nothing else', () => {
    expect(racesPath({ card: ' X@1 ', sort: '-gain', before: 'id' })).toBe('v1/races?limit=50&card=X%401&before=id');
  });
  it('a day is its midnight', () => {
    expect(racesPath({ since: '2026-03-01' })).toBe('v1/races?limit=50&since=2026-03-01T00%3A00%3A00Z');
  });
});
