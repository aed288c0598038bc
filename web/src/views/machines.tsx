import * as shapes from '../api/shapes';
import * as F from '../format';
import { look, useNow, useResource } from '../hooks';
import { Ago, Id, Mark, Share, Tag, Two } from '../parts/bits';
import { FilterField, Filters, SelectField } from '../parts/filters';
import { Empty, Late, Show } from '../parts/states';
import { Table } from '../parts/table';
import { own } from '../own';
import { formatSort, matches, parseSort } from '../sort';
import type { ViewProps } from '../app';

const silentMs = 24 * 3600 * 1000;

export function silent(machine: shapes.Machine, nowMs: number): boolean {
  const seen = F.parseStamp(machine.seen) ?? F.parseStamp(machine.enrolled);
  return machine.state !== 'retired' && !machine.id.startsWith('import:') && seen !== undefined && nowMs - seen > silentMs;
}

interface Facts {
  /** undefined: not known, since the rollout could not be had */
  behind?: ReadonlySet<string>;
  nowMs: number;
}

const kinds: Record<string, { text: string; fits: (m: shapes.Machine, f: Facts) => boolean }> = {
  active: { text: 'active', fits: (m) => m.state !== 'retired' },
  behind: { text: 'behind the rollout', fits: (m, f) => f.behind?.has(m.id) ?? false },
  silent: { text: 'silent for a day', fits: (m, f) => silent(m, f.nowMs) },
  refused: { text: 'with refused records', fits: (m) => m.refused > 0 },
  canaries: { text: 'canaries', fits: (m) => m.canary },
  retired: { text: 'retired', fits: (m) => m.state === 'retired' },
  all: { text: 'all', fits: () => true },
};

function State({ machine, facts }: { machine: shapes.Machine; facts: Facts }) {
  return (
    <span class="tags">
      {machine.state === 'retired' ? <Tag>retired</Tag> : silent(machine, facts.nowMs) ? <Mark tone="warn">silent</Mark> : <Mark tone="ok">{machine.state || 'active'}</Mark>}
      {machine.canary && <Tag kind="near">canary</Tag>}
      {machine.says_canary && !machine.canary && <Tag>calls itself a canary</Tag>}
    </span>
  );
}

function Versions({ title, name, of }: { title: string; name: string; of: [version: string, machines: number][] }) {
  const whole = of.reduce((sum, [, n]) => sum + n, 0);
  return (
    <section aria-labelledby={`versions-${name}`}>
      <h2 id={`versions-${name}`}>{title}</h2>
      <Table
        caption={title}
        rows={of}
        keyOf={([version]) => version}
        initial={{ key: 'machines', direction: 'desc' }}
        columns={[
          { key: 'version', title: 'Version', header: true, cell: ([version]) => version || 'none told', sort: ([version]) => version, first: 'desc' },
          { key: 'machines', title: 'Machines', numeric: true, cell: ([, n]) => F.count(n), sort: ([, n]) => n, first: 'desc' },
          { key: 'share', title: 'Share', className: 'share-cell', cell: ([, n]) => <Share part={n} whole={whole} /> },
        ]}
      />
    </section>
  );
}

