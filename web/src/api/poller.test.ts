import { beforeEach, describe, expect, it } from 'vitest';
import { ApiError, type Answer } from './client';
import { everyMs, hiddenMs, Poller, retryMostMs, retryMs, type PollerWith } from './poller';
import type { Summary } from './shapes';

const summaryOf = (change: number) => ({ change, races: change, machines: 1, cards: 1, newest: '', version: '', updated: '' }) as Summary;

/** A clock, timers and a hub of the test's own. */
class World implements PollerWith {
  time = 0;
  planned: { run: () => void; at: number }[] = [];
  etags: string[] = [];
  next: () => Promise<Answer<Summary>> = async () => ({ value: summaryOf(1), etag: '"1"' });
  ask = (etag: string) => {
    this.etags.push(etag);
    return this.next();
  };
  now = () => this.time;
  later = (run: () => void, ms: number) => {
    const timer = { run, at: this.time + ms };
    this.planned.push(timer);
    return timer;
  };
  cancel = (timer: unknown) => {
    this.planned = this.planned.filter((t) => t !== timer);
  };
  /** To the next timer, and until its answer has been taken in. */
  async pass(): Promise<number> {
    const [timer] = this.planned;
    if (!timer) throw new Error('nothing is planned');
    this.planned = this.planned.slice(1);
    const waited = timer.at - this.time;
    this.time = timer.at;
    timer.run();
    await settle();
    return waited;
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 10; i += 1) await Promise.resolve();
}

const down = async () => { throw new ApiError('unreachable', 'the hub cannot be reached'); };

let world: World;
let poller: Poller;
beforeEach(async () => {
  world = new World();
  poller = new Poller(world);
  poller.start();
  await settle();
});

describe('the poller', () => {
  it('asks every few seconds, with the last ETag', async () => {
    expect(poller.state).toMatchObject({ beat: 1, heardMs: 0, error: undefined });
    world.next = async () => ({ etag: '"1"' });
    expect(await world.pass()).toBe(everyMs);
    expect(world.etags).toEqual(['', '"1"']);
    expect(poller.state).toMatchObject({ beat: 1, heardMs: everyMs });
    expect(world.planned).toHaveLength(1);
  });
  it('beats when change changes, and only then', async () => {
    await world.pass();
    expect(poller.state.beat).toBe(1);
    world.next = async () => ({ value: summaryOf(2), etag: '"2"' });
    await world.pass();
    expect(poller.state.beat).toBe(2);
    world.next = async () => ({ value: summaryOf(1), etag: '"3"' });
    await world.pass();
    expect(poller.state.beat).toBe(3);
  });
  it('tells when the hub is lost, tries again ever more seldom, and beats when it is back', async () => {
    world.next = down;
    await world.pass();
    const since = poller.state.lostMs;
    expect(poller.state.error?.lost).toBe(true);
    const waits = [];
    for (let i = 0; i < 6; i += 1) waits.push(await world.pass());
    expect(waits).toEqual([1000, 2000, 4000, 8000, retryMostMs, retryMostMs]);
    expect(poller.state.lostMs).toBe(since);
    expect(poller.state.summary?.change).toBe(1);
    world.next = async () => ({ etag: '"1"' });
    await world.pass();
    expect(poller.state).toMatchObject({ beat: 2, error: undefined, lostMs: undefined });
    expect(await world.pass()).toBe(everyMs);
  });
  it('a wrong answer is an error like another', async () => {
    world.next = async () => { throw new TypeError('odd'); };
    await world.pass();
    expect(poller.state.error?.kind).toBe('shape');
    expect(world.planned).toHaveLength(1);
  });
  it('asks for nothing while paused, but when told to', async () => {
    poller.pause(true);
    expect(world.planned).toHaveLength(0);
    expect(poller.state.nextMs).toBeUndefined();
    world.next = async () => ({ value: summaryOf(9), etag: '"9"' });
    poller.refresh();
    await settle();
    expect(poller.state.summary?.change).toBe(9);
    expect(world.planned).toHaveLength(0);
    poller.pause(false);
    await settle();
    expect(world.planned).toHaveLength(1);
  });
  it('asks seldom while nobody looks, and at once when somebody does', async () => {
    poller.setHidden(true);
    await world.pass();
    expect(world.planned[0]?.at).toBe(world.time + hiddenMs);
    const asked = world.etags.length;
    poller.setHidden(false);
    await settle();
    expect(world.etags).toHaveLength(asked + 1);
    expect(world.planned).toHaveLength(1);
  });
  it('has one request in progress at most, and none after its end', async () => {
    let done: (a: Answer<Summary>) => void = () => {};
    world.next = () => new Promise((resolve) => { done = resolve; });
    poller.refresh();
    poller.refresh();
    poller.setHidden(true);
    poller.setHidden(false);
    expect(world.etags).toHaveLength(2);
    poller.stop();
    done({ value: summaryOf(5), etag: '' });
    await settle();
    expect(poller.state.summary?.change).toBe(1);
    expect(world.planned).toHaveLength(0);
    poller.refresh();
    expect(world.etags).toHaveLength(2);
  });
  it('waits are bounded', () => {
    expect(retryMs(1)).toBe(1000);
    expect(retryMs(50)).toBe(retryMostMs);
  });
});
