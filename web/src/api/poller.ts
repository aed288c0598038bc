// Asks /v1/summary every few seconds; tells when `change` changed, when the hub was lost and when it is back.
// Time, timers and fetch are handed in, so that tests need no clock.

import { ApiError, get, type Answer } from './client';
import { summary, type Summary } from './shapes';

export interface Pulse {
  summary?: Summary;
  /** Counts each change of `change`, and each return of the hub: what is shown is then fetched again. */
  beat: number;
  /** now() of the last answer; undefined: none yet */
  heardMs?: number;
  /** The last attempt's error; undefined: it went well. */
  error?: ApiError;
  /** now() since when the hub does not answer */
  lostMs?: number;
  /** now() of the next attempt; undefined while one is in progress or paused */
  nextMs?: number;
  paused: boolean;
  /** The hub's clock minus this one's */
  clockMs: number;
}

export interface PollerWith {
  ask: (etag: string, signal: AbortSignal) => Promise<Answer<Summary>>;
  now: () => number;
  later: (run: () => void, ms: number) => unknown;
  cancel: (timer: unknown) => void;
}

export const everyMs = 4_000;
export const hiddenMs = 30_000;
export const retryMostMs = 15_000;

/** Of the nth failure in a row, from 1. */
export function retryMs(failures: number): number {
  return Math.min(retryMostMs, 1_000 * 2 ** (failures - 1));
}

export const browserWith: PollerWith = {
  ask: (etag, signal) => get('v1/summary', summary, { etag, signal, timeoutMs: 10_000 }),
  now: () => performance.now(),
  later: (run, ms) => setTimeout(run, ms),
  cancel: (timer) => clearTimeout(timer as number),
};

export class Poller {
  private pulse: Pulse = { beat: 0, paused: false, clockMs: 0 };
  private etag = '';
  private failures = 0;
  private timer: unknown;
  private control?: AbortController;
  private hidden = false;
  private stopped = true;
  private readonly listeners = new Set<(pulse: Pulse) => void>();

  constructor(private readonly using: PollerWith = browserWith) {}

  get state(): Pulse {
    return this.pulse;
  }

  subscribe(listener: (pulse: Pulse) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  start(): void {
    this.stopped = false;
    void this.ask();
  }

  stop(): void {
    this.stopped = true;
    this.unplan();
    this.control?.abort();
  }

  /** Now, whatever was planned; also while paused. */
  refresh(): void {
    if (this.stopped || this.control) return;
    void this.ask();
  }

  pause(paused: boolean): void {
    if (paused === this.pulse.paused) return;
    this.set({ paused });
    if (paused) {
      this.unplan();
      this.set({ nextMs: undefined });
    } else {
      this.refresh();
    }
  }

  /** A page that nobody sees asks seldom; once seen again it asks at once. */
  setHidden(hidden: boolean): void {
    if (hidden === this.hidden) return;
    this.hidden = hidden;
    if (!hidden && !this.pulse.paused) this.refresh();
  }

  private async ask(): Promise<void> {
    this.unplan();
    const control = new AbortController();
    this.control = control;
    this.set({ nextMs: undefined });
    try {
      const { value, etag, clockMs } = await this.using.ask(this.etag, control.signal);
      if (this.stopped) return;
      this.etag = etag;
      this.heard(value, clockMs);
    } catch (error) {
      if (this.stopped) return;
      this.failed(error instanceof ApiError ? error : new ApiError('shape', String(error)));
    } finally {
      this.control = undefined;
    }
    if (!this.pulse.paused) this.plan();
  }

  private heard(value: Summary | undefined, clockMs: number | undefined): void {
    const before = this.pulse;
    const changed = value !== undefined && value.change !== before.summary?.change;
    const back = before.error !== undefined;
    this.failures = 0;
    this.set({
      summary: value ?? before.summary,
      beat: before.beat + (changed || back ? 1 : 0),
      heardMs: this.using.now(),
      clockMs: clockMs ?? before.clockMs,
      error: undefined,
      lostMs: undefined,
    });
  }

  private failed(error: ApiError): void {
    this.failures += 1;
    this.set({ error, lostMs: this.pulse.lostMs ?? this.using.now() });
  }

  private plan(): void {
    const ms = this.failures ? retryMs(this.failures) : this.hidden ? hiddenMs : everyMs;
    this.set({ nextMs: this.using.now() + ms });
    this.timer = this.using.later(() => void this.ask(), ms);
  }

  private unplan(): void {
    if (this.timer !== undefined) this.using.cancel(this.timer);
    this.timer = undefined;
  }

  private set(part: Partial<Pulse>): void {
    this.pulse = { ...this.pulse, ...part };
    for (const listener of this.listeners) listener(this.pulse);
  }
}
