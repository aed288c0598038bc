// A made-up fleet in the shapes of docs/formats/hub-api.md; the same seed gives the same fleet.

import { makeAudit } from './audit.mjs';

function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const round = (value, digits = 2) => Number(value.toFixed(digits));
const stamp = (ms) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
const hour = 3_600_000;
const day = 24 * hour;

const kinds = [
  { label: 'NVIDIA_GeForce_RTX_5090', aliases: ['GeForce_RTX_5090'], vendor: 'NVIDIA', arch: 'sm_120', mp: 170, gib: 31.8, clock: 14001, backend: 'cuda', driver: ['580.95.05', '575.57.08'], base: 115.9 },
  { label: 'NVIDIA_H200', vendor: 'NVIDIA', arch: 'sm_90', mp: 132, gib: 139.8, clock: 3201, backend: 'cuda', driver: ['580.159.04'], base: 131.2 },
  { label: 'NVIDIA_GeForce_RTX_4090', vendor: 'NVIDIA', arch: 'sm_89', mp: 128, gib: 23.5, clock: 10501, backend: 'cuda', driver: ['570.124.06', '580.95.05'], base: 92.4 },
  { label: 'NVIDIA_A100-SXM4-80GB', vendor: 'NVIDIA', arch: 'sm_80', mp: 108, gib: 79.2, clock: 1593, backend: 'cuda', driver: ['570.124.06'], base: 71.0 },
  { label: 'AMD_Radeon_RX_7900_XTX', key: 'AMD_Radeon_RX_7900_XTX@5d2e8c41aa07b963', vendor: 'AMD', arch: 'gfx1100', mp: 96, gib: 24, clock: 2500, backend: 'opencl', driver: ['6.3.1'], base: 60.2 },
  { label: 'AMD_Radeon_RX_7900_XTX', key: 'AMD_Radeon_RX_7900_XTX@0be4417f2c9d8e10', vendor: 'AMD', arch: 'gfx1101', mp: 84, gib: 20, clock: 2500, backend: 'opencl', driver: ['6.3.1'], base: 54.8 },
  { label: 'Intel_Xeon_Platinum_8480+', vendor: 'Intel', arch: 'x86-64', mp: 56, gib: 251, clock: 4800, backend: 'host', driver: ['6.1.0-32'], base: 3.91 },
];

const lottery = ['base', 'u2', 'u2-ldg', 'ldg', 'u4', 'u8', 'w4', 'u2-w4', 'u4-ldg', 'vec2'];
const gemv = ['base', 'int4', 'int4-s2', 's2', 's4'];
const exits = ['eliminated', 'gate', 'compile', 'budget', 'duplicate'];

function estimate(rng, gain, machines, wide = 1) {
  const half = round((0.15 + rng() * 0.5) * wide);
  return machines >= 2 ? { gain_pct: round(gain), ci: [round(gain - half), round(gain + half)] } : { gain_pct: round(gain) };
}

function makeVariant(rng, name, i, kind, row, now) {
  const gain = name === 'base' ? 0 : row.best - i * (0.25 + rng() * 0.7);
  const races = name === 'base' ? row.races : Math.round(row.races * (0.5 + rng() * 0.5));
  const variant = { name, ...(name === 'base' ? { gain_pct: 0 } : estimate(rng, gain, row.machines)), rate: round(row.base * (1 + gain / 100), 3), samples: races, races, machines: row.machines, won: i === 0 ? Math.round(races * 0.7) : Math.round(races * 0.1 * rng()) };
  if (kind.backend !== 'host') variant.rate_per_w = round((row.base * (1 + gain / 100)) / 392, 4);
  if (i > 2) variant.exits = { stayed: races - 3, [exits[i % exits.length]]: 3 };
  if (name === 'u8') return { name, samples: 0, races, machines: row.machines, won: 0, exits: { compile: races } };
  variant.strata = ['450 W', '355 W', 'unknown'].slice(0, row.machines > 3 ? 3 : 1).map((power) => ({ power, ...estimate(rng, gain + (power === '355 W' ? -0.4 : 0), row.machines), machines: Math.max(1, row.machines >> 1) }));
  variant.drivers = kind.driver.map((driver, d) => ({ driver, ...estimate(rng, gain - d * 0.5, row.machines), samples: races >> 1, machines: Math.max(1, row.machines >> 1) }));
  variant.days = Array.from({ length: 7 }, (_, d) => ({ day: stamp(now - (6 - d) * day).slice(0, 10), ...estimate(rng, gain + (rng() - 0.5) * 0.6, row.machines, 1.5), samples: Math.max(1, races >> 3), machines: row.machines }));
  return variant;
}

