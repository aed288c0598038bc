// What this browser remembers. Where storage is off, for as long as the page is open.

const kept = new Map<string, string>();

export function remembered(key: string): string {
  try {
    return localStorage.getItem(`furlong.${key}`) ?? '';
  } catch {
    return kept.get(key) ?? '';
  }
}

export function remember(key: string, value: string): void {
  kept.set(key, value);
  try {
    if (value) localStorage.setItem(`furlong.${key}`, value);
    else localStorage.removeItem(`furlong.${key}`);
  } catch {
    // kept above
  }
}

export type Theme = 'system' | 'light' | 'dark';

export function theme(): Theme {
  const value = remembered('theme');
  return value === 'light' || value === 'dark' ? value : 'system';
}

export function setTheme(value: Theme): void {
  remember('theme', value === 'system' ? '' : value);
  if (value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  dispatchEvent(new Event('furlong-theme'));
}
