// The answers of docs/formats/hub-api.md that the dashboard reads.

import { any, answer, count, flag, interval, list, map, name, number, object, optional, otherwise, record, text, word, type Checked } from './check';

export type Feature = string | number | boolean;
const programClass = otherwise(map<Feature>((value, where) => (typeof value === 'boolean' || typeof value === 'number' ? value : text(value, where))), {});

export const summary = answer({
  change: number,
  races: count,
  machines: count,
  cards: count,
  newest: word,
  store: optional(object({ kind: word, version: word, bytes: optional(count) })),
  version: word,
  uptime_s: optional(count),
  stale_s: optional(count),
  updated: word,
});
export type Summary = Checked<typeof summary>;

export const silicon = object({
  vendor: word,
  arch: word,
  multiprocessors: optional(count),
  memory_bytes: optional(count),
  memory_clock_mhz: optional(count),
  hash: word,
});
export type Silicon = Checked<typeof silicon>;

const timed = { gain_pct: optional(number), ci: optional(interval), samples: otherwise(count, 0), machines: otherwise(count, 0) };

export const variant = object({
  name: text,
  gain_pct: optional(number),
  ci: optional(interval),
  standing_pct: optional(number),
  rate: optional(number),
  rate_per_w: optional(number),
  samples: otherwise(count, 0),
  races: otherwise(count, 0),
  machines: otherwise(count, 0),
  won: otherwise(count, 0),
  exits: otherwise(map(count), {}),
  strata: otherwise(list(object({ power: name, ...timed })), []),
  drivers: otherwise(list(object({ driver: name, ...timed })), []),
  days: otherwise(list(object({ day: text, ...timed })), []),
});
export type Variant = Checked<typeof variant>;

const setAside = object({ machine: word, reason: word, why: word, races: otherwise(count, 0) });
export type SetAside = Checked<typeof setAside>;

const row = object({
  program: text,
  class: programClass,
  backend: word,
  metric: word,
  unit: word,
  variant: word,
  choice: word,
  /** Whether the tuning takes this row, of those of all back ends; undefined: the hub does not tell. */
  leads: optional(flag),
  why: word,
  candidates: otherwise(list(text), []),
  samples: otherwise(count, 0),
  races: otherwise(count, 0),
  machines: otherwise(count, 0),
  newest: word,
  rate: optional(number),
  base_rate: optional(number),
  rate_per_w: optional(number),
  gain_pct: optional(number),
  ci: optional(interval),
  variants: otherwise(list(variant), []),
  set_aside: otherwise(list(setAside), []),
});
export type Row = Checked<typeof row>;

const cardMembers = { key: text, label: word, aliases: otherwise(list(text), []), silicon: optional(silicon), rows: list(row) };
const cardShape = object(cardMembers);
export type Card = Checked<typeof cardShape>;

export const cards = answer({ updated: word, window_days: optional(number), races: otherwise(count, 0), cards: list(cardShape) });
export type Cards = Checked<typeof cards>;

const wrapped = answer({ card: cardShape, updated: word, window_days: optional(number) });
const bare = answer(cardMembers);
/** One card: its members beside `schema`, or below `card`. */
export const oneCard = (value: unknown, where: string): Card =>
  'card' in record(value, where) ? wrapped(value, where).card : bare(value, where);

const raceLine = object({
  id: text,
  ts: text,
  received: word,
  machine: word,
  slot: word,
  card: word,
  silicon: any,
  backend: word,
  driver: word,
  program: word,
  class: programClass,
  epoch: word,
  source: word,
  unit: word,
  winner: word,
  verdict: word,
  pinned: otherwise(flag, false),
  rate: optional(number),
  base_rate: optional(number),
  gain_pct: optional(number),
});
export type RaceLine = Checked<typeof raceLine>;
export const races = answer({ races: list(raceLine), next: word });
export type Races = Checked<typeof races>;

const detail = object({
  gain_pct: optional(number),
  ci: optional(interval),
  heats: optional(count),
  regs: optional(count),
  spills: optional(count),
  shared_bytes: optional(count),
  warps: optional(count),
  memory_mib: optional(number),
  error: optional(number),
  compile_ms: optional(number),
  power_w: optional(number),
  out: word,
  exit: word,
  same_code_as: word,
  fallback: otherwise(flag, false),
});
export type Detail = Checked<typeof detail>;

export const raceRecord = object({
  id: word,
  ts: word,
  machine: word,
  slot: word,
  agent: word,
  card: text,
  silicon: optional(silicon),
  backend: word,
  driver: word,
  compiler: word,
  arch: word,
  program: text,
  language: word,
  source: word,
  epoch: word,
  class: programClass,
  unit: word,
  metric: word,
  variants: map(optional(number)),
  detail: otherwise(map(detail), {}),
  ceiling: optional(number),
  winner: word,
  rate: optional(number),
  base_rate: optional(number),
  gain_pct: optional(number),
  ci: optional(interval),
  verdict: text,
  heats: optional(count),
  paused_ms: optional(number),
  compile_ms: optional(number),
  bench_ms: optional(number),
  total_ms: optional(number),
  pinned: otherwise(flag, false),
  tuned: otherwise(flag, false),
  notes: otherwise(list(text), []),
  power_limit_w: optional(number),
  power_w: optional(number),
  power_pct: optional(number),
  rate_per_w: optional(number),
});
export type RaceRecord = Checked<typeof raceRecord>;