const sentences = {
  race: (w, r) => `${w} is best by ${r.machines} machines (${r.samples} samples); it is raced on, since its interval was not above 0.5% in 20 races of 3 machines yet.`,
  'pinned-by-stability': (w, r) => `${w} won ${r.samples} samples on ${r.machines} machines with its whole interval above 0.5%: pinned.`,
  'pinned-by-operator': (w) => `${w} was pinned by the operator (--pin).`,
  none: () => 'No variant has the 3 samples that it takes to win.',
};

function makeRow(rng, kind, names, head, machines, now) {
  const base = head.program === 'gemv' ? kind.base * 1.31e10 : kind.base;
  const races = head.few ? 2 : 20 + Math.floor(rng() * 400);
  const row = { program: head.program, class: head.class, backend: kind.backend, unit: head.program === 'gemv' ? 'op/s' : 'MH/s', candidates: [], races, samples: races, machines };
  if (head.metric) row.metric = head.metric;
  const made = { best: head.best, races, machines, base };
  const order = [...names.slice(1), 'base'];
  const variants = order.map((name, i) => makeVariant(rng, name, i, kind, made, now));
  variants.sort((a, b) => (b.gain_pct ?? -99) - (a.gain_pct ?? -99));
  const winner = head.few ? undefined : variants[0];
  row.choice = head.choice;
  row.newest = stamp(now - Math.floor(rng() * 5 * hour));
  if (winner) {
    row.variant = winner.name;
    row.candidates = [...variants.filter((v) => v.name !== 'base' && (v.gain_pct ?? -99) > winner.gain_pct - 1).map((v) => v.name), 'base'];
    for (const key of ['rate', 'rate_per_w', 'gain_pct', 'ci']) if (winner[key] !== undefined) row[key] = winner[key];
    row.base_rate = round(base, 3);
  } else {
    row.variant = '';
  }
  row.why = sentences[head.choice](row.variant, row);
  row.variants = variants;
  row.set_aside = head.aside ?? [];
  return row;
}

function rowHeads(k) {
  const aside = [
    { machine: '7dd9d66144961473', reason: 'above-ceiling', why: 'u2 at 411.2 MH/s is above the ceiling of 312.0 MH/s in 12 races.', races: 12 },
    { machine: '1c0a55e1f2b3c4d5', reason: 'base-disagrees', why: 'its base runs at 61.0 MH/s where 5 peers have 115.9 MH/s (-47%).', races: 4 },
  ];
  return [
    { program: 'lottery', class: { loads: 128, wide: 0 }, best: [2.07, 3.4, 1.2, 0.28, 1.9, -0.3, 4.6][k], choice: ['race', 'pinned-by-stability', 'race', 'race', 'race', 'race', 'pinned-by-operator'][k], aside: k === 0 ? aside : [] },
    ...(k < 3 ? [{ program: 'lottery', class: { loads: 32, wide: 8 }, best: 2.9 - k, choice: 'pinned-by-stability' }, { program: 'gemv', class: { n: 4096, k: 11008, type: 'int8' }, best: 6.1 - 2 * k, choice: 'race', names: gemv }] : []),
    ...(k === 0 ? [{ program: 'lottery', class: { loads: 128, wide: 0 }, metric: 'energy', best: 8.3, choice: 'race' }, { program: 'reduction', class: {}, best: 1, choice: 'none', few: true, names: ['base', 'w4', 'w4-u4'] }] : []),
  ];
}

function makeCards(rng, now) {
  return kinds.map((kind, k) => {
    const machines = [14, 8, 21, 6, 3, 2, 9][k];
    const hash = kind.key?.split('@')[1] ?? Array.from({ length: 16 }, () => Math.floor(rng() * 16).toString(16)).join('');
    return {
      key: kind.key ?? kind.label,
      label: kind.label,
      aliases: kind.aliases ?? [],
      silicon: { vendor: kind.vendor, arch: kind.arch, multiprocessors: kind.mp, memory_bytes: Math.round(kind.gib * 2 ** 30), memory_clock_mhz: kind.clock, hash },
      rows: rowHeads(k).map((head) => makeRow(rng, kind, head.names ?? lottery, head, machines, now)),
    };
  });
}

