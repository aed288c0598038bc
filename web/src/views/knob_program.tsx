import * as shapes from '../api/shapes';
import * as F from '../format';
import { look, useResource } from '../hooks';
import { ofVariant, type Tone } from '../judge';
import { Facts, Gain, Link, Mark } from '../parts/bits';
import { Filters, FilterField, SelectField } from '../parts/filters';
import { Empty, Show } from '../parts/states';
import { scaleOf, Strip, StripHead } from '../parts/strip';
import { Table } from '../parts/table';
import { own } from '../own';
import { matches } from '../sort';
import type { ViewProps } from '../app';
import { Verdict } from './knobs';

const claimTones: Record<string, Tone> = { confirmed: 'ok', contradicted: 'fault', open: 'none' };

function rateOf(r: shapes.Regime) {
  return { gain_pct: r.rate?.gain_pct, ci: r.rate?.ci };
}

function Regimes({ value }: { value: shapes.KnobValue }) {
  const scale = scaleOf(value.regimes.map(rateOf));
  const costs = (r: shapes.Regime) => r.costs.map((c) => `${c.measure} ${F.quantity(c.beside)} → ${F.quantity(c.value)}${c.state === 'loses' ? ' (more)' : ''}`).join('; ');
  return (
    <details>
      <summary>{F.counted(value.regimes.length, 'regime')}</summary>
      <Table
        caption={`Regimes of value ${F.valueText(value.value)}`}
        rows={value.regimes}
        keyOf={(r) => JSON.stringify([r.card, r.driver, r.class])}
        columns={[
          { key: 'card', title: 'Card', header: true, sort: (r) => r.card, cell: (r) => F.cardName(r.card) },
          { key: 'driver', title: 'Driver', sort: (r) => r.driver, cell: (r) => r.driver || F.dash },
          { key: 'class', title: 'Class', sort: (r) => F.classText(r.class), cell: (r) => F.classText(r.class) || F.dash },
          { key: 'gain', title: 'Over the default', numeric: true, first: 'desc', sort: (r) => r.rate?.gain_pct, cell: (r) => <Gain pct={r.rate?.gain_pct} ci={r.rate?.ci} /> },
          { key: 'strip', title: 'Interval', className: 'strip-cell', head: <StripHead scale={scale} />, cell: (r) => <Strip scale={scale} of={rateOf(r)} tone={ofVariant({ name: '', ...rateOf(r) }).tone} /> },
          { key: 'state', title: 'Verdict', sort: (r) => r.rate?.state ?? '', cell: (r) => <>{r.rate?.state || 'none'}{r.rate?.disagree && <Mark tone="warn">races disagree</Mark>}</> },
          { key: 'faults', title: 'Faults', className: 'prose', cell: (r) => r.faults.map((f) => `${f.variant}: ${f.exit}`).join('; ') || F.dash },
          { key: 'costs', title: 'Costs', className: 'prose', cell: (r) => costs(r) || F.dash },
          { key: 'races', title: 'Races', numeric: true, first: 'desc', sort: (r) => r.races, cell: (r) => F.count(r.races) },
        ]}
      />
    </details>
  );
}

function Value({ value }: { value: shapes.KnobValue }) {
  return (
    <div class="knob-value">
      <h4><span class="variant">{F.valueText(value.value)}</span> <Verdict verdict={value.verdict} /></h4>
      <p>{value.why}</p>
      <p class="muted">
        {F.counted(value.races, 'race')}, {F.counted(value.pairs, 'pair')}
        {value.races_missing > 0 && `; at least ${F.counted(value.races_missing, 'race')} missing`}
        {value.regimes_missing > 0 && `; at least ${F.counted(value.regimes_missing, 'regime')} missing`}
        {value.best?.gain_pct !== undefined && `; best ${F.gain(value.best.gain_pct)}`}
        {value.worst?.gain_pct !== undefined && `, worst ${F.gain(value.worst.gain_pct)}`}
      </p>
      {value.claims.length > 0 && (
        <ul class="claims">
          {value.claims.map((c) => <li key={`${c.outcome} ${c.where}`}>Claim, line {F.count(c.line)}: {c.outcome} where <code>{c.where}</code> <Mark tone={own(claimTones, c.state) ?? 'none'}>{c.state}</Mark></li>)}
        </ul>
      )}
      {value.regimes.length > 0 && <Regimes value={value} />}
    </div>
  );
}

const firstSentences = 6;

