import { describe, expect, it } from 'vitest';
// @ts-expect-error the mock is plain JavaScript
import { emptyFleet, makeFleet, makeRecord } from '../../test/mock/data.mjs';
import { ShapeError } from './check';
import * as shapes from './shapes';

const fleet = makeFleet({ now: Date.parse('2026-03-01T12:00:00Z') });

function problem(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ShapeError);
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

describe('answers', () => {
  it('of a whole and of an empty fleet are read', () => {
    for (const f of [fleet, emptyFleet()]) {
      expect(shapes.summary({ schema: 1, ...f.summary }, 'x').races).toBe(f.summary.races);
      expect(shapes.cards({ schema: 1, updated: '', window_days: 7, races: 0, cards: f.cards }, 'x').cards).toHaveLength(f.cards.length);
      expect(shapes.machines({ schema: 1, machines: f.machines }, 'x').machines).toHaveLength(f.machines.length);
      expect(shapes.races({ schema: 1, races: f.races }, 'x').next).toBe('');
      expect(shapes.regressions({ schema: 1, ...f.regressions }, 'x').regressions).toHaveLength(f.regressions.regressions.length);
      expect(shapes.rollout({ schema: 1, ...f.rollout }, 'x').machines).toBe(f.rollout.machines);
      expect(shapes.knobs({ schema: 1, programs: f.audit.programs }, 'x').programs).toHaveLength(f.audit.programs.length);
    }
    expect(shapes.oneKnobs({ schema: 1, program: 'lottery', editions: fleet.audit.reports.lottery }, 'x').editions).toHaveLength(2);
  });
  it('one card is read beside schema and below card', () => {
    const [card] = fleet.cards;
    expect(shapes.oneCard({ schema: 1, ...card }, 'x').key).toBe(card.key);
    expect(shapes.oneCard({ schema: 1, card }, 'x').rows[0]?.variants.length).toBe(10);
  });
  it('a race keeps the keys that are not known here', () => {
    const race = shapes.oneRace({ schema: 1, record: makeRecord(fleet.races[0], fleet.cards[0]), batch: { verified: true } }, 'x');
    expect(race.raw['of_a_newer_writer']).toEqual({ kept: true });
    expect(race.record.variants['u8']).toBeUndefined();
    expect(race.batch?.verified).toBe(true);
  });
  it('rows without what the list leaves out', () => {
    const { variants: _v, set_aside: _s, why: _w, ...row } = fleet.cards[0].rows[0];
    const { cards } = shapes.cards({ schema: 1, cards: [{ key: 'k', rows: [row] }] }, 'x');
    expect(cards[0]?.rows[0]?.variants).toEqual([]);
    expect(cards[0]?.rows[0]?.why).toBe('');
  });
});

describe('what is refused, and how it is named', () => {
  it('another schema', () => {
    expect(problem(() => shapes.summary({ ...fleet.summary, schema: 2 }, 'v1/summary'))).toContain('v1/summary.schema: expected 1, found 2');
    expect(problem(() => shapes.summary(fleet.summary, 'v1/summary'))).toContain('found nothing');
  });
  it('a wrong type, with its place', () => {
    expect(problem(() => shapes.cards({ schema: 1, cards: [{ key: 'k', rows: [{ program: 7 }] }] }, 'v1/cards'))).toBe('v1/cards.cards[0].rows[0].program: expected text, found a number');
    expect(problem(() => shapes.races({ schema: 1, races: {} }, 'v1/races'))).toBe('v1/races.races: expected a list, found an object');
    expect(problem(() => shapes.races([], 'v1/races'))).toContain('found a list');
    expect(problem(() => shapes.machines({ schema: 1, machines: [null] }, 'm'))).toContain('m.machines[0]: expected an object, found null');
  });
  it('numbers that are none, and broken intervals', () => {
    const row = { program: 'p', gain_pct: Infinity };
    expect(problem(() => shapes.cards({ schema: 1, cards: [{ key: 'k', rows: [row] }] }, 'c'))).toContain('gain_pct: expected a number');
    expect(problem(() => shapes.cards({ schema: 1, cards: [{ key: 'k', rows: [{ program: 'p', ci: [1] }] }] }, 'c'))).toContain('expected [lo, hi]');
    expect(problem(() => shapes.summary({ schema: 1, ...fleet.summary, races: -1 }, 's'))).toContain('expected a count');
  });
});
