// How fresh the figures are; what is said when the hub is lost and when it is back.

import { useEffect, useRef, useState } from 'preact/hooks';
import * as F from '../format';
import { useNow, usePulse, useServices } from '../hooks';

let saying: ((text: string) => void) | undefined;

export function announce(text: string): void {
  saying?.(text);
}

/** The polite live region. The same words twice are said twice. */
export function Announcer() {
  const [said, set] = useState({ text: '', n: 0 });
  useEffect(() => {
    saying = (text) => set((old) => ({ text, n: old.n + 1 }));
    return () => {
      saying = undefined;
    };
  }, []);
  return (
    <div class="hidden" aria-live="polite" id="said">
      {said.text}
      {said.n % 2 ? '\u00a0' : ''}
    </div>
  );
}

function useTick(): number {
  useNow();
  return performance.now();
}

const saidEveryMs = 30_000;

/** New races are told to those who do not see them come, but not at every beat. */
function useTellNews(): void {
  const { say } = useServices();
  const { summary } = usePulse();
  const told = useRef<{ races: number; ms: number }>();
  useEffect(() => {
    if (!summary) return;
    const now = performance.now();
    if (told.current && (summary.races === told.current.races || now - told.current.ms < saidEveryMs)) return;
    if (told.current && summary.races > told.current.races) say(`${F.counted(summary.races - told.current.races, 'new race')}, ${F.count(summary.races)} in all`);
    told.current = { races: summary.races, ms: now };
  }, [summary]);
}

export function LiveStatus() {
  useTellNews();
  const { poller } = useServices();
  const pulse = usePulse();
  const now = useTick();
  const age = pulse.heardMs === undefined ? undefined : (now - pulse.heardMs) / 1000;
  const word = pulse.error ? (pulse.error.lost ? 'Lost' : 'Failing') : age === undefined ? 'Connecting' : pulse.paused ? 'Paused' : 'Live';
  const tone = pulse.error ? 'bad' : pulse.paused || age === undefined ? 'warn' : 'good';
  return (
    <div class={`live ${tone}`} data-state={pulse.paused ? 'paused' : undefined}>
      <span class="lamp" aria-hidden="true" />
      <span class="words">
        <b>{word}</b>
        {age !== undefined && <span class="age" title="since the hub last answered">{age < 2 ? 'now' : `${F.duration(age)} ago`}</span>}
      </span>
      <button type="button" class="button" onClick={() => poller.pause(!pulse.paused)}>
        {pulse.paused ? 'Resume' : 'Pause'}
      </button>
    </div>
  );
}

/** Below the head while the hub does not answer, or its figures lag. */
export function Connection() {
  const { poller, say } = useServices();
  const pulse = usePulse();
  const now = useTick();
  const lost = pulse.error !== undefined;
  const was = useRef(false);
  useEffect(() => {
    if (lost && !was.current) say('The hub does not answer. What is shown may be old.');
    if (!lost && was.current) say('The hub answers again.');
    was.current = lost;
  }, [lost]);

  if (pulse.error) {
    const seconds = pulse.lostMs === undefined ? 0 : (now - pulse.lostMs) / 1000;
    const next = pulse.nextMs === undefined ? undefined : Math.max(0, Math.ceil((pulse.nextMs - now) / 1000));
    return (
      <div class="banner bad" data-state="offline">
        <p>
          <b>{pulse.error.lost ? 'The hub does not answer' : 'The hub cannot tell its state'}</b>, since {F.duration(seconds)}: {pulse.error.message}.{' '}
          {pulse.heardMs === undefined ? 'Nothing was heard from it yet.' : 'What is shown below is what it said last.'}{' '}
          {pulse.paused ? 'Updates are paused.' : next === undefined ? 'Asking …' : `Asking again in ${next} s.`}
        </p>
        <button type="button" class="button" onClick={() => poller.refresh()}>Ask now</button>
      </div>
    );
  }
  const stale = pulse.summary?.stale_s ?? 0;
  if (stale > 60) {
    return (
      <div class="banner warn" data-state="stale">
        <p>The hub’s aggregates are {F.duration(stale)} behind its races: cards, regressions and knobs show an older state.</p>
      </div>
    );
  }
  return null;
}
