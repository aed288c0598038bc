import * as shapes from '../api/shapes';
import * as F from '../format';
import { useNow, useResource } from '../hooks';
import { Bar, Facts, Id, Link, Mark, Share } from '../parts/bits';
import { Empty, Show } from '../parts/states';
import { Table } from '../parts/table';
import type { ViewProps } from '../app';

const firstStragglers = 24;

function Served({ rollout, nowMs }: { rollout: shapes.Rollout; nowMs: number }) {
  const { manifest } = rollout;
  if (!manifest) {
    return (
      <Empty title="No manifest is served">
        <p>{rollout.problem || <>Publish one with <code>furlong fleet publish</code> and give the hub its file. Until then every machine races in full.</>}</p>
      </Empty>
    );
  }
  const on = rollout.by_version.find((v) => v.manifest === manifest.version)?.machines ?? 0;
  const percent = rollout.machines > 0 ? Math.round((100 * on) / rollout.machines) : 0;
  return (
    <section aria-labelledby="served">
      <h2 id="served">Manifest {manifest.version}</h2>
      <div class="progress">
        <p class="headline"><b class="figure">{percent}%</b> <span>{F.count(on)} of {F.counted(rollout.machines, 'machine')} follow it</span></p>
        <Bar part={on} whole={rollout.machines} />
      </div>
      <Facts facts={[
        { name: 'Offered to', value: manifest.percent === undefined ? F.dash : `${F.percent(manifest.percent)} of machines, and all canaries` },
        { name: 'Channel', value: manifest.channel || F.dash },
        { name: 'Product', value: manifest.product || F.dash },
        { name: 'Issued', value: F.stamp(manifest.issued) },
        { name: 'Expires', value: <>{F.stamp(manifest.expires)} {manifest.expired ? <Mark tone="fault">expired</Mark> : <span class="muted">{F.until(manifest.expires, nowMs)}</span>}</> },
      ]} />
    </section>
  );
}

function Canaries({ rollout }: { rollout: shapes.Rollout }) {
  const { canaries } = rollout;
  const waiting = rollout.manifest ? 0 : rollout.by_version.reduce((sum, row) => sum + row.canaries, 0);
  return (
    <section aria-labelledby="canaries">
      <h2 id="canaries">Canaries</h2>
      {waiting > 0 ? <p>{F.counted(waiting, 'machine is a canary', 'machines are canaries')}: a manifest is offered to them first.</p> : !canaries || canaries.machines === 0 ? <p class="muted">No machine is a canary: a bad manifest would be seen by all at once.</p> : (
        <p>
          {F.counted(canaries.machines, 'canary', 'canaries')} sent {F.counted(canaries.races, 'race')} under it:{' '}
          {canaries.regressions > 0
            ? <Mark tone="bad"><Link view="regressions">{F.counted(canaries.regressions, 'regression')}</Link></Mark>
            : canaries.races > 0 ? <Mark tone="ok">no regression</Mark> : <Mark tone="none">nothing to judge by yet</Mark>}
        </p>
      )}
    </section>
  );
}

function Stragglers({ rollout }: { rollout: shapes.Rollout }) {
  const { stragglers, manifest } = rollout;
  const nobody = manifest ? <Mark tone="ok">Nobody is behind.</Mark> : <Mark tone="none">There is no manifest to be behind.</Mark>;
  return (
    <section aria-labelledby="stragglers">
      <h2 id="stragglers">Stragglers</h2>
      {stragglers.length === 0 ? <p class="calm">{nobody}</p> : (
        <>
          <p>{F.counted(stragglers.length, 'machine follows', 'machines follow')} an older manifest or none. <Link view="machines" query={{ show: 'behind' }}>See them with their versions</Link></p>
          <ul class="ids">
            {stragglers.slice(0, firstStragglers).map((id) => <li key={id}><Id id={id} view="races" query={{ machine: id }} /></li>)}
            {stragglers.length > firstStragglers && <li class="muted">and {F.count(stragglers.length - firstStragglers)} more</li>}
          </ul>
        </>
      )}
    </section>
  );
}

export function RolloutView(_: ViewProps) {
  const rollout = useResource('v1/rollout', shapes.rollout);
  const nowMs = useNow(60_000);
  return (
    <>
      <h1 tabIndex={-1}>Rollout</h1>
      <Show of={rollout} what="rollout">
        {(data) => (
          <>
            {data.stop && (
              <div class="banner bad inline">
                <p><b>Stop {data.stop.version} holds</b>, issued {F.stamp(data.stop.issued)}: from manifest {data.stop.from} on nothing is pinned, and machines race in full. It ends with a manifest that lifts it (<code>furlong fleet publish --lift-stop</code>).</p>
              </div>
            )}
            {data.problem && data.manifest && <div class="banner bad inline"><p><b>The manifest’s file is not served</b>: {data.problem}</p></div>}
            <Served rollout={data} nowMs={nowMs} />
            {data.by_version.length > 0 && (
              <section aria-labelledby="versions">
                <h2 id="versions">By version</h2>
                <Table
                  caption="Machines by the manifest that they follow"
                  rows={data.by_version}
                  keyOf={(v) => v.manifest}
                  initial={{ key: 'version', direction: 'desc' }}
                  rowClass={(v) => (v.manifest === data.manifest?.version ? 'chosen' : '')}
                  columns={[
                    { key: 'version', title: 'Manifest', header: true, sort: (v) => v.manifest, first: 'desc', cell: (v) => <>{v.manifest || 'none'} {v.manifest === data.manifest?.version && <span class="tag win">served</span>}</> },
                    { key: 'machines', title: 'Machines', numeric: true, sort: (v) => v.machines, first: 'desc', cell: (v) => F.count(v.machines) },
                    { key: 'canaries', title: 'Canaries', numeric: true, sort: (v) => v.canaries, first: 'desc', cell: (v) => F.count(v.canaries) },
                    { key: 'share', title: 'Share', className: 'share-cell', cell: (v) => <Share part={v.machines} whole={data.machines} /> },
                  ]}
                />
              </section>
            )}
            <div class="pair">
              <Canaries rollout={data} />
              <Stragglers rollout={data} />
            </div>
          </>
        )}
      </Show>
    </>
  );
}
