import * as shapes from '../api/shapes';
import * as F from '../format';
import { look, useResource } from '../hooks';
import { choiceText, ofRow } from '../judge';
import { Ago, CardLink, Gain, Judged, Two, Used } from '../parts/bits';
import { FilterField, Filters, SelectField } from '../parts/filters';
import { Empty, Show } from '../parts/states';
import { scaleOf, Strip, StripHead } from '../parts/strip';
import { Table } from '../parts/table';
import { formatSort, matches, parseSort } from '../sort';
import type { ViewProps } from '../app';
import { flat, rowQuery, usedOf, type FlatRow } from './card_rows';

function shown(all: FlatRow[], filter: string, program: string): FlatRow[] {
  return all.filter(({ card, row }) =>
    (!program || row.program === program) &&
    matches(filter, F.cardName(card.key), card.label, ...card.aliases, card.silicon?.hash ?? '', card.silicon?.arch ?? '', row.program, F.classText(row.class), row.variant, row.backend, row.choice, ofRow(row).words, usedOf(row, card.rows) ?? ''));
}

function List({ data, route }: { data: shapes.Cards } & ViewProps) {
  const { q = '', program = '', sort = '-gain' } = route.query;
  const all = flat(data);
  if (all.length === 0) {
    return (
      <Empty title="No card has raced yet">
        <p>Cards appear once enrolled machines have sent race records, within {data.window_days ?? 7} days.</p>
      </Empty>
    );
  }
  const rows = shown(all, q, program);
  const programs = [...new Set(all.map((r) => r.row.program))].sort();
  const scale = scaleOf(rows.map((r) => r.row));
  return (
    <>
      <p class="lead">
        {F.counted(data.cards.length, 'card')}, {F.counted(all.length, 'row')} (one for each program, class, back end and measure), from {F.counted(data.races, 'race')} of {data.window_days ?? 7} days
        {data.updated && <> up to <time dateTime={data.updated}>{F.stamp(data.updated)}</time></>}.
      </p>
      <Filters label="Filter cards">
        <FilterField label="Filter" value={q} placeholder="card, program, variant …" onChange={(v) => look(route, { q: v })} />
        <SelectField label="Program" value={program} onChange={(v) => look(route, { program: v })} options={[['', 'all'], ...programs.map((p) => [p, p] as const)]} />
        <p class="found" role="status">{F.count(rows.length)} of {F.counted(all.length, 'row')}</p>
      </Filters>
      {rows.length === 0 ? <Empty title="No row fits the filter" /> : (
        <Table
          caption="Cards by gain"
          rows={rows}
          keyOf={(r) => r.id}
          sort={parseSort(sort)}
          onSort={(s) => look(route, { sort: formatSort(s) })}
          columns={[
            { key: 'card', title: 'Card', header: true, cell: (r) => <CardLink card={r.card.key} query={rowQuery(r.row)} and={[r.card.silicon?.arch, r.card.key.split('@')[1]].filter(Boolean).join(' · ')} />, sort: (r) => r.card.key },
            { key: 'program', title: 'Program', cell: (r) => <Two and={F.classText(r.row.class)}>{r.row.program}{r.row.metric && `, by ${r.row.metric}`}</Two>, sort: (r) => `${r.row.program} ${F.classText(r.row.class)}` },
            { key: 'backend', title: 'Back end', cell: (r) => <Two and={<Used used={usedOf(r.row, r.card.rows)} />}>{r.row.backend || F.dash}</Two>, sort: (r) => r.row.backend },
            { key: 'variant', title: 'Variant', cell: (r) => <span class="variant">{r.row.variant || F.dash}</span>, sort: (r) => r.row.variant },
            { key: 'gain', title: 'Gain', numeric: true, first: 'desc', cell: (r) => <Gain pct={r.row.gain_pct} ci={r.row.ci} />, sort: (r) => r.row.gain_pct },
            { key: 'strip', title: 'Interval', className: 'strip-cell', head: <StripHead scale={scale} />, cell: (r) => <Strip scale={scale} of={r.row} tone={ofRow(r.row).tone} hollow={r.row.variant === 'base'} /> },
            { key: 'verdict', title: 'Verdict', cell: (r) => <Judged judgement={ofRow(r.row)} />, sort: (r) => ofRow(r.row).words },
            { key: 'rate', title: 'Rate', numeric: true, first: 'desc', cell: (r) => F.rate(r.row.rate, r.row.unit), sort: (r) => r.row.rate },
            { key: 'choice', title: 'Choice', cell: (r) => choiceText(r.row.choice), sort: (r) => r.row.choice },
            { key: 'races', title: 'Races', numeric: true, first: 'desc', cell: (r) => F.count(r.row.races), sort: (r) => r.row.races },
            { key: 'machines', title: 'Machines', numeric: true, first: 'desc', cell: (r) => F.count(r.row.machines), sort: (r) => r.row.machines },
            { key: 'newest', title: 'Newest', numeric: true, first: 'desc', cell: (r) => <Ago stamp={r.row.newest} />, sort: (r) => F.parseStamp(r.row.newest) },
          ]}
        />
      )}
    </>
  );
}

export function CardsView({ route }: ViewProps) {
  const cards = useResource('v1/cards', shapes.cards);
  return (
    <>
      <h1 tabIndex={-1}>Cards</h1>
      <Show of={cards} what="cards">{(data) => <List data={data} route={route} />}</Show>
    </>
  );
}
