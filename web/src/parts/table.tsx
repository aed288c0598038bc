// The one table: sorted by buttons in its head, each row a block where there is no room for it. Roles are written out, since a
// table that is laid out as blocks loses its own.

import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { count } from '../format';
import { useServices } from '../hooks';
import { press, sorted, type Direction, type Sort, type SortValue } from '../sort';

export interface Column<R> {
  key: string;
  title: string;
  cell: (row: R) => ComponentChildren;
  /** What it is sorted by; without it the column cannot be sorted. */
  sort?: (row: R) => SortValue;
  /** Direction of the first press. */
  first?: Direction;
  numeric?: boolean;
  /** The name of the row. */
  header?: boolean;
  /** In the head instead of the title, which stays its name. */
  head?: ComponentChildren;
  className?: string;
}

export interface TableProps<R> {
  caption: string;
  columns: (Column<R> | false | undefined)[];
  rows: readonly R[];
  keyOf: (row: R) => string;
  initial?: Sort;
  /** Kept by the caller (in the address) instead of here. */
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  rowClass?: (row: R) => string;
  /** Rows shown at first. */
  most?: number;
}

/** Below so many px a column nothing but blocks can be read. */
const leastPx = 60;

/** A table that its place is too narrow for is set tighter, and where that does not do, its rows become blocks: nothing is cut off. */
function useFit(columns: number, rows: unknown, shown: number) {
  const wrap = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = wrap.current;
    const scroll = element?.querySelector('.table-scroll');
    if (!element || !scroll) return undefined;
    const fits = (tight: boolean) => {
      element.classList.toggle('tight', tight);
      return scroll.scrollWidth <= scroll.clientWidth;
    };
    let measured = 0;
    const measure = () => {
      if (element.clientWidth === measured) return;
      measured = element.clientWidth;
      element.classList.remove('blocks');
      if ((columns > 3 && measured < leastPx * columns) || !(fits(false) || fits(true))) element.classList.add('blocks');
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [columns, rows, shown]);
  return wrap;
}

function SortButton<R>({ column, sort, onPress }: { column: Column<R>; sort?: Sort; onPress: () => void }) {
  const active = sort?.key === column.key;
  const arrow = !active ? '↕' : sort.direction === 'asc' ? '↑' : '↓';
  return (
    <button type="button" class="sort" onClick={onPress}>
      {column.title}
      <span class={active ? 'arrow active' : 'arrow'} aria-hidden="true">{arrow}</span>
    </button>
  );
}

export function Table<R>({ caption, columns: given, rows, keyOf, initial, sort: kept, onSort, rowClass, most = 100 }: TableProps<R>) {
  const { say } = useServices();
  const columns = given.filter((c): c is Column<R> => Boolean(c));
  const [own, setOwn] = useState(initial);
  const [shown, setShown] = useState(most);
  const sort = kept ?? own;
  const wrap = useFit(columns.length, rows, shown);
  const by = columns.find((c) => c.key === sort?.key && c.sort);
  const ordered = useMemo(() => (by?.sort && sort ? sorted(rows, by.sort, sort.direction) : rows), [rows, by?.key, sort?.direction]);
  useEffect(() => setShown(most), [most, caption]);

  const set = (next: Sort) => {
    if (onSort) onSort(next);
    else setOwn(next);
    const title = columns.find((c) => c.key === next.key)?.title ?? next.key;
    say(`Sorted by ${title}, ${next.direction === 'asc' ? 'ascending' : 'descending'}`);
  };
  const sortable = columns.filter((c) => c.sort);
  const ariaSort = (c: Column<R>) => (!c.sort ? undefined : c.key !== by?.key ? 'none' : sort?.direction === 'asc' ? 'ascending' : 'descending');

  return (
    <div class="table-wrap" ref={wrap}>
      {sortable.length > 1 && rows.length > 1 && (
        <div class="narrow-sort">
          <label>
            Sort by{' '}
            <select value={by?.key ?? ''} onChange={(e) => { const c = sortable.find((x) => x.key === e.currentTarget.value); if (c) set({ key: c.key, direction: c.first ?? 'asc' }); }}>
              {!by && <option value="">as it came</option>}
              {sortable.map((c) => <option key={c.key} value={c.key}>{c.title}</option>)}
            </select>
          </label>
          {by && sort && (
            <button type="button" class="button" onClick={() => set({ key: sort.key, direction: sort.direction === 'asc' ? 'desc' : 'asc' })}>
              {sort.direction === 'asc' ? '↑ ascending' : '↓ descending'}
            </button>
          )}
        </div>
      )}
      <div class="table-scroll">
      <table role="table">
        <caption class="hidden">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((c) => (
              <th key={c.key} role="columnheader" scope="col" aria-sort={ariaSort(c)} class={`${c.numeric ? 'numeric' : ''} ${c.className ?? ''}`}>
                {c.sort ? <SortButton column={c} sort={sort} onPress={() => set(press(sort, c.key, c.first ?? 'asc'))} /> : c.head ?? c.title}
                {c.sort && c.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {ordered.slice(0, shown).map((row) => (
            <tr key={keyOf(row)} role="row" class={rowClass?.(row)}>
              {columns.map((c) => {
                const props = { 'data-label': c.title, class: `${c.numeric ? 'numeric' : ''} ${c.className ?? ''}` };
                return c.header
                  ? <th key={c.key} role="rowheader" scope="row" {...props}>{c.cell(row)}</th>
                  : <td key={c.key} role="cell" {...props}>{c.cell(row)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
      </div>
      {ordered.length > shown && (
        <p class="more">
          {count(shown)} of {count(ordered.length)} shown.{' '}
          <button type="button" class="button" onClick={() => setShown(shown + 100)}>Show 100 more</button>{' '}
          <button type="button" class="button" onClick={() => setShown(ordered.length)}>Show all</button>
        </p>
      )}
    </div>
  );
}