function Sentences({ title, of }: { title: string; of: string[] }) {
  if (of.length === 0) return null;
  return (
    <section class="sentences">
      <h2>{title}</h2>
      <ul>{of.slice(0, firstSentences).map((s) => <li key={s}>{s}</li>)}</ul>
      {of.length > firstSentences && (
        <details>
          <summary>{F.count(of.length - firstSentences)} more</summary>
          <ul>{of.slice(firstSentences).map((s) => <li key={s}>{s}</li>)}</ul>
        </details>
      )}
    </section>
  );
}

/** Why records of the program were not used, the commonest first. */
export function leftOut(records: NonNullable<shapes.Audit['records']>): string {
  const reasons: [string, number][] = [
    ['of another text of the program', records.other_source], ['of another language', records.other_language], ['by another measure', records.other_metric],
    ['repeated', records.repeated], ['without an interval', records.no_interval], ['of a fallback', records.fallbacks],
  ];
  return reasons.filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]).map(([why, n]) => `${F.count(n)} ${why}`).join(', ');
}

function Edition({ report, filter }: { report: shapes.Audit; filter: string }) {
  const knobs = report.knobs.filter((k) => matches(filter, k.knob, k.verdict, k.summary, ...k.values.map((v) => F.valueText(v.value))));
  return (
    <>
      <Facts facts={[
        report.records && { name: 'Records used', value: `${F.count(report.records.used)} of ${F.count(report.records.given)}` },
        report.records && leftOut(report.records) && { name: 'Not used', value: <span class="long">{leftOut(report.records)}</span> },
        report.threshold_pct !== undefined && { name: 'Threshold', value: F.gain(report.threshold_pct).replace('+', '') },
        report.min_races !== undefined && { name: 'Races wanted', value: F.count(report.min_races) },
        report.min_regimes !== undefined && { name: 'Regimes wanted', value: F.count(report.min_regimes) },
      ]} />
      <Sentences title="Contradictions" of={report.contradictions} />
      <Sentences title="Defects" of={report.defects} />
      <h2>Knobs</h2>
      {knobs.length === 0 && <Empty title={report.knobs.length ? 'No knob fits the filter' : 'The program has no knobs'} />}
      {knobs.map((k) => (
        <section key={k.knob} class="knob" aria-label={`Knob ${k.knob}`}>
          <h3><span class="variant">{k.knob}</span> <Verdict verdict={k.verdict} /> <span class="muted">default {F.valueText(k.default)}; {k.summary}</span></h3>
          {k.values.map((v) => <Value key={F.valueText(v.value)} value={v} />)}
        </section>
      ))}
      {report.lost.length > 0 && (
        <section aria-labelledby="lost">
          <h2 id="lost">Variants that are none of this lattice</h2>
          <Table
            caption="Variants of the records that are none of this lattice"
            rows={report.lost}
            keyOf={(l) => l.variant}
            columns={[
              { key: 'variant', title: 'Variant', header: true, sort: (l) => l.variant, cell: (l) => <span class="variant">{l.variant}</span> },
              { key: 'records', title: 'Records', numeric: true, first: 'desc', sort: (l) => l.records, cell: (l) => F.count(l.records) },
              { key: 'why', title: 'Why', className: 'prose', cell: (l) => l.why },
            ]}
          />
        </section>
      )}
    </>
  );
}

export function KnobProgramView({ route }: ViewProps) {
  const knobs = useResource(`v1/knobs/${encodeURIComponent(route.item)}`, shapes.oneKnobs);
  const { language = '', q = '' } = route.query;
  return (
    <>
      <p class="crumb"><Link view="knobs">Knobs</Link></p>
      <h1 tabIndex={-1}>Knobs of {route.item}</h1>
      <Show of={knobs} what="audit">
        {(data) => {
          const edition = data.editions.find((e) => e.language === language) ?? data.editions[0];
          if (!edition) return <Empty title="No edition of this program is audited" />;
          return (
            <>
              <Filters label="Filter knobs">
                <FilterField label="Filter" value={q} placeholder="knob, value, verdict …" onChange={(v) => look(route, { q: v })} />
                {data.editions.length > 1 && <SelectField label="Language" value={edition.language} onChange={(v) => look(route, { language: v })} options={data.editions.map((e) => [e.language, e.language] as const)} />}
              </Filters>
              {data.cut && data.races !== undefined && <p class="muted">The newest {F.counted(data.races, 'race')} of the window were read; there are more.</p>}
              <Edition report={edition.report} filter={q} />
            </>
          );
        }}
      </Show>
    </>
  );
}
