import type { ComponentChildren } from 'preact';

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

/** The field that the key / goes to. */
export function FilterField({ label, value, onChange, placeholder = '' }: FieldProps & { placeholder?: string }) {
  return (
    <label class="field wide">
      <span>{label}</span>
      <input type="search" data-filter value={value} placeholder={placeholder} autoComplete="off" spellcheck={false} onInput={(e) => onChange(e.currentTarget.value)} />
    </label>
  );
}

export function SelectField({ label, value, onChange, options }: FieldProps & { options: readonly (readonly [value: string, text: string])[] }) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {options.map(([key, text]) => <option key={key} value={key}>{text}</option>)}
      </select>
    </label>
  );
}

export function Filters({ label, children, onSubmit }: { label: string; children: ComponentChildren; onSubmit?: () => void }) {
  return (
    <form class="filters" role="search" aria-label={label} onSubmit={(e) => { e.preventDefault(); onSubmit?.(); }}>
      {children}
    </form>
  );
}
