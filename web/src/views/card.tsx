import { useEffect, useState } from 'preact/hooks';
import * as shapes from '../api/shapes';
import * as F from '../format';
import { useResource } from '../hooks';
import { asideText, choiceText, ofRow, ofVariant } from '../judge';
import { Ago, Facts, Gain, Id, Judged, Link, Mark, Tag, Used } from '../parts/bits';
import { Empty, Show } from '../parts/states';
import { scaleOf, Strip, StripHead } from '../parts/strip';
import { Table } from '../parts/table';
import { TimePlot } from '../parts/time_plot';
import type { ViewProps } from '../app';
import { findRow, rowName, rowQuery, usedOf } from './card_rows';

const mostShown = 6;

function Made({ silicon }: { silicon: shapes.Silicon }) {
  return (
    <Facts facts={[
      silicon.vendor && { name: 'Vendor', value: silicon.vendor },
      silicon.arch && { name: 'Architecture', value: silicon.arch },
      silicon.multiprocessors ? { name: 'Multiprocessors', value: F.count(silicon.multiprocessors) } : undefined,
      silicon.memory_bytes ? { name: 'Memory', value: F.bytes(silicon.memory_bytes) } : undefined,
      silicon.memory_clock_mhz ? { name: 'Memory clock', value: `${F.count(silicon.memory_clock_mhz)} MHz` } : undefined,
      silicon.hash && { name: 'Silicon', value: <Id id={silicon.hash} /> },
    ]} />
  );
}

function Rows({ card, now }: { card: shapes.Card; now: shapes.Row }) {
  if (card.rows.length < 2) return null;
  return (
    <section aria-labelledby="rows">
      <h2 id="rows">Programs and classes</h2>
      <Table
        caption="Programs and classes raced on this card"
        rows={card.rows}
        keyOf={rowName}
        rowClass={(r) => (r === now ? 'chosen' : '')}
        columns={[
          { key: 'program', title: 'Program', header: true, sort: (r) => `${r.program} ${F.classText(r.class)}`, cell: (r) => <Link view="cards" item={card.key} query={rowQuery(r)} aria-current={r === now ? 'true' : undefined}>{r.program} {F.classText(r.class)}</Link> },
          { key: 'backend', title: 'Back end', cell: (r) => <>{r.backend}{r.metric && `, by ${r.metric}`} <Used used={usedOf(r, card.rows)} /></>, sort: (r) => r.backend },
          { key: 'variant', title: 'Variant', cell: (r) => <span class="variant">{r.variant || F.dash}</span>, sort: (r) => r.variant },
          { key: 'gain', title: 'Gain', numeric: true, first: 'desc', cell: (r) => <Gain pct={r.gain_pct} ci={r.ci} />, sort: (r) => r.gain_pct },
          { key: 'says', title: 'Verdict', cell: (r) => <Judged judgement={ofRow(r)} /> },
          { key: 'choice', title: 'Choice', cell: (r) => choiceText(r.choice), sort: (r) => r.choice },
          { key: 'races', title: 'Races', numeric: true, first: 'desc', cell: (r) => F.count(r.races), sort: (r) => r.races },
        ]}
      />
    </section>
  );
}

interface Picked {
  names: readonly string[];
  toggle: (name: string) => void;
}

function place(row: shapes.Row, name: string) {
  if (name === row.variant) return <Tag kind="win">chosen</Tag>;
  if (name !== 'base' && row.candidates.includes(name)) return <Tag kind="near">candidate</Tag>;
  return null;
}

