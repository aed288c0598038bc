import { describe, expect, it } from 'vitest';
import { format, parse, samePlace } from './route';

describe('routes', () => {
  it('reads every view', () => {
    expect(parse('')).toEqual({ view: 'home', item: '', query: {} });
    expect(parse('#/')).toEqual({ view: 'home', item: '', query: {} });
    expect(parse('#/cards')).toEqual({ view: 'cards', item: '', query: {} });
    expect(parse('#/races?card=X&before=1')).toEqual({ view: 'races', item: '', query: { card: 'X', before: '1' } });
  });
  it('gives keys back that have every sort of character', () => {
    for (const key of ['NVIDIA_H200', 'AMD_Radeon@5d2e8c41aa07b963', 'a/b?c#d%e f', 'Xeon 8480+', '../..', 'ü']) {
      const query = { class: 'n=1, k=a&b', q: 'x y' };
      expect(parse(format('cards', key, query))).toEqual({ view: 'cards', item: key, query });
    }
  });
  it('leaves empty values out', () => {
    expect(format('races', '', { card: '', program: 'lottery' })).toBe('#/races?program=lottery');
    expect(format('home')).toBe('#/');
  });
  it('knows what is none', () => {
    for (const bad of ['#/nothing', '#/cards/a/b', '#/home/x', '#/cards/%zz', '#/rollout/7']) expect(parse(bad).view).toBe('unknown');
  });
  it('a query is another look at the same place', () => {
    expect(samePlace(parse('#/cards?q=a'), parse('#/cards?q=b'))).toBe(true);
    expect(samePlace(parse('#/cards'), parse('#/cards/x'))).toBe(false);
  });
});