function hex(rng, digits) {
  return Array.from({ length: digits }, () => Math.floor(rng() * 16).toString(16)).join('');
}

function makeMachines(rng, now, n) {
  return Array.from({ length: n }, (_, i) => {
    const behind = rng() < 0.12;
    const silent = i % 23 === 7;
    const refused = i % 17 === 3 ? 1 + Math.floor(rng() * 40) : 0;
    const machine = {
      id: hex(rng, 16), label: `rack${1 + Math.floor(i / 8)}-node${1 + (i % 8)}`, state: i % 31 === 30 ? 'retired' : 'active', canary: i % 16 === 0,
      enrolled: stamp(now - (20 + i) * day), seen: stamp(now - (silent ? 3 * day : rng() * 1800_000)), agent: rng() < 0.85 ? '0.1.0' : '0.0.9',
      manifest: behind ? (rng() < 0.3 ? '' : '6') : '7', accepted: 200 + Math.floor(rng() * 4000), duplicate: Math.floor(rng() * 9), refused,
    };
    if (refused) machine.last_refusal = 'ts: 2027-01-01T00:00:00Z is 300 days ahead of the hub’s clock (at most 600 s)';
    if (i === 11) machine.replaces = '7dd9d66144961473';
    return machine;
  });
}

function makeRaces(rng, cards, machines, now, n) {
  return Array.from({ length: n }, (_, i) => {
    const card = cards[Math.floor(rng() * cards.length)];
    const row = card.rows[Math.floor(rng() * card.rows.length)];
    const kind = kinds.find((k) => k.label === card.label);
    const ms = now - 20_000 - i * 310_000;
    const id = `${ms.toString(16).padStart(12, '0').replace(/^(.{8})(.{4})$/, '$1-$2')}-7${hex(rng, 3)}-8${hex(rng, 3)}-${hex(rng, 12)}`;
    const verdict = ['winner', 'winner', 'winner', 'dead-heat', 'pinned', 'out-of-budget', 'none'][Math.floor(rng() * 7)];
    const gain = verdict === 'winner' ? round((row.gain_pct ?? 1) + rng() - 0.5) : verdict === 'dead-heat' ? round(rng() * 0.3 - 0.1) : undefined;
    const race = {
      id, ts: stamp(ms), received: stamp(ms + 9000), machine: machines[Math.floor(rng() * machines.length)].id, slot: `s-${hex(rng, 6)}`, card: card.key, silicon: card.silicon.hash,
      backend: row.backend, driver: kind.driver[0], program: row.program, class: row.class, epoch: hex(rng, 16), source: hex(rng, 16), unit: row.unit, verdict, pinned: verdict === 'pinned',
    };
    if (verdict !== 'none') {
      race.winner = verdict === 'dead-heat' ? 'base' : row.variant || 'base';
      race.rate = row.rate ?? kind.base;
      race.base_rate = row.base_rate ?? kind.base;
    }
    if (gain !== undefined) race.gain_pct = gain;
    return race;
  });
}

export function makeRecord(race, card) {
  const row = card.rows.find((r) => r.program === race.program && JSON.stringify(r.class) === JSON.stringify(race.class)) ?? card.rows[0];
  const variants = {};
  const detail = {};
  row.variants.slice().sort((a, b) => Number(b.name === 'base') - Number(a.name === 'base')).forEach((v, i) => {
    variants[v.name] = v.rate ?? null;
    detail[v.name] = { heats: v.rate ? 21 - i : undefined, regs: v.rate ? 40 + 4 * i : undefined, spills: v.rate ? (i > 6 ? 64 : 0) : undefined, warps: 8, compile_ms: 61.5 + 7 * i, power_w: v.rate ? 391 - i : undefined };
    if (v.name !== 'base' && v.rate) Object.assign(detail[v.name], { gain_pct: v.gain_pct, ci: v.ci ?? [v.gain_pct - 0.3, v.gain_pct + 0.3], error: 0 });
    if (v.name === 'u8') Object.assign(detail[v.name], { out: 'does not compile: ptxas fatal | out of memory', exit: 'compile' });
    if (v.name === 'u4-ldg') Object.assign(detail[v.name], { out: 'cannot win: at most -0.40% over base', exit: 'eliminated' });
    if (v.name === 'vec2') Object.assign(detail[v.name], { out: 'gate: element 3: got 1, expected 2', exit: 'gate' });
  });
  return JSON.parse(JSON.stringify({
    schema: 1, id: race.id, ts: race.ts, machine: race.machine, slot: race.slot, agent: '0.1.0', card: card.label, silicon: card.silicon, vendor: card.silicon.vendor, backend: race.backend, driver: race.driver,
    compiler: 'NVRTC 13.0', arch: card.silicon.arch, program: race.program, language: 'cuda', source: race.source, epoch: race.epoch, class: race.class, unit: race.unit, variants, detail, ceiling: row.base_rate && round(row.base_rate * 2.7), winner: race.winner ?? null,
    rate: race.rate, base_rate: race.base_rate, gain_pct: race.gain_pct, ci: race.gain_pct === undefined ? undefined : [round(race.gain_pct - 0.3), round(race.gain_pct + 0.3)], verdict: race.verdict, heats: 21, paused_ms: 512.25, compile_ms: 842, bench_ms: 655, total_ms: 1730.5, pinned: race.pinned, tuned: true,
    notes: ['3 heats were dropped: the throttle state changed'], power_limit_w: 400, power_w: 398.5, power_pct: 99.6, rate_per_w: 0.297, of_a_newer_writer: { kept: true },
  }));
}

