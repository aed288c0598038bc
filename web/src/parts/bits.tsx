import type { ComponentChildren } from 'preact';
import * as F from '../format';
import type { Judgement, Tone } from '../judge';
import { format, type Query, type View } from '../route';
import { useNow } from '../hooks';

// Of each tone a shape too, so that colour is never alone.
const marks: Record<Tone, string> = { good: '▲', bad: '▼', even: '=', warn: '!', none: '·', ok: '✓', fault: '✗' };

export function Mark({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string }) {
  return (
    <span class={`mark ${tone}`} title={title}>
      <span class="glyph" aria-hidden="true">{marks[tone]}</span>
      {children}
    </span>
  );
}

export function Judged({ judgement }: { judgement: Judgement }) {
  return <Mark tone={judgement.tone}>{judgement.words}</Mark>;
}

export function Tag({ children, kind = '' }: { children: ComponentChildren; kind?: string }) {
  return <span class={`tag ${kind}`}>{children}</span>;
}

/** Which of a card's rows for one program and class the tuning takes. */
export function Used({ used }: { used?: 'used' | 'not used' }) {
  return used ? <Tag kind={used === 'used' ? 'near' : ''}>{used}</Tag> : null;
}

export function Link({ view, item = '', query, children, ...rest }: { view: View; item?: string; query?: Query; children: ComponentChildren; class?: string; 'aria-label'?: string; 'aria-current'?: 'page' | 'true' }) {
  return <a href={format(view, item, query)} {...rest}>{children}</a>;
}

export function Ago({ stamp }: { stamp: string }) {
  const now = useNow(5000);
  if (!stamp) return <span class="muted">never</span>;
  return <time dateTime={stamp} title={F.stamp(stamp)}>{F.ago(stamp, now)}</time>;
}

/** Two lines of a cell: what it is, and what else. */
export function Two({ children, and }: { children: ComponentChildren; and?: ComponentChildren }) {
  return (
    <span class="two">
      <span>{children}</span>
      {and && <span class="muted">{and}</span>}
    </span>
  );
}

/** What to ask the hub for: a label may be two kinds of silicon, a hash is one. */
export function cardItem(card: string, silicon: unknown): string {
  return typeof silicon === 'string' && /^[0-9a-f]{16}$/.test(silicon) ? silicon : card;
}

/** A card by its key; where a label covers two kinds of silicon the key ends in the hash. */
export function CardLink({ card, silicon, query, and }: { card: string; silicon?: unknown; query?: Query; and?: ComponentChildren }) {
  const [label = '', hash = ''] = card.split('@');
  return (
    <Two and={and ?? (hash && `@${hash}`)}>
      <Link view="cards" item={cardItem(card, silicon)} query={query}>{F.cardName(label)}</Link>
    </Two>
  );
}

export function Gain({ pct, ci }: { pct?: number; ci?: [number, number] }) {
  return (
    <span class="gain">
      <b>{F.gain(pct)}</b>
      {ci && <span class="ci">{F.interval(ci)}</span>}
    </span>
  );
}

export function Share(props: { part: number; whole: number }) {
  return (
    <span class="with-bar">
      <span>{props.whole > 0 ? Math.round((100 * props.part) / props.whole) : 0}%</span>
      <Bar {...props} />
    </span>
  );
}

export interface Fact {
  name: string;
  value: ComponentChildren;
}

export function Facts({ facts }: { facts: (Fact | false | undefined | '')[] }) {
  return (
    <dl class="facts">
      {facts.map((fact) => fact && (
        <div key={fact.name}>
          <dt>{fact.name}</dt>
          <dd>{fact.value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Id({ id, view, query }: { id: string; view?: View; query?: Query }) {
  const shown = <span class="id">{id}</span>;
  if (!view) return shown;
  return query ? <Link view={view} query={query}>{shown}</Link> : <Link view={view} item={id}>{shown}</Link>;
}

/** A share of a whole as a bar; its number stands beside it. */
export function Bar({ part, whole }: { part: number; whole: number }) {
  const pct = whole > 0 ? Math.min(100, (100 * part) / whole) : 0;
  return (
    <svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="rail" width="100" height="8" />
      <rect class="fill" width={pct} height="8" />
    </svg>
  );
}
