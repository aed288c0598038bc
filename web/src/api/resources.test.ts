import { describe, expect, it, vi } from 'vitest';
import { ApiError, type get } from './client';
import { Resources } from './resources';
import { text } from './check';

type Get = typeof get;

function made(answers: (() => unknown)[]) {
  const asked: { path: string; etag: string }[] = [];
  const fetchOne = vi.fn(async (path: string, _check: unknown, options: { etag?: string }) => {
    asked.push({ path, etag: options.etag ?? '' });
    return answers.shift()?.();
  }) as unknown as Get;
  return { asked, resources: new Resources(fetchOne) };
}
const down = () => { throw new ApiError('unreachable', 'gone'); };

describe('resources', () => {
  it('asks once a beat, then with the ETag, and keeps the value on "the same"', async () => {
    const { asked, resources } = made([() => ({ value: 'one', etag: 'a' }), () => ({ etag: 'a' })]);
    await resources.load('p', text, 1);
    await resources.load('p', text, 1);
    expect(asked).toHaveLength(1);
    await resources.load('p', text, 2);
    expect(asked[1]?.etag).toBe('a');
    expect(resources.peek('p')).toMatchObject({ data: 'one', loading: false });
  });
  it('keeps the old value beside an error, and asks again at the same beat', async () => {
    const { resources } = made([() => ({ value: 'one', etag: 'a' }), down, () => ({ value: 'two', etag: 'b' })]);
    await resources.load('p', text, 1);
    await resources.load('p', text, 2);
    expect(resources.peek<string>('p').data).toBe('one');
    expect(resources.peek('p').error?.message).toBe('gone');
    await resources.load('p', text, 2);
    expect(resources.peek('p')).toEqual({ data: 'two', loading: false });
  });
  it('drops what is not there any more', async () => {
    const { resources } = made([() => ({ value: 'one', etag: 'a' }), () => { throw new ApiError('refused', '404', 404); }]);
    await resources.load('p', text, 1);
    await resources.load('p', text, 2);
    expect(resources.peek('p').data).toBeUndefined();
  });
  it('a beat while it is being asked is asked for after it', async () => {
    let finish: (v: unknown) => void = () => {};
    const { asked, resources } = made([() => new Promise((done) => { finish = done; }), () => ({ value: 'two', etag: 'b' })]);
    const first = resources.load('p', text, 1);
    await resources.load('p', text, 2);
    expect(asked).toHaveLength(1);
    finish({ value: 'one', etag: 'a' });
    await first;
    expect(asked).toHaveLength(2);
    expect(resources.peek('p').data).toBe('two');
  });
  it('tells its listeners, and forgets what nobody looks at', async () => {
    const { resources } = made(Array.from({ length: 60 }, (_, i) => () => ({ value: String(i), etag: '' })));
    const told = vi.fn();
    resources.subscribe('kept', told);
    await resources.load('kept', text, 1);
    expect(told).toHaveBeenCalledTimes(2);
    for (let i = 0; i < 50; i += 1) await resources.load(`p${i}`, text, 1);
    expect(resources.peek('kept').data).toBe('0');
    expect(resources.peek('p0').data).toBeUndefined();
    expect(resources.peek('p49').data).toBe('50');
  });
});
