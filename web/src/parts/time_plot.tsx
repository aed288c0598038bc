// Gains day by day. Drawn by uPlot on a canvas; its text alternative is the table below it.

import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import * as F from '../format';
import type { Variant } from '../api/shapes';
import { Gain } from './bits';
import { Table } from './table';

interface Props {
  variants: readonly Variant[];
  title: string;
}

// Colour, dash and the name at the line's end tell the lines apart.
const dashes = [[], [7, 4], [2, 3], [10, 3, 2, 3], [4, 2], [1, 4]];

function colours(element: Element) {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return { text: read('--muted'), grid: read('--line'), zero: read('--text'), lines: [1, 2, 3, 4, 5, 6].map((i) => read(`--series-${i}`)), font: style.fontFamily };
}

function seconds(day: string): number {
  return (F.parseStamp(`${day}T12:00:00Z`) ?? 0) / 1000;
}

/** Lines lie side by side within a day, so that their intervals do not hide each other. */
function shifted(day: string, line: number, lines: number): number {
  return seconds(day) + (line - (lines - 1) / 2) * 0.06 * 86_400;
}

function aligned(variants: readonly Variant[]): uPlot.AlignedData {
  const points = variants.flatMap((v, i) => v.days.map((d) => ({ i, at: shifted(d.day, i, variants.length), gain: d.gain_pct ?? null })));
  points.sort((a, b) => a.at - b.at);
  return [points.map((p) => p.at), ...variants.map((_, i) => points.map((p) => (p.i === i ? p.gain : null)))];
}

export function daysOf(variants: readonly Variant[]): string[] {
  return [...new Set(variants.flatMap((v) => v.days.map((d) => d.day)))].sort();
}

/** Error bars, and each line's name at its end where there is room for it. */
function extras(variants: readonly Variant[], days: string[], paint: ReturnType<typeof colours>): uPlot.Plugin {
  return {
    hooks: {
      draw: (u) => {
        const { ctx } = u;
        const ratio = devicePixelRatio || 1;
        ctx.save();
        ctx.lineWidth = 1.25 * ratio;
        const ends: { name: string; y: number; x: number; colour: string }[] = [];
        variants.forEach((variant, i) => {
          const colour = paint.lines[i % paint.lines.length] ?? paint.text;
          ctx.strokeStyle = colour;
          let end: { x: number; y: number } | undefined;
          for (const day of days) {
            const at = variant.days.find((d) => d.day === day);
            if (at?.gain_pct === undefined) continue;
            const px = u.valToPos(shifted(day, i, variants.length), 'x', true);
            end = { x: px, y: u.valToPos(at.gain_pct, 'y', true) };
            if (!at.ci) continue;
            ctx.beginPath();
            ctx.moveTo(px, u.valToPos(at.ci[0], 'y', true));
            ctx.lineTo(px, u.valToPos(at.ci[1], 'y', true));
            ctx.stroke();
          }
          if (end) ends.push({ name: variant.name, ...end, colour });
        });
        ctx.font = `${12 * ratio}px ${paint.font}`;
        ctx.textBaseline = 'middle';
        ctx.textAlign = 'left';
        ends.sort((a, b) => a.y - b.y);
        let above = -Infinity;
        for (const end of ends) {
          const y = Math.max(end.y, above + 14 * ratio);
          above = y;
          ctx.fillStyle = end.colour;
          ctx.fillText(end.name, u.bbox.left + u.bbox.width + 8 * ratio, y, 92 * ratio);
        }
        ctx.restore();
      },
    },
  };
}

function options(variants: readonly Variant[], days: string[], paint: ReturnType<typeof colours>, width: number): uPlot.Options {
  const axis = { stroke: paint.text, grid: { stroke: paint.grid, width: 1 }, ticks: { stroke: paint.grid, width: 1 }, font: `12px ${paint.font}` };
  const first = seconds(days[0] ?? '');
  const last = seconds(days[days.length - 1] ?? '');
  const every = Math.max(1, Math.ceil(days.length / Math.max(2, Math.floor((width - 160) / 64))));
  return {
    width,
    height: 240,
    padding: [12, 104, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: true, range: [first - 43_200, last + 43_200] },
      y: {
        range: (_u, _lo, _hi) => {
          const all = variants.flatMap((v) => v.days.flatMap((d) => [d.gain_pct ?? 0, ...(d.ci ?? [])]));
          const lo = Math.min(0, ...all);
          const hi = Math.max(0, ...all);
          const pad = Math.max(hi - lo, 0.5) * 0.08;
          return [lo - pad, hi + pad];
        },
      },
    },
    series: [{}, ...variants.map((v, i) => ({
      label: v.name, stroke: paint.lines[i % paint.lines.length], width: 2, dash: dashes[i % dashes.length], spanGaps: true, points: { show: true, size: 6 },
    }))],
    axes: [
      { ...axis, splits: () => days.filter((_, i) => i % every === 0).map(seconds), values: (_u, at) => at.map((s) => new Date(s * 1000).toISOString().slice(5, 10)) },
      { ...axis, size: 58, values: (_u, at) => at.map((v) => F.gain(v).replace(/\.00%$/, '%')) },
    ],
    plugins: [extras(variants, days, paint)],
  };
}

export function TimePlot({ variants, title }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [drawn, redraw] = useState(0);
  const days = daysOf(variants);
  const key = JSON.stringify(variants.map((v) => [v.name, v.days]));

  useEffect(() => {
    const again = () => redraw((n) => n + 1);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', again);
    addEventListener('furlong-theme', again);
    return () => {
      dark.removeEventListener('change', again);
      removeEventListener('furlong-theme', again);
    };
  }, []);

  useEffect(() => {
    const element = box.current;
    if (!element || days.length < 2) return undefined;
    const plot = new uPlot(options(variants, days, colours(element), element.clientWidth), aligned(variants), element);
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0 && element.clientWidth !== plot.width) plot.setSize({ width: element.clientWidth, height: 240 });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [key, drawn]);

  if (days.length === 0) return <p class="muted">No day has a figure for these variants yet.</p>;
  const rows = days.flatMap((day) => variants.flatMap((v) => v.days.filter((d) => d.day === day).map((d) => ({ ...d, name: v.name }))));
  const table = (
    <Table
      caption={`${title}, as a table`}
      rows={rows}
      keyOf={(r) => `${r.day} ${r.name}`}
      initial={{ key: 'day', direction: 'desc' }}
      columns={[
        { key: 'day', title: 'Day', header: true, cell: (r) => r.day, sort: (r) => r.day, first: 'desc' },
        { key: 'variant', title: 'Variant', cell: (r) => r.name, sort: (r) => r.name },
        { key: 'gain', title: 'Gain over base', numeric: true, cell: (r) => <Gain pct={r.gain_pct} ci={r.ci} />, sort: (r) => r.gain_pct, first: 'desc' },
        { key: 'samples', title: 'Samples', numeric: true, cell: (r) => F.count(r.samples), sort: (r) => r.samples, first: 'desc' },
        { key: 'machines', title: 'Machines', numeric: true, cell: (r) => F.count(r.machines), sort: (r) => r.machines, first: 'desc' },
      ]}
    />
  );
  if (days.length < 2) return table;
  return (
    <figure class="plot">
      <div class="canvas" ref={box} role="img" aria-label={`Plot: ${title}, ${days[0]} to ${days[days.length - 1]}, of ${variants.map((v) => v.name).join(', ')}. The same figures are in the table below.`} />
      <figcaption>
        <details>
          <summary>The plot’s figures as a table</summary>
          {table}
        </details>
      </figcaption>
    </figure>
  );
}
