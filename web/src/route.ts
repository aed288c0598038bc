// Addresses behind the '#': "#/cards/KEY?sort=-gain". The hub serves one page; views are here.

export const views = ['home', 'cards', 'races', 'machines', 'rollout', 'regressions', 'knobs'] as const;
export type View = (typeof views)[number];
export type Query = Record<string, string>;

export interface Route {
  view: View | 'unknown';
  /** The key of a card, the id of a race, the name of a program; empty: the list */
  item: string;
  query: Query;
}

const withItems: readonly string[] = ['cards', 'races', 'knobs'];

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export function parse(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const query: Query = {};
  for (const [key, value] of new URLSearchParams(search)) query[key] = value;
  const [first = '', second = '', ...rest] = path.split('/');
  const item = decoded(second);
  const view = first === '' ? 'home' : (views as readonly string[]).includes(first) ? (first as View) : 'unknown';
  if (item === undefined || rest.length > 0 || (item && !withItems.includes(view))) return { view: 'unknown', item: '', query };
  return { view, item, query };
}

export function format(view: View, item = '', query: Query = {}): string {
  const path = view === 'home' ? '' : item ? `${view}/${encodeURIComponent(item)}` : view;
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString();
  return `#/${path}${search ? `?${search}` : ''}`;
}

/** Another place, as against another look at the same one (a filter, a sorting). */
export function samePlace(a: Route, b: Route): boolean {
  return a.view === b.view && a.item === b.item;
}
