import type { ComponentChildren } from 'preact';
import * as shapes from '../api/shapes';
import * as F from '../format';
import { useNow, usePulse, useResource } from '../hooks';
import { ofRow, ofVerdict } from '../judge';
import { Ago, CardLink, Gain, Judged, Link, Mark } from '../parts/bits';
import { scaleOf, Strip, StripHead } from '../parts/strip';
import { Empty, Show } from '../parts/states';
import { Table } from '../parts/table';
import type { View } from '../route';
import type { ViewProps } from '../app';
import { flat, rowQuery } from './card_rows';
import { silent } from './machines';

function Tile({ title, value, note, view }: { title: string; value: ComponentChildren; note?: ComponentChildren; view?: View }) {
  return (
    <div class="tile">
      <dt>{view ? <Link view={view}>{title}</Link> : title}</dt>
      <dd>
        <span class="figure">{value}</span>
        {note && <span class="muted">{note}</span>}
      </dd>
    </div>
  );
}

function Tiles() {
  const { summary, error } = usePulse();
  if (!summary) return <p class="muted" role="status">{error ? 'Nothing was heard from the hub yet.' : 'Asking the hub …'}</p>;
  return (
    <dl class="tiles">
      <Tile title="Machines" view="machines" value={F.count(summary.machines)} />
      <Tile title="Cards" view="cards" value={F.count(summary.cards)} note="kinds of silicon" />
      <Tile title="Races" view="races" value={F.count(summary.races)} note={summary.newest ? <>newest <Ago stamp={summary.newest} /></> : 'none yet'} />
      <Tile title="Store" value={F.bytes(summary.store?.bytes)} note={summary.store ? summary.store.version || summary.store.kind : undefined} />
      <Tile title="Hub" value={<>up {F.duration(summary.uptime_s)}</>} note={summary.stale_s ? `aggregates ${F.duration(summary.stale_s)} behind` : 'aggregates up to date'} />
    </dl>
  );
}

interface Concern {
  key: string;
  tone: 'bad' | 'fault' | 'warn';
  words: ComponentChildren;
  view: View;
  query?: Record<string, string>;
}

/** That machines are behind is as wanted while a manifest is offered to some only. */
function behindWords({ manifest }: shapes.Rollout): string {
  const some = manifest?.percent !== undefined && manifest.percent < 100;
  return `behind the manifest that is served${some ? `, which is offered to ${F.percent(manifest.percent ?? 0)} and the canaries` : ''}`;
}

function rolloutConcerns(rollout: shapes.Rollout, now: number): Concern[] {
  const found: Concern[] = [];
  const { manifest, stop, problem } = rollout;
  if (problem) found.push({ key: 'problem', tone: 'fault', view: 'rollout', words: `No manifest can be served: ${problem}` });
  if (stop) found.push({ key: 'stop', tone: 'fault', view: 'rollout', words: `Stop ${stop.version} holds from manifest ${stop.from} on: machines race in full` });
  if (manifest?.expired) found.push({ key: 'expired', tone: 'fault', view: 'rollout', words: `Manifest ${manifest.version} has expired: nothing is pinned until a newer one is published` });
  const left = manifest && !manifest.expired ? ((F.parseStamp(manifest.expires) ?? Infinity) - now) / 86_400_000 : Infinity;
  if (manifest && left < 3) found.push({ key: 'expires', tone: 'warn', view: 'rollout', words: `Manifest ${manifest.version} expires ${F.until(manifest.expires, now)}` });
  if (rollout.canaries?.regressions) found.push({ key: 'canaries', tone: 'bad', view: 'regressions', words: `${F.counted(rollout.canaries.regressions, 'regression')} in the canaries’ races` });
  if (rollout.stragglers.length > 0) found.push({ key: 'stragglers', tone: 'warn', view: 'machines', query: { show: 'behind' }, words: `${F.counted(rollout.stragglers.length, 'machine')} of ${F.count(rollout.machines)} ${behindWords(rollout)}` });
  return found;
}

