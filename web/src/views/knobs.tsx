import * as shapes from '../api/shapes';
import * as F from '../format';
import { look, useResource } from '../hooks';
import type { Tone } from '../judge';
import { Link, Mark } from '../parts/bits';
import { FilterField, Filters } from '../parts/filters';
import { Empty, Show } from '../parts/states';
import { Table } from '../parts/table';
import { own } from '../own';
import { matches } from '../sort';
import type { ViewProps } from '../app';

const order = ['trade-off', 'bake in', 'drop', 'unproven'];
const tones: Record<string, Tone> = { 'trade-off': 'ok', 'bake in': 'warn', drop: 'warn', unproven: 'none' };

export function Verdict({ verdict }: { verdict: string }) {
  return <Mark tone={own(tones, verdict) ?? 'none'}>{verdict || 'none'}</Mark>;
}

export function KnobsView({ route }: ViewProps) {
  const knobs = useResource('v1/knobs', shapes.knobs);
  const { q = '' } = route.query;
  return (
    <>
      <h1 tabIndex={-1}>Knobs</h1>
      <p class="lead">Each knob of the shipped programs beside what the fleet’s races say of it: a <b>trade-off</b> wins somewhere and loses elsewhere; what never loses should be <b>baked in</b>, what never wins <b>dropped</b>.</p>
      <Show of={knobs} what="audit of the knobs">
        {(data) => {
          if (data.programs.length === 0) return <Empty title="The hub audits no program" />;
          const rows = data.programs.filter((p) => matches(q, p.program, p.language, ...Object.keys(p.verdicts)));
          const words = [...order, ...new Set(data.programs.flatMap((p) => Object.keys(p.verdicts)).filter((w) => !order.includes(w)))];
          return (
            <>
              <Filters label="Filter programs">
                <FilterField label="Filter" value={q} placeholder="program, language …" onChange={(v) => look(route, { q: v })} />
                <p class="found" role="status">{F.count(rows.length)} of {F.counted(data.programs.length, 'edition')}</p>
              </Filters>
              {rows.length === 0 ? <Empty title="No program fits the filter" /> : (
                <Table
                  caption="Knobs by program"
                  rows={rows}
                  keyOf={(p) => `${p.program} ${p.language}`}
                  columns={[
                    { key: 'program', title: 'Program', header: true, sort: (p) => p.program, cell: (p) => <Link view="knobs" item={p.program} query={{ language: p.language }}>{p.program}</Link> },
                    { key: 'language', title: 'Language', sort: (p) => p.language, cell: (p) => p.language || F.dash },
                    { key: 'knobs', title: 'Knobs', numeric: true, first: 'desc', sort: (p) => p.knobs, cell: (p) => F.count(p.knobs) },
                    { key: 'races', title: 'Races', numeric: true, first: 'desc', sort: (p) => p.races, cell: (p) => F.count(p.races) },
                    ...words.map((word) => ({ key: word.replace(/[^a-z]/g, '_'), title: word[0]?.toUpperCase() + word.slice(1), numeric: true, first: 'desc' as const, sort: (p: shapes.Knobs['programs'][number]) => own(p.verdicts, word) ?? 0, cell: (p: shapes.Knobs['programs'][number]) => (own(p.verdicts, word) ? <Mark tone={own(tones, word) ?? 'none'}>{F.count(own(p.verdicts, word))}</Mark> : <span class="muted">0</span>) })),
                  ]}
                />
              )}
            </>
          );
        }}
      </Show>
    </>
  );
}
