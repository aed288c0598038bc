import { useEffect, useState } from 'preact/hooks';
import * as shapes from '../api/shapes';
import * as F from '../format';
import { go, useResource } from '../hooks';
import { ofVerdict } from '../judge';
import { Ago, CardLink, Id, Judged, Link, Two } from '../parts/bits';
import { Filters } from '../parts/filters';
import { Empty, Show } from '../parts/states';
import { Table } from '../parts/table';
import type { Query } from '../route';
import type { ViewProps } from '../app';
import { fields, racesPath, rare } from './races_path';

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
                { key: 'ts', title: 'When', header: true, first: 'desc', sort: (r) => r.ts, cell: (r) => <Two and={<Ago stamp={r.ts} />}><Link view="races" item={r.id} aria-label={`Race of ${F.stamp(r.ts)}`}><time>{F.shortStamp(r.ts)}</time></Link></Two> },
                { key: 'card', title: 'Card', sort: (r) => r.card, cell: (r) => <CardLink card={r.card} silicon={r.silicon} /> },
                { key: 'program', title: 'Program', sort: (r) => `${r.program} ${F.classText(r.class)}`, cell: (r) => <Two and={F.classText(r.class)}>{r.program}</Two> },
                { key: 'winner', title: 'Winner', sort: (r) => r.winner, cell: (r) => <span class="variant">{r.winner || F.dash}</span> },
                { key: 'verdict', title: 'Verdict', sort: (r) => r.verdict, cell: (r) => <><Judged judgement={ofVerdict(r)} />{r.pinned && r.verdict !== 'pinned' && <span class="muted"> pinned</span>}</> },
                { key: 'gain', title: 'Gain', numeric: true, first: 'desc', sort: (r) => r.gain_pct, cell: (r) => F.gain(r.gain_pct) },
                { key: 'rate', title: 'Rate', numeric: true, first: 'desc', sort: (r) => r.rate, cell: (r) => F.rate(r.rate, r.unit) },
                { key: 'driver', title: 'Driver', sort: (r) => r.driver, cell: (r) => <Two and={r.backend}>{r.driver || F.dash}</Two> },
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
