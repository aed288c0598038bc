import { useRef, useState } from 'preact/hooks';
import * as shapes from '../api/shapes';
import * as F from '../format';
import { useResource, useServices } from '../hooks';
import { exitText, ofVariant, ofVerdict } from '../judge';
import { Ago, cardItem, Facts, Gain, Id, Judged, Link, Mark, Tag } from '../parts/bits';
import { Show } from '../parts/states';
import { scaleOf, Strip, StripHead } from '../parts/strip';
import { Table } from '../parts/table';
import { own } from '../own';
import type { ViewProps } from '../app';

/** Where there is no clipboard (plain HTTP to another host) the text is selected for Ctrl+C. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.setAttribute('aria-hidden', 'true');
    area.className = 'hidden';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

function Copy({ text, children, what }: { text: () => string; children: string; what: string }) {
  const { say } = useServices();
  const [state, set] = useState('');
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const press = async () => {
    const done = await copy(text());
    set(done ? 'Copied' : 'Not allowed here');
    say(done ? `${what} copied` : `${what} could not be copied`);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set(''), 2500);
  };
  return <button type="button" class="button" onClick={press}>{state || children}</button>;
}

interface Raced extends shapes.Detail {
  name: string;
  rate?: number;
}

function raced(record: shapes.RaceRecord): Raced[] {
  const nothing = { out: '', exit: '', same_code_as: '', fallback: false } as shapes.Detail;
  return Object.entries(record.variants).map(([name, rate]) => ({ ...(own(record.detail, name) ?? nothing), name, rate }));
}

function Ended({ v }: { v: Raced }) {
  const words = exitText(v.exit);
  return (
    <span>
      {v.exit && <><Tag>{v.exit}</Tag> </>}
      {v.out || (v.rate === undefined && !v.exit ? 'no rate, and no reason is told' : words)}
      {v.same_code_as && <span class="muted"> same code as {v.same_code_as}</span>}
      {v.fallback && <Mark tone="warn">another kernel ran than its name says</Mark>}
    </span>
  );
}

function Variants({ record }: { record: shapes.RaceRecord }) {
  const rows = raced(record);
  const scale = scaleOf(rows);
  const has = (key: keyof shapes.Detail) => rows.some((v) => v[key] !== undefined);
  return (
    <Table
      caption="All variants of the race"
      rows={rows}
      keyOf={(v) => v.name}
      initial={{ key: 'gain', direction: 'desc' }}
      rowClass={(v) => (v.name === record.winner ? 'chosen' : '')}
      columns={[
        { key: 'name', title: 'Variant', header: true, sort: (v) => v.name, cell: (v) => <><span class="variant">{v.name}</span> {v.name === record.winner && <Tag kind="win">winner</Tag>}</> },
        { key: 'rate', title: 'Rate', numeric: true, first: 'desc', sort: (v) => v.rate, cell: (v) => F.rate(v.rate, record.unit) },
        { key: 'gain', title: 'Gain', numeric: true, first: 'desc', sort: (v) => v.gain_pct ?? (v.name === 'base' ? 0 : undefined), cell: (v) => (v.name === 'base' ? <span class="muted">the measure</span> : <Gain pct={v.gain_pct} ci={v.ci} />) },
        { key: 'strip', title: 'Interval', className: 'strip-cell', head: <StripHead scale={scale} />, cell: (v) => <Strip scale={scale} of={v} tone={ofVariant(v).tone} /> },
        { key: 'exit', title: 'How it ended', sort: (v) => v.exit, className: 'long-cell', cell: (v) => <Ended v={v} /> },
        { key: 'heats', title: 'Heats', numeric: true, first: 'desc', sort: (v) => v.heats, cell: (v) => F.count(v.heats) },
        has('regs') && { key: 'regs', title: 'Registers', numeric: true, first: 'desc', sort: (v: Raced) => v.regs, cell: (v: Raced) => F.count(v.regs) },
        has('spills') && { key: 'spills', title: 'Spills', numeric: true, first: 'desc', sort: (v: Raced) => v.spills, cell: (v: Raced) => (v.spills === undefined ? F.dash : F.bytes(v.spills)) },
        has('error') && { key: 'error', title: 'Error', numeric: true, first: 'desc', sort: (v: Raced) => v.error, cell: (v: Raced) => (v.error === 0 ? 'exact' : F.quantity(v.error)) },
        has('power_w') && { key: 'power', title: 'Power', numeric: true, first: 'desc', sort: (v: Raced) => v.power_w, cell: (v: Raced) => F.rate(v.power_w, 'W') },
        has('compile_ms') && { key: 'compile', title: 'Compile', numeric: true, first: 'desc', sort: (v: Raced) => v.compile_ms, cell: (v: Raced) => F.milliseconds(v.compile_ms) },
      ]}
    />
  );
}

function Evidence({ race }: { race: shapes.OneRace }) {
  const { batch, record } = race;
  if (!batch) return <p><Mark tone="warn">The hub tells no batch for this race: nothing is known of its signature.</Mark></p>;
  return (
    <>
      <p>
        {batch.verified
          ? <Mark tone="ok">Signature checked just now: machine {batch.machine || record.machine} signed these bytes.</Mark>
          : <Mark tone="warn">{batch.signed ? 'The signature was not confirmed: do not trust this record before you know why.' : 'Imported: no machine signed it.'}</Mark>}
      </p>
      <Facts facts={[
        batch.id && { name: 'Batch', value: <Id id={batch.id} /> },
        { name: 'Machine', value: <Id id={batch.machine || record.machine} view="races" query={{ machine: batch.machine || record.machine }} /> },
        batch.received && { name: 'Received', value: F.stamp(batch.received) },
        batch.records !== undefined && { name: 'Records in the batch', value: F.count(batch.records) },
      ]} />
    </>
  );
}

function Race({ race }: { race: shapes.OneRace }) {
  const { record, raw } = race;
  const json = () => JSON.stringify(raw, null, 2);
  return (
    <>
      <div class="verdict">
        <p class="headline">
          <span class="variant big">{record.winner || 'no winner'}</span> <Gain pct={record.gain_pct} ci={record.ci} /> <Judged judgement={ofVerdict(record)} />
          {record.pinned && <Tag>pinned by the tuning</Tag>}
        </p>
        <p>
          {record.program} {F.classText(record.class)} on <Link view="cards" item={cardItem(record.card, record.silicon?.hash)}>{F.cardName(record.card)}</Link>, {F.stamp(record.ts)} (<Ago stamp={record.ts} />)
        </p>
        <p class="actions">
          <Copy what="Link" text={() => location.href}>Copy link</Copy>
          <Copy what="Record" text={json}>Copy record</Copy>
        </p>
      </div>
      <Facts facts={[
        { name: 'Rate', value: F.rate(record.rate, record.unit) },
        { name: 'Rate of base', value: F.rate(record.base_rate, record.unit) },
        record.ceiling !== undefined && { name: 'Ceiling of the card', value: F.rate(record.ceiling, record.unit) },
        record.rate_per_w ? { name: 'Per watt', value: F.rate(record.rate_per_w, record.unit && `${record.unit}/W`) } : undefined,
        record.power_w !== undefined && { name: 'Power', value: `${F.quantity(record.power_w)} W${record.power_limit_w === undefined ? '' : ` of ${F.quantity(record.power_limit_w)} W`}${record.power_pct === undefined ? '' : ` (${F.percent(record.power_pct)} of default)`}` },
        { name: 'Heats', value: F.count(record.heats) },
        { name: 'Back end', value: record.backend || F.dash },
        record.driver && { name: 'Driver', value: record.driver },
        record.compiler && { name: 'Compiler', value: record.compiler },
        record.arch && { name: 'Architecture', value: record.arch },
        record.epoch && { name: 'Epoch', value: <Id id={record.epoch} /> },
        record.source && { name: 'Source', value: <Id id={record.source} /> },
        record.agent && { name: 'Agent', value: record.agent },
        record.slot && { name: 'Slot', value: <Id id={record.slot} /> },
        record.total_ms !== undefined && { name: 'Took', value: `${F.milliseconds(record.total_ms)}${record.compile_ms === undefined ? '' : `, compiling ${F.milliseconds(record.compile_ms)}`}${record.bench_ms === undefined ? '' : `, timing ${F.milliseconds(record.bench_ms)}`}` },
        record.paused_ms !== undefined && { name: 'Serving paused', value: F.milliseconds(record.paused_ms) },
      ]} />
      {record.notes.length > 0 && <ul class="notes">{record.notes.map((note) => <li key={note}>{note}</li>)}</ul>}
      <h2>Variants</h2>
      <Variants record={record} />
      <h2>Evidence</h2>
      <Evidence race={race} />
      <h2>Record</h2>
      <details>
        <summary>The record as the machine wrote it</summary>
        <pre class="raw" tabIndex={0} aria-label="Race record, JSON">{json()}</pre>
      </details>
    </>
  );
}

export function RaceView({ route }: ViewProps) {
  const race = useResource(`v1/races/${encodeURIComponent(route.item)}`, shapes.oneRace);
  return (
    <>
      <p class="crumb"><Link view="races">Races</Link></p>
      <h1 tabIndex={-1}>Race <span class="id">{route.item}</span></h1>
      <Show of={race} what="race">{(data) => <Race race={data} />}</Show>
    </>
  );
}