function Concerns() {
  const now = useNow(60_000);
  const rollout = useResource('v1/rollout', shapes.rollout);
  const regressions = useResource('v1/regressions', shapes.regressions);
  const machines = useResource('v1/machines', shapes.machines);
  const found: Concern[] = rollout.data ? rolloutConcerns(rollout.data, now) : [];
  const slower = regressions.data?.regressions.length ?? 0;
  if (slower > 0) found.push({ key: 'slower', tone: 'bad', view: 'regressions', words: `${F.counted(slower, 'variant')} got slower between the last two windows` });
  const active = machines.data?.machines.filter((m) => m.state !== 'retired') ?? [];
  const quiet = active.filter((m) => silent(m, now)).length;
  if (quiet > 0) found.push({ key: 'silent', tone: 'warn', view: 'machines', query: { show: 'silent' }, words: `${F.counted(quiet, 'machine')} sent nothing for a day` });
  const refused = active.filter((m) => m.refused > 0).length;
  if (refused > 0) found.push({ key: 'refused', tone: 'warn', view: 'machines', query: { show: 'refused' }, words: `Records of ${F.counted(refused, 'machine')} were refused` });

  const asked = [{ of: rollout, what: 'the rollout' }, { of: regressions, what: 'regressions' }, { of: machines, what: 'machines' }];
  const failed = asked.filter(({ of }) => of.error);
  const waiting = asked.some(({ of }) => of.loading && of.data === undefined);
  return (
    <section aria-labelledby="look">
      <h2 id="look">To look at</h2>
      {failed.length > 0 && (
        <p class="note warn" role="status">
          The newest of {failed.map(({ what }) => what).join(', ')} could not be had: {[...new Set(failed.map(({ of }) => of.error?.message))].join('; ')}. It is asked again by itself.
        </p>
      )}
      {found.length === 0 && waiting && failed.length === 0 && <p class="muted" role="status">Looking …</p>}
      {found.length === 0 && !waiting && failed.length === 0 && <p class="calm">{active.length > 0 ? <Mark tone="ok">Nothing: no regression, nobody behind, no stop.</Mark> : <Mark tone="none">Nothing yet: no machine is enrolled.</Mark>}</p>}
      {found.length > 0 && (
        <ul class="concerns">
          {found.sort((a, b) => Number(b.tone !== 'warn') - Number(a.tone !== 'warn')).map((c) => (
            <li key={c.key}>
              <Mark tone={c.tone}><Link view={c.view} query={c.query}>{c.words}</Link></Mark>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Best() {
  const cards = useResource('v1/cards', shapes.cards);
  return (
    <section aria-labelledby="best">
      <h2 id="best">Largest gains</h2>
      <Show of={cards} what="cards">
        {(data) => {
          const rows = flat(data).filter((r) => r.row.variant && r.row.variant !== 'base').sort((a, b) => (b.row.gain_pct ?? -Infinity) - (a.row.gain_pct ?? -Infinity)).slice(0, 6);
          if (rows.length === 0) return <Empty title="No card has a winner yet"><p>It takes a few races of a variant before it can win.</p></Empty>;
          const scale = scaleOf(rows.map((r) => r.row));
          return (
            <>
              <Table
                caption="Cards with the largest gains"
                rows={rows}
                keyOf={(r) => r.id}
                columns={[
                  { key: 'card', title: 'Card', header: true, cell: (r) => <CardLink card={r.card.key} query={rowQuery(r.row)} and={`${r.row.program} ${F.classText(r.row.class)}${r.row.metric && `, by ${r.row.metric}`}`} /> },
                  { key: 'variant', title: 'Variant', cell: (r) => <span class="variant">{r.row.variant}</span> },
                  { key: 'gain', title: 'Gain over base', numeric: true, cell: (r) => <Gain pct={r.row.gain_pct} ci={r.row.ci} /> },
                  { key: 'strip', title: 'Interval', className: 'strip-cell', head: <StripHead scale={scale} />, cell: (r) => <Strip scale={scale} of={r.row} tone={ofRow(r.row).tone} /> },
                ]}
              />
              <p><Link view="cards">All cards</Link></p>
            </>
          );
        }}
      </Show>
    </section>
  );
}

function Newest() {
  const races = useResource('v1/races?limit=8', shapes.races);
  return (
    <section aria-labelledby="newest">
      <h2 id="newest">Newest races</h2>
      <Show of={races} what="races">
        {(data) => data.races.length === 0
          ? <Empty title="No race yet"><p>Machines send their race records by themselves once they are enrolled.</p></Empty>
          : (
            <>
              <Table
                caption="Newest races"
                rows={data.races}
                keyOf={(r) => r.id}
                columns={[
                  { key: 'ts', title: 'When', header: true, cell: (r) => <Link view="races" item={r.id}><Ago stamp={r.ts} /></Link> },
                  { key: 'card', title: 'Card', cell: (r) => F.cardName(r.card.split('@')[0] ?? '') },
                  { key: 'program', title: 'Program', cell: (r) => r.program },
                  { key: 'winner', title: 'Winner', cell: (r) => <span class="variant">{r.winner || F.dash}</span> },
                  { key: 'verdict', title: 'Verdict', cell: (r) => <Judged judgement={ofVerdict(r)} /> },
                  { key: 'gain', title: 'Gain', numeric: true, cell: (r) => F.gain(r.gain_pct) },
                ]}
              />
              <p><Link view="races">All races</Link></p>
            </>
          )}
      </Show>
    </section>
  );
}

export function HomeView(_: ViewProps) {
  return (
    <>
      <h1 tabIndex={-1}>Overview</h1>
      <Tiles />
      <Concerns />
      <div class="pair">
        <Best />
        <Newest />
      </div>
    </>
  );
}
