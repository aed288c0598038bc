import { describe, expect, it } from 'vitest';
import * as J from './judge';
import { own } from './own';

describe('words from elsewhere', () => {
  it('are looked up among the table’s own', () => {
    expect(own({ a: 1 }, 'a')).toBe(1);
    for (const word of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) expect(own({ a: 1 }, word)).toBeUndefined();
  });
  it('that every object has are shown as they are', () => {
    for (const text of [J.choiceText, J.exitText, J.asideText]) expect(text('constructor')).toBe('constructor');
    expect(J.ofVerdict({ verdict: 'constructor', winner: '' })).toEqual({ tone: 'none', words: 'constructor' });
  });
  it('have words of their own where the hub’s are codes', () => {
    expect(J.choiceText('race')).toBe('races');
    expect(J.exitText('')).toBe('timed to the end');
    for (const reason of ['above-ceiling', 'base-disagrees', 'same-card', 'fallback', 'no-base', 'no-power', 'flood', 'name']) {
      expect(J.asideText(reason), reason).not.toBe(reason);
    }
  });
});
