// Single keys. They can be turned off, since speech input and some screen readers send letters of their own.

import { useEffect, useRef, useState } from 'preact/hooks';
import { own } from '../own';
import { remember, remembered, setTheme, theme } from '../settings';
import type { View } from '../route';
import { nextTheme } from './theme_switch';

const places: Record<string, View> = { o: 'home', c: 'cards', r: 'races', m: 'machines', l: 'rollout', s: 'regressions', k: 'knobs' };

const shortcuts: [keys: string[], what: string][] = [
  [['?'], 'this list'],
  [['/'], 'to the filter of the view'],
  [['g', 'o'], 'overview'],
  [['g', 'c'], 'cards'],
  [['g', 'r'], 'races'],
  [['g', 'm'], 'machines'],
  [['g', 'l'], 'rollout'],
  [['g', 's'], 'regressions (slower)'],
  [['g', 'k'], 'knobs'],
  [['u'], 'ask the hub now'],
  [['p'], 'pause and resume updates'],
  [['t'], 'theme: auto, light, dark'],
  [['Esc'], 'close this list; empty and leave the filter'],
];

export function keysAreOn(): boolean {
  return remembered('keys') !== 'off';
}

interface Actions {
  help: () => void;
  go: (view: View) => void;
  refresh: () => void;
  pause: () => void;
}

function writes(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));
}

export function useKeys(actions: Actions): void {
  const act = useRef(actions);
  act.current = actions;
  useEffect(() => {
    let goes = 0;
    const pressed = (e: KeyboardEvent) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || document.querySelector('dialog[open]')) return;
      if (e.key === 'Escape' && e.target instanceof HTMLInputElement && e.target.matches('[data-filter]')) {
        e.target.value = '';
        e.target.dispatchEvent(new Event('input', { bubbles: true }));
        e.target.blur();
        document.getElementById('main')?.focus({ preventScroll: true });
        return;
      }
      if (writes(e.target) || !keysAreOn()) return;
      const place = own(places, e.key);
      if (performance.now() - goes < 1500 && place) {
        goes = 0;
        act.current.go(place);
      } else if (e.key === 'g') {
        goes = performance.now();
        return;
      } else if (e.key === '?') act.current.help();
      else if (e.key === 'u') act.current.refresh();
      else if (e.key === 'p') act.current.pause();
      else if (e.key === 't') setTheme(nextTheme(theme()));
      else if (e.key === '/') document.querySelector<HTMLInputElement>('main [data-filter]')?.focus();
      else return;
      e.preventDefault();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
}

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [on, setOn] = useState(keysAreOn());
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close} onClick={(e) => { if (e.target === dialog.current) dialog.current?.close(); }}>
      <div class="inside">
        <h2 id="help-title">Keyboard</h2>
        <p>Everything can be reached with Tab and Enter. Heads of tables are buttons that sort. These keys are quicker:</p>
        <table class="keys">
          <caption class="hidden">Keyboard shortcuts</caption>
          <thead class="hidden"><tr><th scope="col">Keys</th><th scope="col">What they do</th></tr></thead>
          <tbody>
            {shortcuts.map(([keys, what]) => (
              <tr key={what}>
                <th scope="row">{keys.map((k) => <kbd key={k}>{k}</kbd>)}</th>
                <td>{what}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <label class="check">
          <input type="checkbox" checked={on} onChange={(e) => { setOn(e.currentTarget.checked); remember('keys', e.currentTarget.checked ? '' : 'off'); }} />
          Single keys are on
        </label>
        <h2>How to read it</h2>
        <ul class="legend">
          <li><b>Gains</b> are of a variant over base within the same race, as the median over machines; behind them the 95% interval.</li>
          <li><b>= dead heat</b>: the interval holds zero, so neither is faster. <b>▲</b> faster, <b>▼</b> slower, <b>!</b> look at it.</li>
          <li><b>Candidates</b> are the variants within 1% of the best.</li>
        </ul>
        <p><button type="button" class="button primary" onClick={() => dialog.current?.close()}>Close</button></p>
      </div>
    </dialog>
  );
}
