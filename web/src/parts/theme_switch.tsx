import { useEffect, useState } from 'preact/hooks';
import { useServices } from '../hooks';
import { setTheme, theme, type Theme } from '../settings';

const order: Theme[] = ['system', 'light', 'dark'];
const shown: Record<Theme, string> = { system: 'Auto', light: 'Light', dark: 'Dark' };

export function nextTheme(now: Theme): Theme {
  return order[(order.indexOf(now) + 1) % order.length] ?? 'system';
}

export function ThemeSwitch() {
  const { say } = useServices();
  const [now, set] = useState(theme());
  useEffect(() => {
    const changed = () => set(theme());
    addEventListener('furlong-theme', changed);
    return () => removeEventListener('furlong-theme', changed);
  }, []);
  const press = () => {
    const next = nextTheme(now);
    setTheme(next);
    say(`Theme: ${shown[next]}`);
  };
  return (
    <button type="button" class="button" data-theme-switch onClick={press} aria-label={`Theme: ${shown[now]}. Change it`} title="Theme: as the system has it, light, dark">
      <span aria-hidden="true">{now === 'dark' ? '☾' : now === 'light' ? '☀' : '◐'}</span> {shown[now]}
    </button>
  );
}
