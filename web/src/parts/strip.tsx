// Gains with their intervals on a common scale, one strip a row: a dot on a line, zero marked. The numbers stand in
// the cell beside it, so that the picture itself is hidden from screen readers.

import type { Interval } from '../api/check';
import type { Tone } from '../judge';

export interface Scale {
  lo: number;
  hi: number;
  step: number;
}

export interface Gained {
  gain_pct?: number;
  ci?: Interval;
}

function stepFor(span: number): number {
  const rough = span / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 2.5, 5, 10].find((m) => m * power >= rough) ?? 10) * power;
}

/** Holds zero and every gain; intervals that reach far beyond are cut with an arrow, so that they spoil no scale. */
export function scaleOf(rows: readonly Gained[]): Scale {
  const gains = rows.flatMap((r) => (r.gain_pct === undefined ? [] : [r.gain_pct]));
  let lo = Math.min(0, ...gains);
  let hi = Math.max(0, ...gains);
  const span = Math.max(hi - lo, 0.5);
  for (const { ci } of rows) {
    if (!ci) continue;
    lo = Math.min(lo, Math.max(ci[0], lo - span));
    hi = Math.max(hi, Math.min(ci[1], hi + span));
  }
  const pad = Math.max(hi - lo, 0.5) * 0.06;
  lo -= pad;
  hi += pad;
  return { lo, hi, step: stepFor(hi - lo) };
}

const width = 160;
const edge = 6;

function x(scale: Scale, value: number): number {
  const at = edge + ((value - scale.lo) / (scale.hi - scale.lo)) * (width - 2 * edge);
  return Math.round(Math.min(width - edge, Math.max(edge, at)) * 10) / 10;
}

function ticks({ lo, hi, step }: Scale): number[] {
  const found: number[] = [];
  for (let i = Math.ceil(lo / step); i * step <= hi; i += 1) found.push(Number((i * step).toPrecision(6)));
  return found;
}

export function StripHead({ scale }: { scale: Scale }) {
  return (
    <svg class="strip head" viewBox={`0 0 ${width} 14`} aria-hidden="true">
      {ticks(scale).map((t) => (
        <text key={t} x={x(scale, t)} y="10" text-anchor="middle">{t > 0 ? `+${t}` : String(t).replace('-', '−')}</text>
      ))}
    </svg>
  );
}

export function Strip({ scale, of, tone = 'none', hollow = false }: { scale: Scale; of: Gained; tone?: Tone; hollow?: boolean }) {
  const { gain_pct: gain, ci } = of;
  return (
    <svg class={`strip ${tone}`} viewBox={`0 0 ${width} 18`} aria-hidden="true">
      {ticks(scale).map((t) => <line key={t} class={t === 0 ? 'zero' : 'tick'} x1={x(scale, t)} x2={x(scale, t)} y1="0" y2="18" />)}
      {ci && (
        <>
          <line class="whisker" x1={x(scale, ci[0])} x2={x(scale, ci[1])} y1="9" y2="9" />
          {ci[0] >= scale.lo
            ? <line class="whisker" x1={x(scale, ci[0])} x2={x(scale, ci[0])} y1="5" y2="13" />
            : <path class="beyond" d={`M${edge} 5 L0 9 L${edge} 13 Z`} />}
          {ci[1] <= scale.hi
            ? <line class="whisker" x1={x(scale, ci[1])} x2={x(scale, ci[1])} y1="5" y2="13" />
            : <path class="beyond" d={`M${width - edge} 5 L${width} 9 L${width - edge} 13 Z`} />}
        </>
      )}
      {gain !== undefined && <circle class={hollow ? 'dot hollow' : 'dot'} cx={x(scale, gain)} cy="9" r="3.6" />}
    </svg>
  );
}
