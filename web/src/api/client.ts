// One GET of the hub's JSON, with its ETag, a time limit, and errors that say what happened.

import { ShapeError, type Check } from './check';
import { failure } from './shapes';

export type FailureKind = 'unreachable' | 'timeout' | 'refused' | 'shape';

export class ApiError extends Error {
  constructor(readonly kind: FailureKind, message: string, readonly status = 0, readonly code = '') {
    super(message);
    this.name = 'ApiError';
  }
  /** The hub itself is gone, as against an answer that says no. */
  get lost(): boolean {
    return this.kind === 'unreachable' || this.kind === 'timeout' || this.status === 502 || this.status === 504;
  }
}

export interface Answer<T> {
  /** undefined: the same as `etag` names (304) */
  value?: T;
  etag: string;
  /** The hub's clock minus this one's, ms; undefined where the hub does not tell. */
  clockMs?: number;
}

export interface GetOptions {
  etag?: string;
  signal?: AbortSignal;
  timeoutMs?: number;
  fetcher?: typeof fetch;
}

async function problemOf(reply: Response): Promise<ApiError> {
  let code = '';
  let message = '';
  try {
    const { error } = failure(await reply.json(), 'error');
    code = error.code;
    message = error.message;
  } catch {
    message = reply.statusText || 'an answer that is not of the hub';
  }
  return new ApiError('refused', `${reply.status}${code ? ` ${code}` : ''}: ${message}`, reply.status, code);
}

/** Throws ApiError alone. `path` is relative to the page: "v1/cards". */
export async function get<T>(path: string, check: Check<T>, options: GetOptions = {}): Promise<Answer<T>> {
  const { etag, signal, timeoutMs = 20_000, fetcher = fetch } = options;
  const control = new AbortController();
  const abort = () => control.abort();
  signal?.addEventListener('abort', abort);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    control.abort();
  }, timeoutMs);
  try {
    const headers: Record<string, string> = { Accept: 'application/json' };
    if (etag) headers['If-None-Match'] = etag;
    const reply = await fetcher(path, { headers, signal: control.signal, cache: 'no-store', credentials: 'same-origin' });
    const date = Date.parse(reply.headers.get('Date') ?? '');
    const clockMs = Number.isNaN(date) ? undefined : date - Date.now();
    if (reply.status === 304) return { etag: etag ?? '', clockMs };
    if (!reply.ok) throw await problemOf(reply);
    const body = await reply.text();
    let value: unknown;
    try {
      value = JSON.parse(body);
    } catch {
      throw new ApiError('shape', 'the answer is not JSON: is there something else than a hub at this address?', reply.status);
    }
    return { value: check(value, path.split('?')[0] ?? path), etag: reply.headers.get('ETag') ?? '', clockMs };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (error instanceof ShapeError) throw new ApiError('shape', error.message);
    if (late) throw new ApiError('timeout', `no answer within ${Math.round(timeoutMs / 1000)} s`);
    throw new ApiError('unreachable', 'the hub cannot be reached');
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
