import { createContext } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { Check } from './api/check';
import { Poller, type Pulse } from './api/poller';
import { Resources, type Resource } from './api/resources';
import { format, parse, type Query, type Route, type View } from './route';

export interface Services {
  poller: Poller;
  resources: Resources;
  /** Says something to screen readers, politely. */
  say: (text: string) => void;
}

export const ServicesContext = createContext<Services | undefined>(undefined);

export function useServices(): Services {
  const services = useContext(ServicesContext);
  if (!services) throw new Error('no services');
  return services;
}

export function usePulse(): Pulse {
  const { poller } = useServices();
  const [pulse, set] = useState(poller.state);
  useEffect(() => {
    set(poller.state);
    return poller.subscribe(set);
  }, [poller]);
  return pulse;
}

const retryMs = 10_000;

export interface Loaded<T> extends Resource<T> {
  retry: () => void;
}

/** `path` empty: nothing is asked for. */
export function useResource<T>(path: string, check: Check<T>): Loaded<T> {
  const { resources } = useServices();
  const { beat } = usePulse();
  const [, redraw] = useState(0);
  useEffect(() => (path ? resources.subscribe(path, () => redraw((n) => n + 1)) : undefined), [resources, path]);
  useEffect(() => {
    if (path) void resources.load(path, check, beat);
  }, [resources, path, check, beat]);
  const now = path ? resources.peek<T>(path) : { loading: false };
  const retry = () => void resources.load(path, check, beat);
  useEffect(() => {
    if (!now.error || now.loading) return undefined;
    const timer = setTimeout(retry, retryMs);
    return () => clearTimeout(timer);
  }, [now.error, now.loading, path, beat]);
  return { ...now, retry };
}

const ticking = new Set<() => void>();
let ticker: ReturnType<typeof setInterval> | undefined;

/** One timer for all that shows an age. */
function everySecond(run: () => void): () => void {
  ticking.add(run);
  ticker ??= setInterval(() => ticking.forEach((each) => each()), 1000);
  return () => {
    ticking.delete(run);
    if (ticking.size > 0) return;
    clearInterval(ticker);
    ticker = undefined;
  };
}

/** The hub's time in ms, as far as its answers tell; redraws each time that a multiple of `ms` is passed. */
export function useNow(ms = 1000): number {
  const { poller } = useServices();
  const read = () => {
    const { clockMs } = poller.state;
    // Date headers have whole seconds: less than two of them is no difference of clocks.
    return Date.now() + (Math.abs(clockMs) < 2000 ? 0 : clockMs);
  };
  const [, redraw] = useState(0);
  useEffect(() => everySecond(() => redraw(Math.floor(Date.now() / ms))), [ms]);
  return read();
}

export function useRoute(): Route {
  const [route, set] = useState(parse(location.hash));
  useEffect(() => {
    const changed = () => set(parse(location.hash));
    addEventListener('hashchange', changed);
    addEventListener('popstate', changed);
    return () => {
      removeEventListener('hashchange', changed);
      removeEventListener('popstate', changed);
    };
  }, []);
  return route;
}

export function go(view: View, item = '', query: Query = {}): void {
  location.hash = format(view, item, query);
}

/** Changes the query of this place without a new step in the history. */
export function look(route: Route, change: Query): void {
  if (route.view === 'unknown') return;
  history.replaceState(null, '', format(route.view, route.item, { ...route.query, ...change }));
  dispatchEvent(new PopStateEvent('popstate'));
}