export function tally(machines: readonly shapes.Machine[], version: (m: shapes.Machine) => string): [string, number][] {
  const counts = new Map<string, number>();
  for (const m of machines) counts.set(version(m), (counts.get(version(m)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function List({ machines, facts, route }: { machines: shapes.Machine[]; facts: Facts } & ViewProps) {
  const { q = '', show = 'active', sort = '-seen' } = route.query;
  const kind = own(kinds, show) ?? kinds['all'];
  const rows = machines.filter((m) => kind?.fits(m, facts) && matches(q, m.id, m.label, m.agent, m.state, m.canary ? 'canary' : '', m.replaces));
  const unknown = kind === kinds['behind'] && !facts.behind;
  const found = (k: typeof kind) => (k === kinds['behind'] && !facts.behind ? 'unknown' : F.count(machines.filter((m) => k?.fits(m, facts)).length));
  return (
    <>
      <Filters label="Filter machines">
        <FilterField label="Filter" value={q} placeholder="fingerprint, label, version …" onChange={(v) => look(route, { q: v })} />
        <SelectField label="Show" value={show} onChange={(v) => look(route, { show: v })} options={Object.entries(kinds).map(([key, k]) => [key, `${k.text} (${found(k)})`] as const)} />
        <p class="found" role="status">{unknown ? 'unknown' : F.count(rows.length)} of {F.counted(machines.length, 'machine')}</p>
      </Filters>
      {unknown ? <Empty title="Not known who is behind"><p>The hub has not told its rollout.</p></Empty> : rows.length === 0 ? <Empty title="No machine fits the filter" /> : (
        <Table
          caption="Machines"
          rows={rows}
          keyOf={(m) => m.id}
          sort={parseSort(sort)}
          onSort={(s) => look(route, { sort: formatSort(s) })}
          columns={[
            { key: 'machine', title: 'Machine', header: true, sort: (m) => m.label || m.id, cell: (m) => <>{m.label && <b class="label">{m.label}</b>} <Id id={m.id} view="races" query={{ machine: m.id }} /></> },
            { key: 'state', title: 'State', sort: (m) => `${m.state}${silent(m, facts.nowMs)}`, cell: (m) => <State machine={m} facts={facts} /> },
            { key: 'seen', title: 'Last batch', numeric: true, first: 'desc', sort: (m) => F.parseStamp(m.seen), cell: (m) => <Ago stamp={m.seen} /> },
            { key: 'agent', title: 'Agent', sort: (m) => m.agent, first: 'desc', cell: (m) => m.agent || F.dash },
            { key: 'manifest', title: 'Manifest', sort: (m) => m.manifest, first: 'desc', cell: (m) => <>{m.manifest || 'none'} {facts.behind?.has(m.id) && <Mark tone="warn">behind</Mark>}</> },
            { key: 'accepted', title: 'Accepted', numeric: true, first: 'desc', sort: (m) => m.accepted, cell: (m) => F.count(m.accepted) },
            { key: 'duplicate', title: 'Duplicate', numeric: true, first: 'desc', sort: (m) => m.duplicate, cell: (m) => F.count(m.duplicate) },
            { key: 'refused', title: 'Refused', numeric: true, first: 'desc', sort: (m) => m.refused, cell: (m) => (m.refused > 0 ? <Mark tone="fault">{F.count(m.refused)}</Mark> : '0') },
            { key: 'why', title: 'Last refusal', className: 'prose', cell: (m) => m.last_refusal || <span class="muted">{F.dash}</span> },
            { key: 'enrolled', title: 'Enrolled', numeric: true, first: 'desc', sort: (m) => F.parseStamp(m.enrolled), cell: (m) => <Two and={m.replaces && `for ${m.replaces}`}>{F.shortStamp(m.enrolled).slice(0, 10)}</Two> },
          ]}
        />
      )}
    </>
  );
}

export function MachinesView({ route }: ViewProps) {
  const machines = useResource('v1/machines', shapes.machines);
  const rollout = useResource('v1/rollout', shapes.rollout);
  const nowMs = useNow(60_000);
  return (
    <>
      <h1 tabIndex={-1}>Machines</h1>
      <Show of={machines} what="machines">
        {(data) => {
          if (data.machines.length === 0) {
            return (
              <Empty title="No machine is enrolled">
                <p>Make a one-time token with <code>furlong hub token</code> and give it to a machine’s agent.</p>
              </Empty>
            );
          }
          const active = data.machines.filter((m) => m.state !== 'retired' && !m.id.startsWith('import:'));
          const facts = { behind: rollout.data && new Set(rollout.data.stragglers), nowMs };
          return (
            <>
              <Late of={rollout} what="the rollout" />
              <p class="lead">
                {F.counted(active.length, 'active machine')}, {F.count(active.filter((m) => m.canary).length)} canaries; {facts.behind ? `${F.count(facts.behind.size)} behind the manifest that is served` : 'unknown how many are behind the manifest that is served'}
                {rollout.data?.manifest && ` (${rollout.data.manifest.version})`}; {F.count(active.filter((m) => silent(m, nowMs)).length)} silent for a day.
              </p>
              <div class="pair">
                <Versions title="Agents by version" name="agent" of={tally(active, (m) => m.agent)} />
                <Versions title="Manifests followed" name="manifest" of={tally(active, (m) => m.manifest)} />
              </div>
              <h2>All machines</h2>
              <List machines={data.machines} facts={facts} route={route} />
            </>
          );
        }}
      </Show>
    </>
  );
}