function Variants({ row, picked }: { row: shapes.Row; picked: Picked }) {
  const scale = scaleOf(row.variants);
  const standing = row.variants.some((v) => v.standing_pct !== undefined);
  return (
    <Table
      caption="Variants with their gains over base"
      rows={row.variants}
      keyOf={(v) => v.name}
      initial={{ key: standing ? 'standing' : 'gain', direction: 'desc' }}
      rowClass={(v) => (v.name === row.variant ? 'chosen' : '')}
      columns={[
        { key: 'name', title: 'Variant', header: true, sort: (v) => v.name, cell: (v) => <><span class="variant">{v.name}</span> {place(row, v.name)}</> },
        { key: 'gain', title: 'Gain', numeric: true, first: 'desc', sort: (v) => v.gain_pct, cell: (v) => <Gain pct={v.gain_pct} ci={v.ci} /> },
        { key: 'strip', title: 'Interval', className: 'strip-cell', head: <StripHead scale={scale} />, cell: (v) => <Strip scale={scale} of={v} tone={ofVariant(v).tone} hollow={v.name === 'base'} /> },
        standing && { key: 'standing', title: 'Standing', numeric: true, first: 'desc', sort: (v) => v.standing_pct, cell: (v) => F.gain(v.standing_pct) },
        { key: 'says', title: 'Verdict', cell: (v) => <Judged judgement={ofVariant(v)} />, sort: (v) => ofVariant(v).words },
        { key: 'rate', title: 'Rate', numeric: true, first: 'desc', sort: (v) => v.rate, cell: (v) => F.rate(v.rate, row.unit) },
        row.variants.some((v) => v.rate_per_w !== undefined) && { key: 'watt', title: 'Per watt', numeric: true, first: 'desc', sort: (v) => v.rate_per_w, cell: (v) => F.rate(v.rate_per_w, row.unit && `${row.unit}/W`) },
        { key: 'won', title: 'Won', numeric: true, first: 'desc', sort: (v) => v.won, cell: (v) => F.count(v.won) },
        { key: 'samples', title: 'Samples', numeric: true, first: 'desc', sort: (v) => v.samples, cell: (v) => F.count(v.samples) },
        { key: 'machines', title: 'Machines', numeric: true, first: 'desc', sort: (v) => v.machines, cell: (v) => F.count(v.machines) },
        { key: 'exits', title: 'Left the race', cell: (v) => F.exitsText(v.exits) || <span class="muted">never</span> },
        { key: 'show', title: 'Below', cell: (v) => v.days.length + v.drivers.length + v.strata.length > 0 && (
          <label class="check"><input type="checkbox" checked={picked.names.includes(v.name)} disabled={!picked.names.includes(v.name) && picked.names.length >= mostShown} onChange={() => picked.toggle(v.name)} /> <span class="hidden">Show {v.name} below</span></label>
        ) },
      ]}
    />
  );
}

type Split = { of: string; variant: string; gain_pct?: number; ci?: [number, number]; samples: number; machines: number };

function SplitTable({ title, caption, rows, samples = true }: { title: string; caption: string; rows: Split[]; samples?: boolean }) {
  if (rows.length === 0) return <p class="muted">There are no figures for these variants yet.</p>;
  const scale = scaleOf(rows);
  return (
    <Table
      caption={caption}
      rows={rows}
      keyOf={(r) => `${r.of} ${r.variant}`}
      columns={[
        { key: 'of', title, header: true, cell: (r) => r.of || 'unknown', sort: (r) => r.of },
        { key: 'variant', title: 'Variant', cell: (r) => <span class="variant">{r.variant}</span>, sort: (r) => r.variant },
        { key: 'gain', title: 'Gain', numeric: true, first: 'desc', cell: (r) => <Gain pct={r.gain_pct} ci={r.ci} />, sort: (r) => r.gain_pct },
        { key: 'strip', title: 'Interval', className: 'strip-cell', head: <StripHead scale={scale} />, cell: (r) => <Strip scale={scale} of={r} tone={ofVariant({ name: r.variant, gain_pct: r.gain_pct, ci: r.ci }).tone} /> },
        samples && { key: 'samples', title: 'Samples', numeric: true, first: 'desc', cell: (r) => F.count(r.samples), sort: (r) => r.samples },
        { key: 'machines', title: 'Machines', numeric: true, first: 'desc', cell: (r) => F.count(r.machines), sort: (r) => r.machines },
      ]}
    />
  );
}

function SetAside({ row }: { row: shapes.Row }) {
  return (
    <section aria-labelledby="aside">
      <h3 id="aside">Set aside</h3>
      {row.set_aside.length === 0 ? <p class="muted">Nothing was set aside.</p> : (
        <Table
          caption="What was set aside, and why"
          rows={row.set_aside}
          keyOf={(s) => `${s.machine} ${s.reason} ${s.why}`}
          columns={[
            { key: 'machine', title: 'Machine', header: true, cell: (s) => (s.machine ? <Id id={s.machine} view="races" query={{ machine: s.machine }} /> : F.dash), sort: (s) => s.machine },
            { key: 'reason', title: 'Reason', cell: (s) => asideText(s.reason), sort: (s) => s.reason },
            { key: 'why', title: 'Why', cell: (s) => s.why },
            { key: 'races', title: 'Races', numeric: true, first: 'desc', cell: (s) => F.count(s.races), sort: (s) => s.races },
          ]}
        />
      )}
    </section>
  );
}

