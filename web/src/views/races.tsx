import { useEffect, useState } from 'preact/hooks';
import * as shapes from '../api/shapes';
import * as F from '../format';
import { go, useResource } from '../hooks';
import { ofVerdict } from '../judge';
import { Ago, Id, Judged, Link } from '../parts/bits';
import { Filters } from '../parts/filters';
import { Empty, Show } from '../parts/states';
import { Table } from '../parts/table';
import type { Query } from '../route';
import type { ViewProps } from '../app';

const fields = [
  ['card', 'Card', 'key or label'],
  ['program', 'Program', 'lottery'],
  ['winner', 'Winner', 'u2-ldg'],
  ['machine', 'Machine', 'fingerprint'],
  ['driver', 'Driver', '580.95.05'],
  ['backend', 'Back end', 'cuda'],
  ['silicon', 'Silicon', '16 hex digits'],
  ['since', 'Since', '2026-03-01T00:00:00Z'],
  ['until', 'Until', '2026-03-02T00:00:00Z'],
] as const;

const rare: readonly string[] = ['driver', 'backend', 'silicon', 'since', 'until'];

/** "2026-03-01" is taken as its midnight: the hub wants whole stamps. */
function whole(key: string, value: string): string {
  const day = (key === 'since' || key === 'until') && /^\d{4}-\d\d-\d\d$/.test(value);
  return day ? `${value}T00:00:00Z` : value;
}

export function racesPath(query: Query): string {
  const asked: Query = { limit: '50' };
  for (const key of [...fields.map(([name]) => name), 'before']) {
    const value = query[key]?.trim();
    if (value) asked[key] = whole(key, value);
  }
  return `v1/races?${new URLSearchParams(asked).toString()}`;
}

function Form({ route }: ViewProps) {
  const asked = Object.fromEntries(fields.map(([key]) => [key, route.query[key] ?? '']));
  const [draft, set] = useState<Query>(asked);
  const key = JSON.stringify(asked);
  useEffect(() => set(asked), [key]);
  const field = ([name, label, example]: (typeof fields)[number], first = false) => (
    <label class="field" key={name}>
      <span>{label}</span>
      <input type="search" data-filter={first ? true : undefined} name={name} value={draft[name]} placeholder={example} autoComplete="off" spellcheck={false} onInput={(e) => set({ ...draft, [name]: e.currentTarget.value })} />
    </label>
  );
  return (
    <Filters label="Filter races" onSubmit={() => go('races', '', draft)}>
      {fields.filter(([name]) => !rare.includes(name)).map((f, i) => field(f, i === 0))}
      <details class="rare" open={rare.some((name) => route.query[name])}>
        <summary>More filters</summary>
        <div class="fields">{fields.filter(([name]) => rare.includes(name)).map((f) => field(f))}</div>
      </details>
      <div class="actions">
        <button type="submit" class="button primary">Filter</button>
        <button type="button" class="button" onClick={() => go('races')}>Clear</button>
      </div>
    </Filters>
  );
}

function Pages({ route, data }: { data: shapes.Races } & ViewProps) {
  const { before, ...rest } = route.query;
  return (
    <nav class="pages" aria-label="Pages">
      {before ? <Link view="races" query={rest} class="button">Newest</Link> : <span class="muted">The newest first.</span>}
      {data.next ? <Link view="races" query={{ ...rest, before: data.next }} class="button">Older</Link> : <span class="muted">That is the oldest.</span>}
    </nav>
  );
}

export function RacesView({ route }: ViewProps) {
  const races = useResource(racesPath(route.query), shapes.races);
  const filtered = fields.some(([key]) => route.query[key]) || Boolean(route.query['before']);
  return (
    <>
      <h1 tabIndex={-1}>Races</h1>
      <Form route={route} />
      <Show of={races} what="races">
        {(data) => data.races.length === 0 ? (
          <Empty title={filtered ? 'No race fits the filter' : 'No race yet'}>
            <p>{filtered ? 'Filters want the whole value, as it stands in a race.' : 'Machines send their race records by themselves once they are enrolled.'}</p>
          </Empty>
        ) : (
          <>
            <Table
              caption="Races"
              rows={data.races}
              keyOf={(r) => r.id}
              columns={[
                { key: 'ts', title: 'When', header: true, first: 'desc', sort: (r) => r.ts, cell: (r) => <Link view="races" item={r.id} aria-label={`Race of ${F.stamp(r.ts)}`}>{F.shortStamp(r.ts)}</Link> },
                { key: 'ago', title: 'Ago', cell: (r) => <Ago stamp={r.ts} /> },
                { key: 'card', title: 'Card', sort: (r) => r.card, cell: (r) => <Link view="cards" item={r.card}>{F.cardName(r.card)}</Link> },
                { key: 'program', title: 'Program', sort: (r) => `${r.program} ${F.classText(r.class)}`, cell: (r) => <>{r.program} <span class="muted">{F.classText(r.class)}</span></> },
                { key: 'winner', title: 'Winner', sort: (r) => r.winner, cell: (r) => <span class="variant">{r.winner || F.dash}</span> },
                { key: 'verdict', title: 'Verdict', sort: (r) => r.verdict, cell: (r) => <><Judged judgement={ofVerdict(r)} />{r.pinned && r.verdict !== 'pinned' && <span class="muted"> pinned</span>}</> },
                { key: 'gain', title: 'Gain', numeric: true, first: 'desc', sort: (r) => r.gain_pct, cell: (r) => F.gain(r.gain_pct) },
                { key: 'rate', title: 'Rate', numeric: true, first: 'desc', sort: (r) => r.rate, cell: (r) => F.rate(r.rate, r.unit) },
                { key: 'driver', title: 'Driver', sort: (r) => r.driver, cell: (r) => <>{r.driver || F.dash} <span class="muted">{r.backend}</span></> },
                { key: 'machine', title: 'Machine', sort: (r) => r.machine, cell: (r) => <Id id={r.machine} view="races" query={{ machine: r.machine }} /> },
              ]}
            />
            <Pages route={route} data={data} />
          </>
        )}
      </Show>
    </>
  );
}
