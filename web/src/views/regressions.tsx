import * as shapes from '../api/shapes';
import * as F from '../format';
import { look, useResource } from '../hooks';
import { CardLink, Gain, Two } from '../parts/bits';
import { FilterField, Filters } from '../parts/filters';
import { Empty, Show } from '../parts/states';
import { scaleOf, Strip, StripHead } from '../parts/strip';
import { Table } from '../parts/table';
import { formatSort, matches, parseSort } from '../sort';
import type { ViewProps } from '../app';

function cause(r: shapes.Regression): string {
  const driver = r.driver_before && r.driver_before !== r.driver;
  if (r.all_variants) return driver ? 'base got slower as much: driver or card' : 'base got slower as much: the card';
  return driver ? 'this variant alone, with the new driver' : 'this variant alone';
}

function period(w: { from: string; to: string }): string {
  return `${F.shortStamp(w.from)} to ${F.shortStamp(w.to)}`;
}

function List({ data, route }: { data: shapes.Regressions } & ViewProps) {
  const { q = '', sort = 'change' } = route.query;
  const lead = (
    <p class="lead">
      {F.counted(data.compared, 'comparison')} of a variant on a card with a driver
      {data.before && data.after ? `: ${period(data.before)} against ${period(data.after)} (UTC).` : ', one window against the one before.'}
    </p>
  );
  if (data.regressions.length === 0) {
    return (
      <>
        {lead}
        {data.compared === 0 ? (
          <Empty title="Nothing to compare yet">
            <p>No variant was raced in both windows.</p>
          </Empty>
        ) : (
          <Empty title="Nothing got slower">
            <p>No variant is slower by more than the threshold, its interval considered.</p>
          </Empty>
        )}
      </>
    );
  }
  const rows = data.regressions.filter((r) => matches(q, F.cardName(r.card), r.program, F.classText(r.class), r.variant, r.driver, r.driver_before, r.backend));
  const scale = scaleOf(rows.map((r) => ({ gain_pct: r.change_pct, ci: r.ci })));
  return (
    <>
      {lead}
      <Filters label="Filter regressions">
        <FilterField label="Filter" value={q} placeholder="card, driver, variant …" onChange={(v) => look(route, { q: v })} />
        <p class="found" role="status">{F.count(rows.length)} of {F.counted(data.regressions.length, 'regression')}</p>
      </Filters>
      {rows.length === 0 ? <Empty title="No regression fits the filter" /> : (
        <Table
          caption="Regressions"
          rows={rows}
          keyOf={(r) => JSON.stringify([r.card, r.program, r.class, r.backend, r.driver, r.variant, r.unit])}
          sort={parseSort(sort)}
          onSort={(s) => look(route, { sort: formatSort(s) })}
          columns={[
            { key: 'card', title: 'Card', header: true, sort: (r) => r.card, cell: (r) => <CardLink card={r.card} silicon={r.silicon} query={{ program: r.program, class: F.classText(r.class), backend: r.backend }} /> },
            { key: 'program', title: 'Program', sort: (r) => r.program, cell: (r) => <Two and={F.classText(r.class)}>{r.program}</Two> },
            { key: 'variant', title: 'Variant', sort: (r) => r.variant, cell: (r) => <span class="variant">{r.variant}</span> },
            { key: 'change', title: 'Change', numeric: true, first: 'asc', sort: (r) => r.change_pct, cell: (r) => <Gain pct={r.change_pct} ci={r.ci} /> },
            { key: 'strip', title: 'Interval', className: 'strip-cell', head: <StripHead scale={scale} />, cell: (r) => <Strip scale={scale} of={{ gain_pct: r.change_pct, ci: r.ci }} tone="bad" /> },
            { key: 'rates', title: 'Rate', numeric: true, cell: (r) => <Two and={`before ${F.quantity(r.before)}`}>{F.rate(r.after, r.unit)}</Two> },
            { key: 'driver', title: 'Driver', sort: (r) => r.driver, cell: (r) => <Two and={r.driver_before && r.driver_before !== r.driver ? `before ${r.driver_before}` : r.backend}>{r.driver || F.dash}</Two> },
            { key: 'cause', title: 'What', sort: (r) => cause(r), className: 'prose', cell: (r) => cause(r) },
            { key: 'machines', title: 'Machines', numeric: true, first: 'desc', sort: (r) => r.machines, cell: (r) => F.count(r.machines) },
            { key: 'samples', title: 'Samples', numeric: true, first: 'desc', sort: (r) => r.samples, cell: (r) => F.count(r.samples) },
          ]}
        />
      )}
    </>
  );
}

export function RegressionsView({ route }: ViewProps) {
  const regressions = useResource('v1/regressions', shapes.regressions);
  return (
    <>
      <h1 tabIndex={-1}>Regressions</h1>
      <Show of={regressions} what="regressions">{(data) => <List data={data} route={route} />}</Show>
    </>
  );
}