function usePicked(row: shapes.Row): Picked & { variants: shapes.Variant[] } {
  const first = row.variants.filter((v) => v.name !== 'base' && v.gain_pct !== undefined).sort((a, b) => (b.standing_pct ?? b.gain_pct ?? 0) - (a.standing_pct ?? a.gain_pct ?? 0)).slice(0, 3).map((v) => v.name);
  const [own, set] = useState<readonly string[]>();
  const id = rowName(row);
  useEffect(() => set(undefined), [id]);
  const names = own ?? first;
  const toggle = (name: string) => set(names.includes(name) ? names.filter((n) => n !== name) : [...names, name].slice(0, mostShown));
  return { names, toggle, variants: row.variants.filter((v) => names.includes(v.name)) };
}

function RowView({ card, row }: { card: shapes.Card; row: shapes.Row }) {
  const picked = usePicked(row);
  const title = [row.program, F.classText(row.class)].filter(Boolean).join(', ');
  const near = row.candidates.filter((name) => name !== row.variant && name !== 'base');
  return (
    <section aria-labelledby="row">
      <h2 id="row">{title} <span class="muted">on {row.backend || 'an unknown back end'}{row.metric && `, by ${row.metric}`}</span></h2>
      <div class="verdict">
        <p class="headline">
          <span class="variant big">{row.variant || 'no winner'}</span> <Gain pct={row.gain_pct} ci={row.ci} /> <Judged judgement={ofRow(row)} />
        </p>
        <p>{row.why || 'The hub gives no reason.'}</p>
        {usedOf(row, card.rows) === 'not used' && <p><Mark tone="warn">The tuning takes the row of another back end or measure.</Mark></p>}
        {near.length > 0 && <p class="muted">As good as the best, within 1%: {near.map((n) => <span key={n} class="variant">{n}</span>)}</p>}
      </div>
      <Facts facts={[
        { name: 'Choice', value: choiceText(row.choice) },
        { name: 'Rate', value: F.rate(row.rate, row.unit) },
        { name: 'Rate of base', value: F.rate(row.base_rate, row.unit) },
        row.rate_per_w !== undefined && { name: 'Per watt', value: F.rate(row.rate_per_w, row.unit && `${row.unit}/W`) },
        { name: 'Samples', value: F.count(row.samples) },
        { name: 'Races', value: <Link view="races" query={{ ...(card.silicon?.hash ? { silicon: card.silicon.hash } : { card: card.key }), program: row.program, backend: row.backend }}>{F.count(row.races)}</Link> },
        { name: 'Machines', value: F.count(row.machines) },
        { name: 'Newest', value: <Ago stamp={row.newest} /> },
      ]} />
      <h3>Variants</h3>
      {row.variants.some((v) => v.standing_pct !== undefined) && <p class="muted">The choice compares the standing: the median over all machines, where one that has not raced a variant counts as having seen no gain. A gain of a few machines alone does not win.</p>}
      {row.variants.length === 0 ? <p class="muted">The hub tells nothing of its variants.</p> : <Variants row={row} picked={picked} />}
      <section aria-labelledby="days">
        <h3 id="days">Over time</h3>
        {picked.names.length === 0 ? <p class="muted">Choose variants in the table above (column Below).</p> : <TimePlot variants={picked.variants} title="gain over base by day" />}
      </section>
      <div class="pair">
        <section aria-labelledby="drivers">
          <h3 id="drivers">By driver</h3>
          <SplitTable title="Driver" caption="Gains by driver" rows={picked.variants.flatMap((v) => v.drivers.map((d) => ({ ...d, of: d.driver, variant: v.name })))} />
        </section>
        <section aria-labelledby="power">
          <h3 id="power">By power cap</h3>
          <SplitTable title="Cap" caption="Gains by power cap, the limit in watts" samples={false} rows={picked.variants.flatMap((v) => v.strata.map((s) => ({ ...s, of: s.power, variant: v.name })))} />
        </section>
      </div>
      <SetAside row={row} />
    </section>
  );
}

export function CardView({ route }: ViewProps) {
  const card = useResource(`v1/cards/${encodeURIComponent(route.item)}`, shapes.oneCard);
  return (
    <>
      <p class="crumb"><Link view="cards">Cards</Link></p>
      <h1 tabIndex={-1}>{F.cardName(card.data?.key ?? route.item)}</h1>
      <Show of={card} what="card">
        {(data) => {
          const row = findRow(data.rows, route.query);
          return (
            <>
              {data.aliases.length > 0 && <p class="lead">Also known as {data.aliases.map(F.cardName).join(', ')}.</p>}
              {data.silicon && <Made silicon={data.silicon} />}
              {row ? <><Rows card={data} now={row} /><RowView card={data} row={row} /></> : <Empty title="Nothing has raced on this card within the window" />}
            </>
          );
        }}
      </Show>
    </>
  );
}
