// Checks of what the hub answers: a value of the wrong shape becomes an error that names the place, never a blank page.
// Unknown keys are passed over, since a newer hub may tell more.

export class ShapeError extends Error {
  constructor(readonly where: string, readonly problem: string) {
    super(`${where}: ${problem}`);
    this.name = 'ShapeError';
  }
}

/** Gives the value back as its type, or throws ShapeError that names `where`. */
export type Check<T> = (value: unknown, where: string) => T;
export type Checked<C> = C extends Check<infer T> ? T : never;

function kind(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return 'text';
  return `a ${typeof value}`;
}

export const text: Check<string> = (value, where) => {
  if (typeof value !== 'string') throw new ShapeError(where, `expected text, found ${kind(value)}`);
  return value;
};

/** Text that may be left out where it is empty. */
export const word: Check<string> = (value, where) => (value === undefined || value === null ? '' : text(value, where));

/** A name that some writers give as a number (versions). */
export const name: Check<string> = (value, where) => (typeof value === 'number' ? String(value) : word(value, where));

export const number: Check<number> = (value, where) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new ShapeError(where, `expected a number, found ${kind(value)}`);
  }
  return value;
};

export const count: Check<number> = (value, where) => {
  const n = number(value, where);
  if (n < 0) throw new ShapeError(where, `expected a count, found ${n}`);
  return n;
};

export const flag: Check<boolean> = (value, where) => {
  if (typeof value !== 'boolean') throw new ShapeError(where, `expected true or false, found ${kind(value)}`);
  return value;
};

export function optional<T>(check: Check<T>): Check<T | undefined> {
  return (value, where) => (value === undefined || value === null ? undefined : check(value, where));
}

export function otherwise<T>(check: Check<T>, instead: T): Check<T> {
  return (value, where) => (value === undefined || value === null ? instead : check(value, where));
}

export function list<T>(of: Check<T>): Check<T[]> {
  return (value, where) => {
    if (!Array.isArray(value)) throw new ShapeError(where, `expected a list, found ${kind(value)}`);
    return value.map((element, i) => of(element, `${where}[${i}]`));
  };
}

export const any: Check<unknown> = (value) => value;

/** An object as it is, its keys unknown. */
export const record: Check<Record<string, unknown>> = (value, where) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ShapeError(where, `expected an object, found ${kind(value)}`);
  }
  return value as Record<string, unknown>;
};

export function map<T>(of: Check<T>): Check<Record<string, T>> {
  return (value, where) =>
    Object.fromEntries(Object.entries(record(value, where)).map(([key, v]) => [key, of(v, `${where}.${key}`)]));
}

export type Interval = [lo: number, hi: number];
export const interval: Check<Interval> = (value, where) => {
  if (!Array.isArray(value) || value.length !== 2) throw new ShapeError(where, 'expected [lo, hi]');
  return [number(value[0], `${where}[0]`), number(value[1], `${where}[1]`)];
};

type Members = Record<string, Check<unknown>>;
type Shape<M extends Members> = { [K in keyof M]: Checked<M[K]> };

export function object<M extends Members>(members: M): Check<Shape<M>> {
  const entries = Object.entries(members);
  return (value, where) => {
    const from = record(value, where);
    return Object.fromEntries(entries.map(([key, check]) => [key, check(from[key], `${where}.${key}`)])) as Shape<M>;
  };
}

/** A whole answer of /v1: `schema` must be 1. */
export function answer<M extends Members>(members: M): Check<Shape<M>> {
  const inner = object(members);
  return (value, where) => {
    const { schema } = record(value, where);
    if (schema !== 1) {
      throw new ShapeError(`${where}.schema`, `expected 1, found ${JSON.stringify(schema) ?? 'nothing'}: hub and dashboard are of different versions`);
    }
    return inner(value, where);
  };
}