function makeRegressions(cards, now) {
  const one = (card, row, variant, change, half, more) => ({
    card: card.key, silicon: card.silicon.hash, program: row.program, class: row.class, backend: row.backend, variant, unit: row.unit,
    before: row.base_rate, after: round(row.base_rate * (1 + change / 100), 3), change_pct: change, ci: [round(change - half), round(change + half)], machines: row.machines, samples: row.samples, all_variants: false, ...more,
  });
  const [first, second, third] = cards;
  return {
    before: { from: stamp(now - 14 * day), to: stamp(now - 7 * day) }, after: { from: stamp(now - 7 * day), to: stamp(now) }, compared: 118,
    regressions: [
      one(third, third.rows[0], 'u2', -6.4, 0.9, { driver: '580.95.05', driver_before: '570.124.06' }),
      one(first, first.rows[0], 'w4', -2.1, 0.6, { driver: '580.95.05', driver_before: '580.95.05' }),
      one(second, second.rows[0], 'base', -1.6, 0.4, { driver: '580.159.04', driver_before: '580.159.04', all_variants: true }),
    ],
  };
}

function makeRollout(machines, now) {
  const active = machines.filter((m) => m.state === 'active');
  const of = (manifest) => active.filter((m) => m.manifest === manifest);
  return {
    manifest: { version: 7, channel: 'stable', product: 'our-fleet', issued: stamp(now - 2 * day), expires: stamp(now + 28 * day), percent: 100, expired: false },
    machines: active.length,
    by_version: ['7', '6', ''].map((manifest) => ({ manifest, machines: of(manifest).length, canaries: of(manifest).filter((m) => m.canary).length })),
    stragglers: active.filter((m) => m.manifest !== '7').map((m) => m.id),
    canaries: { machines: active.filter((m) => m.canary).length, races: 212, regressions: 0 },
  };
}

export function makeFleet({ seed = 1, machines: n = 64, races: r = 320, now = Date.now() } = {}) {
  const rng = random(seed);
  const cards = makeCards(rng, now);
  const machines = makeMachines(rng, now, n);
  const races = makeRaces(rng, cards, machines, now, r);
  return {
    cards, machines, races, regressions: makeRegressions(cards, now), rollout: makeRollout(machines, now), audit: makeAudit(),
    summary: { change: 4711, races: 48_219 + r, machines: machines.length, cards: cards.length, newest: races[0]?.ts ?? '', store: { kind: 'sqlite', version: 'SQLite 3.40.1', bytes: 734_003_200 }, version: '0.1.0', uptime_s: 93_784, stale_s: 4, updated: races[0]?.ts ?? '' },
  };
}

export function emptyFleet() {
  return {
    cards: [], machines: [], races: [], regressions: { compared: 0, regressions: [] }, rollout: { machines: 0, by_version: [], stragglers: [], canaries: { machines: 0, races: 0, regressions: 0 } }, audit: { programs: [], reports: {} },
    summary: { change: 1, races: 0, machines: 0, cards: 0, store: { kind: 'sqlite', version: 'SQLite 3.40.1', bytes: 65_536 }, version: '0.1.0', uptime_s: 12, stale_s: 0 },
  };
}
