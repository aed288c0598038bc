import { describe, expect, it, vi } from 'vitest';
import { ApiError, get } from './client';
import { machines } from './shapes';

const ok = JSON.stringify({ schema: 1, machines: [] });

function answering(body: string, init: ResponseInit = {}): typeof fetch {
  return vi.fn(async () => new Response(init.status === 304 ? null : body, init)) as unknown as typeof fetch;
}

async function problem(fetcher: typeof fetch, timeoutMs = 1000): Promise<ApiError> {
  const error: unknown = await get('v1/machines?x=1', machines, { fetcher, timeoutMs }).then(() => undefined, (e: unknown) => e);
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

describe('one request', () => {
  it('gives the value with its ETag and the difference of clocks', async () => {
    const date = new Date(Date.now() + 3_600_000).toUTCString();
    const answer = await get('v1/machines', machines, { fetcher: answering(ok, { headers: { ETag: '"a"', Date: date } }) });
    expect(answer.value?.machines).toEqual([]);
    expect(answer.etag).toBe('"a"');
    expect(Math.abs((answer.clockMs ?? 0) - 3_600_000)).toBeLessThan(5000);
  });
  it('sends the ETag, and takes 304 for "the same"', async () => {
    const fetcher = answering('', { status: 304 });
    const answer = await get('v1/machines', machines, { fetcher, etag: '"a"' });
    expect(answer.etag).toBe('"a"');
    expect(answer.value).toBeUndefined();
    expect(vi.mocked(fetcher).mock.calls[0]?.[1]?.headers).toMatchObject({ 'If-None-Match': '"a"' });
  });
  it('says what the hub says', async () => {
    const error = await problem(answering('{"schema":1,"error":{"code":"unavailable","message":"store: locked"}}', { status: 503 }));
    expect(error).toMatchObject({ kind: 'refused', status: 503, code: 'unavailable', message: '503 unavailable: store: locked', lost: false });
  });
  it('an error page of a proxy is no riddle', async () => {
    const error = await problem(answering('<h1>Bad gateway</h1>', { status: 502, statusText: 'Bad Gateway' }));
    expect(error).toMatchObject({ kind: 'refused', message: '502: Bad Gateway', lost: true });
  });
  it('something else than JSON, and JSON of another shape', async () => {
    expect((await problem(answering('<html>'))).kind).toBe('shape');
    expect((await problem(answering('{"schema":1,"machines":7}'))).message).toBe('v1/machines.machines: expected a list, found a number');
  });
  it('no connection, and no answer in time', async () => {
    const down = vi.fn(async () => { throw new TypeError('Failed to fetch'); }) as unknown as typeof fetch;
    expect(await problem(down)).toMatchObject({ kind: 'unreachable', lost: true });
    const hangs = ((_: string, init: RequestInit) => new Promise((_done, fail) => init.signal?.addEventListener('abort', () => fail(new DOMException('aborted', 'AbortError'))))) as unknown as typeof fetch;
    expect(await problem(hangs, 10)).toMatchObject({ kind: 'timeout', lost: true });
  });
});