const oneRaceAnswer = answer({
  record,
  batch: optional(object({ id: word, machine: word, received: word, signed: otherwise(flag, false), records: optional(count), verified: otherwise(flag, false) })),
});
/** `raw` keeps the record as it came, with the keys that this dashboard does not know. */
export const oneRace = (value: unknown, where: string) => {
  const { record: raw, batch } = oneRaceAnswer(value, where);
  return { raw, batch, record: raceRecord(raw, `${where}.record`) };
};
export type OneRace = ReturnType<typeof oneRace>;

const machine = object({
  id: text,
  label: word,
  state: word,
  canary: otherwise(flag, false),
  says_canary: otherwise(flag, false),
  enrolled: word,
  seen: word,
  agent: word,
  manifest: name,
  replaces: word,
  accepted: otherwise(count, 0),
  duplicate: otherwise(count, 0),
  refused: otherwise(count, 0),
  last_refusal: word,
});
export type Machine = Checked<typeof machine>;
export const machines = answer({ machines: list(machine) });

const window = object({ from: word, to: word });
const regression = object({
  card: text,
  silicon: any,
  program: word,
  class: programClass,
  backend: word,
  driver: word,
  driver_before: word,
  variant: word,
  before: optional(number),
  after: optional(number),
  unit: word,
  change_pct: optional(number),
  ci: optional(interval),
  machines: otherwise(count, 0),
  samples: otherwise(count, 0),
  all_variants: otherwise(flag, false),
});
export type Regression = Checked<typeof regression>;
export const regressions = answer({
  before: optional(window),
  after: optional(window),
  compared: otherwise(count, 0),
  regressions: list(regression),
});
export type Regressions = Checked<typeof regressions>;

export const knobs = answer({
  programs: list(object({ program: text, language: word, knobs: otherwise(count, 0), races: otherwise(count, 0), verdicts: otherwise(map(count), {}) })),
});
export type Knobs = Checked<typeof knobs>;

const extreme = optional(object({ regime: optional(count), gain_pct: optional(number), ci: optional(interval), fault: any, measure: any }));
const regime = object({
  card: word,
  driver: word,
  class: programClass,
  races: otherwise(count, 0),
  rate: optional(object({ races: otherwise(count, 0), pairs: otherwise(count, 0), state: word, gain_pct: optional(number), ci: optional(interval), disagree: otherwise(flag, false) })),
  faults: otherwise(list(object({ variant: word, exit: word, why: word, races: otherwise(count, 0) })), []),
  costs: otherwise(list(object({ measure: word, change_pct: optional(number), value: optional(number), beside: optional(number), state: word })), []),
});
export type Regime = Checked<typeof regime>;
const claim = object({ outcome: word, where: word, line: optional(count), state: word });
const value = object({
  value: any,
  verdict: word,
  why: word,
  races: otherwise(count, 0),
  pairs: otherwise(count, 0),
  races_missing: otherwise(count, 0),
  regimes_missing: otherwise(count, 0),
  best: extreme,
  worst: extreme,
  regimes: otherwise(list(regime), []),
  claims: otherwise(list(claim), []),
});
export type KnobValue = Checked<typeof value>;
const knob = object({ knob: text, default: any, verdict: word, summary: word, values: otherwise(list(value), []) });
export type Knob = Checked<typeof knob>;
const report = object({
  threshold_pct: optional(number),
  min_races: optional(count),
  min_regimes: optional(count),
  records: optional(object({ given: otherwise(count, 0), used: otherwise(count, 0), other_language: otherwise(count, 0), other_source: otherwise(count, 0), other_metric: otherwise(count, 0), repeated: otherwise(count, 0), no_interval: otherwise(count, 0), fallbacks: otherwise(count, 0) })),
  knobs: list(knob),
  lost: otherwise(list(object({ variant: word, records: otherwise(count, 0), why: word })), []),
  defects: otherwise(list(text), []),
  contradictions: otherwise(list(text), []),
});
export type Audit = Checked<typeof report>;
export const oneKnobs = answer({ program: text, races: optional(count), cut: otherwise(flag, false), editions: list(object({ language: word, report })) });
export type OneKnobs = Checked<typeof oneKnobs>;

export const rollout = answer({
  manifest: optional(object({ version: name, channel: word, product: word, issued: word, expires: word, percent: optional(number), expired: otherwise(flag, false) })),
  stop: optional(object({ version: name, from: name, issued: word })),
  problem: word,
  machines: otherwise(count, 0),
  by_version: otherwise(list(object({ manifest: name, machines: otherwise(count, 0), canaries: otherwise(count, 0) })), []),
  stragglers: otherwise(list(text), []),
  canaries: optional(object({ machines: otherwise(count, 0), races: otherwise(count, 0), regressions: otherwise(count, 0) })),
});
export type Rollout = Checked<typeof rollout>;

export const failure = object({ error: object({ code: word, message: word }) });
