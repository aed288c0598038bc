// Numbers as people read them: units, signs and intervals; absent ones as a dash. Pure functions.

import type { Interval } from './api/check';
import type { Feature } from './api/shapes';

export const dash = '–';
const minus = '−';

function fixed(value: number, digits: number): string {
  const rounded = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(rounded) !== 0 ? minus : '') + rounded;
}

export function grouped(value: number): string {
  const [whole = '', part] = Math.abs(value).toString().split('.');
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return (value < 0 ? minus : '') + (part ? `${text}.${part}` : text);
}

export function count(value: number | undefined): string {
  return value === undefined ? dash : grouped(Math.round(value));
}

/** "1 race", "1,234 races" */
export function counted(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`;
}

function signed(value: number): string {
  const size = Math.abs(value);
  const text = fixed(value, size < 10 ? 2 : size < 100 ? 1 : 0);
  return value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** "+2.07%" */
export function gain(pct: number | undefined): string {
  return pct === undefined ? dash : `${signed(pct)}%`;
}

/** "+1.80 to +2.40%" */
export function interval(ci: Interval | undefined): string {
  return ci === undefined ? '' : `${signed(ci[0])} to ${signed(ci[1])}%`;
}

/** Of a whole: "25%", "99.6%" */
export function percent(value: number): string {
  return `${Number(value.toFixed(1))}%`;
}

/** Four digits that count; very large ones as a power of ten: "118.3", "1,450", "1.45 × 10¹²". */
export function quantity(value: number | undefined): string {
  if (value === undefined) return dash;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) {
    const exponent = Math.floor(Math.log10(size));
    return `${fixed(value / 10 ** exponent, 2)} × 10${superscript(exponent)}`;
  }
  if (size >= 1000) return grouped(Math.round(value));
  const digits = size === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)));
  return fixed(value, Math.min(digits, 4));
}

function superscript(value: number): string {
  return String(value).replace(/[-0-9]/g, (c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)] ?? c));
}

export function rate(value: number | undefined, unit: string): string {
  if (value === undefined) return dash;
  return unit ? `${quantity(value)} ${unit}` : quantity(value);
}

export function bytes(value: number | undefined): string {
  if (value === undefined) return dash;
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? count(size) : quantity(size)} ${units[unit]}`;
}

/** The largest unit that is at least 1: "12 s", "3 min", "5 h", "4 days". */
export function duration(seconds: number | undefined): string {
  if (seconds === undefined) return dash;
  const s = Math.max(0, seconds);
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 90 * 60) return `${Math.round(s / 60)} min`;
  if (s < 36 * 3600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}

export function milliseconds(ms: number | undefined): string {
  if (ms === undefined) return dash;
  return ms < 1000 ? `${quantity(Number(ms.toPrecision(3)))} ms` : `${quantity(Number((ms / 1000).toPrecision(3)))} s`;
}

export function parseStamp(stamp: string): number | undefined {
  const ms = Date.parse(stamp);
  return Number.isNaN(ms) ? undefined : ms;
}

/** "3 min ago"; a stamp of the future (clocks differ) counts as now. */
export function ago(stamp: string, nowMs: number): string {
  const ms = parseStamp(stamp);
  if (ms === undefined) return stamp || dash;
  const seconds = (nowMs - ms) / 1000;
  return seconds < 1 ? 'now' : `${duration(seconds)} ago`;
}

/** "in 12 days", "3 h ago" */
export function until(stamp: string, nowMs: number): string {
  const ms = parseStamp(stamp);
  if (ms === undefined) return stamp || dash;
  return ms > nowMs ? `in ${duration((ms - nowMs) / 1000)}` : ago(stamp, nowMs);
}

/** "2026-03-01 12:00:00 UTC" */
export function stamp(text: string): string {
  const ms = parseStamp(text);
  return ms === undefined ? text || dash : `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** "2026-03-01 12:00" */
export function shortStamp(text: string): string {
  const ms = parseStamp(text);
  return ms === undefined ? text || dash : new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
}

/** A card's label as people write it. */
export function cardName(label: string): string {
  return label.replace(/_/g, ' ');
}

/** "loads=128, wide=0" */
export function classText(features: Record<string, Feature>): string {
  return Object.entries(features)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(', ');
}

/** "gate 2, compile 1"; the commonest first. */
export function exitsText(exits: Record<string, number>): string {
  return Object.entries(exits)
    .filter(([word, races]) => word !== 'stayed' && races > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([word, races]) => `${word} ${count(races)}`)
    .join(', ');
}

/** Whether an interval says neither better nor worse. */
export function undecided(ci: Interval | undefined): boolean {
  return ci !== undefined && ci[0] <= 0 && ci[1] >= 0;
}

export function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value) ?? dash;
}
