import { describe, expect, it } from 'vitest';
import { formatSort, matches, parseSort, press, sorted } from './sort';

const rows = [{ n: 2, s: 'u10' }, { n: undefined, s: 'u2' }, { n: -1, s: '' }, { n: 2, s: 'base' }];

describe('sorting', () => {
  it('absent values are last in both directions, equal ones keep their order', () => {
    expect(sorted(rows, (r) => r.n, 'asc').map((r) => r.s)).toEqual(['', 'u10', 'base', 'u2']);
    expect(sorted(rows, (r) => r.n, 'desc').map((r) => r.s)).toEqual(['u10', 'base', '', 'u2']);
    expect(sorted(rows, (r) => r.s, 'desc').map((r) => r.s)).toEqual(['u10', 'u2', 'base', '']);
  });
  it('words with numbers are in order of the numbers', () => {
    expect(sorted(['rack10', 'rack2', 'rack1'], (r) => r, 'asc')).toEqual(['rack1', 'rack2', 'rack10']);
  });
  it('does not touch what it was given', () => {
    const given = [3, 1, 2];
    sorted(given, (n) => n, 'asc');
    expect(given).toEqual([3, 1, 2]);
  });
  it('a press turns a column around, and begins another in its own direction', () => {
    expect(press(undefined, 'gain', 'desc')).toEqual({ key: 'gain', direction: 'desc' });
    expect(press({ key: 'gain', direction: 'desc' }, 'gain', 'desc')).toEqual({ key: 'gain', direction: 'asc' });
    expect(press({ key: 'gain', direction: 'asc' }, 'card', 'asc')).toEqual({ key: 'card', direction: 'asc' });
  });
  it('stands in addresses', () => {
    expect(formatSort({ key: 'gain', direction: 'desc' })).toBe('-gain');
    expect(parseSort('-gain')).toEqual({ key: 'gain', direction: 'desc' });
    expect(parseSort('card')).toEqual({ key: 'card', direction: 'asc' });
    expect(parseSort('<b>')).toBeUndefined();
  });
  it('a filter wants all its words, anywhere', () => {
    expect(matches('5090 CUDA', 'NVIDIA GeForce RTX 5090', 'cuda')).toBe(true);
    expect(matches('5090 opencl', 'NVIDIA GeForce RTX 5090', 'cuda')).toBe(false);
    expect(matches('', 'anything')).toBe(true);
  });
});
