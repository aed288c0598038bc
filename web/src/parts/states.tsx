// What a view shows while there is nothing to show: loading, slow, failed, empty.

import type { ComponentChildren } from 'preact';
import { useNow, type Loaded } from '../hooks';

const slowMs = 5_000;

function Waiting({ what, askedMs }: { what: string; askedMs?: number }) {
  useNow();
  const waited = askedMs ? Date.now() - askedMs : 0;
  return (
    <div class="state" role="status" data-state="loading">
      <span class="spinner" aria-hidden="true" />
      <p>{waited < slowMs ? `Loading ${what} …` : `Still waiting for ${what}: the hub is slow to answer (${Math.round(waited / 1000)} s).`}</p>
    </div>
  );
}

const advice: Record<string, string> = {
  unreachable: 'Is the hub running, and reachable from here? It is asked again by itself.',
  timeout: 'The hub is too busy, or the way to it is slow. It is asked again by itself.',
  shape: 'The hub answers in another form than this dashboard reads: they may be of different versions. Reload the page; else report it.',
  refused: 'It is asked again by itself.',
};

export function Failed({ what, error, retry }: { what: string; error: { kind: string; message: string; status: number }; retry: () => void }) {
  const gone = error.status === 404;
  return (
    <div class="state failed" role="alert" data-state={gone ? 'gone' : 'error'}>
      <h2>{gone ? `There is no such ${what}` : `No ${what} to show`}</h2>
      <p class="said">{error.message}</p>
      {!gone && <p>{advice[error.kind]}</p>}
      <button type="button" class="button" onClick={retry}>Try again now</button>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state empty" data-state="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** What else a view needs could not be had: said above it, also beside older figures. */
export function Late({ of, what }: { of: Loaded<unknown>; what?: string }) {
  if (!of.error) return null;
  const words = of.data !== undefined ? `These are older figures${what ? ` of ${what}` : ''}: the newest could not be had` : `No figures of ${what ?? 'this'} could be had`;
  return (
    <div class="note warn" role="status" data-state="stale">
      <p>{words} ({of.error.message}).</p>
      <button type="button" class="button" onClick={of.retry}>Try again</button>
    </div>
  );
}

/** The view of a resource: `children` once there is data, with a note above it where the newest could not be had. */
export function Show<T>({ of, what, children }: { of: Loaded<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (of.data === undefined) {
    if (of.error) return <Failed what={what} error={of.error} retry={of.retry} />;
    return <Waiting what={what} askedMs={of.askedMs} />;
  }
  return (
    <>
      <Late of={of} />
      {children(of.data)}
    </>
  );
}
