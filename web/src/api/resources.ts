// What was fetched, by path: shown again at once when a view comes back, and asked for anew (with its ETag) on a beat.

import { ApiError, get } from './client';
import type { Check } from './check';

export interface Resource<T> {
  data?: T;
  error?: ApiError;
  loading: boolean;
  /** Date.now() when it was asked for; for "slow" */
  askedMs?: number;
}

interface Entry {
  value: Resource<unknown>;
  etag: string;
  used: number;
  /** The beat that it was last asked for at. */
  beat: number;
  listeners: Set<() => void>;
}

const most = 40;

export class Resources {
  private readonly entries = new Map<string, Entry>();
  private uses = 0;

  constructor(private readonly fetchOne: typeof get = get) {}

  peek<T>(path: string): Resource<T> {
    return (this.entries.get(path)?.value ?? { loading: true }) as Resource<T>;
  }

  subscribe(path: string, listener: () => void): () => void {
    const entry = this.entry(path);
    entry.listeners.add(listener);
    return () => entry.listeners.delete(listener);
  }

  /** Asks unless it was asked at this beat already, or is being asked. */
  async load<T>(path: string, check: Check<T>, beat: number): Promise<void> {
    const entry = this.entry(path);
    if (entry.beat >= beat && (entry.value.loading || !entry.value.error)) return;
    entry.beat = beat;
    if (entry.value.loading && entry.value.askedMs !== undefined) return;
    this.set(entry, { ...entry.value, loading: true, askedMs: Date.now() });
    const asked = beat;
    try {
      const answer = await this.fetchOne(path, check, { etag: entry.value.data === undefined ? '' : entry.etag });
      entry.etag = answer.etag;
      this.set(entry, { data: answer.value ?? entry.value.data, loading: false });
    } catch (error) {
      const problem = error instanceof ApiError ? error : new ApiError('shape', String(error));
      // What is not there any more is not shown any more; all else stays, with the error beside it.
      const data = problem.status === 404 ? undefined : entry.value.data;
      this.set(entry, { data, error: problem, loading: false });
    }
    // A beat that came meanwhile.
    if (entry.beat > asked) {
      const latest = entry.beat;
      entry.beat = asked;
      await this.load(path, check, latest);
    }
  }

  private entry(path: string): Entry {
    let entry = this.entries.get(path);
    if (!entry) {
      entry = { value: { loading: true }, etag: '', used: 0, beat: -1, listeners: new Set() };
      this.entries.set(path, entry);
      this.forget();
    }
    entry.used = ++this.uses;
    return entry;
  }

  private forget(): void {
    if (this.entries.size <= most) return;
    const idle = [...this.entries].filter(([, e]) => e.listeners.size === 0 && !(e.value.loading && e.value.askedMs));
    idle.sort(([, a], [, b]) => a.used - b.used);
    const oldest = idle.find(([, e]) => e.used !== 0);
    if (oldest) this.entries.delete(oldest[0]);
  }

  private set(entry: Entry, value: Resource<unknown>): void {
    entry.value = value;
    for (const listener of entry.listeners) listener();
  }
}
