import { describe, expect, it } from 'vitest';
import * as F from './format';

describe('numbers', () => {
  it('gains have a sign, a real minus and no minus zero', () => {
    expect(F.gain(2.071)).toBe('+2.07%');
    expect(F.gain(-0.7)).toBe('−0.70%');
    expect(F.gain(0)).toBe('0.00%');
    expect(F.gain(-0.001)).toBe('0.00%');
    expect(F.gain(12.34)).toBe('+12.3%');
    expect(F.gain(240)).toBe('+240%');
    expect(F.gain(undefined)).toBe('–');
  });
  it('intervals name both ends', () => {
    expect(F.interval([1.8, 2.4])).toBe('+1.80 to +2.40%');
    expect(F.interval([-0.2, 0.3])).toBe('−0.20 to +0.30%');
    expect(F.interval(undefined)).toBe('');
  });
  it('rates keep four digits and their unit', () => {
    expect(F.rate(118.34, 'MH/s')).toBe('118.3 MH/s');
    expect(F.rate(0.2543, 'MH/s/W')).toBe('0.2543 MH/s/W');
    expect(F.rate(3.914, '')).toBe('3.914');
    expect(F.rate(14001, 'MHz')).toBe('14,001 MHz');
    expect(F.rate(1.45e12, 'op/s')).toBe('1.45 × 10¹² op/s');
    expect(F.rate(0, 'W')).toBe('0 W');
    expect(F.rate(0.00001, 'W')).toBe('1.00 × 10⁻⁵ W');
    expect(F.rate(undefined, 'W')).toBe('–');
  });
  it('counts are grouped, and agree with their noun', () => {
    expect(F.count(1234567)).toBe('1,234,567');
    expect(F.count(999)).toBe('999');
    expect(F.counted(1, 'race')).toBe('1 race');
    expect(F.counted(2, 'canary', 'canaries')).toBe('2 canaries');
  });
  it('bytes', () => {
    expect(F.bytes(512)).toBe('512 bytes');
    expect(F.bytes(734003200)).toBe('700.0 MiB');
    expect(F.bytes(2 ** 50)).toBe('1,024 TiB');
  });
});

describe('times', () => {
  const now = Date.parse('2026-03-01T12:00:00Z');
  it('ages take the largest unit that says something', () => {
    expect(F.ago('2026-03-01T11:59:48Z', now)).toBe('12 s ago');
    expect(F.ago('2026-03-01T11:40:00Z', now)).toBe('20 min ago');
    expect(F.ago('2026-03-01T02:00:00Z', now)).toBe('10 h ago');
    expect(F.ago('2026-02-20T12:00:00Z', now)).toBe('9 days ago');
  });
  it('a stamp of the future is now, and what is no stamp is shown as it is', () => {
    expect(F.ago('2026-03-01T12:05:00Z', now)).toBe('now');
    expect(F.ago('yesterday', now)).toBe('yesterday');
    expect(F.ago('', now)).toBe('–');
  });
  it('stamps are UTC', () => {
    expect(F.stamp('2026-03-01T12:00:00.25Z')).toBe('2026-03-01 12:00:00 UTC');
    expect(F.shortStamp('2026-03-01T12:00:00Z')).toBe('2026-03-01 12:00');
    expect(F.until('2026-03-11T12:00:00Z', now)).toBe('in 10 days');
    expect(F.until('2026-02-28T12:00:00Z', now)).toBe('24 h ago');
  });
});

describe('words', () => {
  it('classes, exits and labels', () => {
    expect(F.classText({ loads: 128, wide: false, type: 'int8' })).toBe('loads=128, wide=false, type=int8');
    expect(F.classText({})).toBe('');
    expect(F.exitsText({ stayed: 9, gate: 1, compile: 2, budget: 0 })).toBe('compile 2, gate 1');
    expect(F.cardName('NVIDIA_H200')).toBe('NVIDIA H200');
  });
  it('an interval that holds zero decides nothing', () => {
    expect(F.undecided([-0.1, 0.2])).toBe(true);
    expect(F.undecided([0, 0.2])).toBe(true);
    expect(F.undecided([0.1, 0.2])).toBe(false);
    expect(F.undecided(undefined)).toBe(false);
  });
});

describe('shares', () => {
  it('have a digit where it says something', () => {
    expect(F.percent(100)).toBe('100%');
    expect(F.percent(99.64)).toBe('99.6%');
  });
});
