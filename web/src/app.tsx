import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { go, usePulse, useRoute, useServices } from './hooks';
import { format, samePlace, type Route, type View } from './route';
import { Boundary } from './parts/boundary';
import { Help, useKeys } from './parts/keys';
import { Connection, LiveStatus } from './parts/live';
import { ThemeSwitch } from './parts/theme_switch';
import { CardsView } from './views/cards';
import { CardView } from './views/card';
import { HomeView } from './views/home';
import { KnobsView } from './views/knobs';
import { KnobProgramView } from './views/knob_program';
import { MachinesView } from './views/machines';
import { RaceView } from './views/race';
import { RacesView } from './views/races';
import { RegressionsView } from './views/regressions';
import { RolloutView } from './views/rollout';

export interface ViewProps {
  route: Route;
}

const names: Record<View, string> = {
  home: 'Overview', cards: 'Cards', races: 'Races', machines: 'Machines', rollout: 'Rollout', regressions: 'Regressions', knobs: 'Knobs',
};

const lists: Record<View, ComponentType<ViewProps>> = {
  home: HomeView, cards: CardsView, races: RacesView, machines: MachinesView, rollout: RolloutView, regressions: RegressionsView, knobs: KnobsView,
};
const items: Partial<Record<View, ComponentType<ViewProps>>> = { cards: CardView, races: RaceView, knobs: KnobProgramView };

function Unknown() {
  return (
    <>
      <h1 tabIndex={-1}>No such page</h1>
      <p>This address names nothing that the dashboard has. <a href={format('home')}>Go to the overview</a></p>
    </>
  );
}

function viewOf(route: Route): ComponentType<ViewProps> {
  if (route.view === 'unknown') return Unknown;
  return (route.item ? items[route.view] : lists[route.view]) ?? Unknown;
}

function Navigation({ route }: ViewProps) {
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [route.view, route.item]);
  return (
    <nav aria-label="Views">
      <button type="button" class="button menu" aria-expanded={open} aria-controls="views" onClick={() => setOpen(!open)}>
        {route.view === 'unknown' ? 'Menu' : `Menu: ${names[route.view]}`}
      </button>
      <ul id="views" class={open ? 'open' : ''}>
        {(Object.keys(names) as View[]).map((view) => (
          <li key={view}>
            <a href={format(view)} aria-current={route.view === view ? (route.item ? 'true' : 'page') : undefined}>{names[view]}</a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** After a change of place: the heading gets the focus, so that reading begins there; the title follows it. */
function usePlace(route: Route): void {
  const last = useRef<Route>();
  useEffect(() => {
    const moved = last.current !== undefined && !samePlace(last.current, route);
    last.current = route;
    const main = document.querySelector('main');
    const name = () => {
      const heading = main?.querySelector('h1')?.textContent?.trim();
      const title = heading && route.view !== 'home' ? `${heading} · Furlong` : 'Furlong';
      if (document.title !== title) document.title = title;
    };
    name();
    // A card that was asked for by its hash is named once the hub has answered.
    const changes = new MutationObserver(name);
    if (main) changes.observe(main, { subtree: true, childList: true, characterData: true });
    if (moved) {
      scrollTo(0, 0);
      main?.querySelector('h1')?.focus({ preventScroll: true });
    }
    return () => changes.disconnect();
  }, [route.view, route.item]);
}

export function App() {
  const route = useRoute();
  const { poller } = useServices();
  const pulse = usePulse();
  const [help, setHelp] = useState(false);
  usePlace(route);
  useKeys({ help: () => setHelp(true), go: (view) => go(view), refresh: () => poller.refresh(), pause: () => poller.pause(!poller.state.paused) });
  useEffect(() => {
    const seen = () => poller.setHidden(document.visibilityState === 'hidden');
    const online = () => poller.refresh();
    document.addEventListener('visibilitychange', seen);
    addEventListener('online', online);
    return () => {
      document.removeEventListener('visibilitychange', seen);
      removeEventListener('online', online);
    };
  }, [poller]);

  const Viewed = viewOf(route);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the content</a>
      <header class="top">
        <a class="brand" href={format('home')} aria-label="Furlong, overview">
          <img src="./furlong.svg" alt="" width="26" height="26" />
          <span>Furlong</span>
        </a>
        <Navigation route={route} />
        <div class="tools">
          <LiveStatus />
          <ThemeSwitch />
          <button type="button" class="button round" onClick={() => setHelp(true)} aria-label="Keyboard shortcuts and help">?</button>
        </div>
      </header>
      <Connection />
      <main id="main" tabIndex={-1}>
        <Boundary key={`${route.view}/${route.item}`}>
          <Viewed route={route} />
        </Boundary>
      </main>
      <footer>
        <p>
          {pulse.summary?.version ? `Furlong ${pulse.summary.version}` : 'Furlong'} · <a href="v1/openapi.json">the hub’s interface</a> · <a href="metrics">metrics</a>
        </p>
      </footer>
      {help && <Help close={() => setHelp(false)} />}
    </>
  );
}
