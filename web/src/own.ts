/** What a table says of a word from elsewhere; "constructor" is in no table, although every object has one. */
export function own<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
