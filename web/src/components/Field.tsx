// SPDX-License-Identifier: Apache-2.0
// A labelled input; what it gives to its child connects the two.
import { Search } from 'lucide-react';
import { useId, type ComponentProps, type ReactNode } from 'react';

interface Props { label: string; hint?: ReactNode; fault?: string | null; children: (attributes: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }) => ReactNode }

export function Field({ label, hint, fault, children }: Props) {
  const id = useId();
  const note = fault || hint ? `${id}-note` : undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': note, 'aria-invalid': fault ? true : undefined })}
      {fault ? <span id={note} className="fault" role="alert">{fault}</span> : hint && <span id={note} className="hint">{hint}</span>}
    </div>
  );
}

type TextProps = Omit<ComponentProps<'input'>, 'onChange'> & { label: string; hint?: ReactNode; fault?: string | null; onText: (value: string) => void; mono?: boolean };
export function TextField({ label, hint, fault, onText, mono, ...rest }: TextProps) {
  return <Field label={label} hint={hint} fault={fault}>{(attributes) => <input className={mono ? 'input mono' : 'input'} autoComplete="off" spellCheck={false} {...attributes} {...rest} onChange={(event) => onText(event.target.value)} />}</Field>;
}

type AreaProps = Omit<ComponentProps<'textarea'>, 'onChange'> & { label: string; hint?: ReactNode; fault?: string | null; onText: (value: string) => void };
export function AreaField({ label, hint, fault, onText, ...rest }: AreaProps) {
  return <Field label={label} hint={hint} fault={fault}>{(attributes) => <textarea className="input" spellCheck={false} {...attributes} {...rest} onChange={(event) => onText(event.target.value)} />}</Field>;
}

export interface Choice { value: string; label: string }
type SelectProps = { label: string; hint?: ReactNode; value: string; choices: Choice[]; onText: (value: string) => void; disabled?: boolean };
export function SelectField({ label, hint, value, choices, onText, disabled }: SelectProps) {
  return (
    <Field label={label} hint={hint}>
      {(attributes) => (
        <select className="input" value={value} disabled={disabled} {...attributes} onChange={(event) => onText(event.target.value)}>
          {choices.map((choice) => <option key={choice.value} value={choice.value}>{choice.label}</option>)}
        </select>
      )}
    </Field>
  );
}

export function Check({ label, checked, onCheck, disabled }: { label: string; checked: boolean; onCheck: (checked: boolean) => void; disabled?: boolean }) {
  return <label className="check"><input type="checkbox" checked={checked} disabled={disabled} onChange={(event) => onCheck(event.target.checked)} />{label}</label>;
}

export function SearchBox({ label, value, onText, className = '' }: { label: string; value: string; onText: (value: string) => void; className?: string }) {
  return <div className={`search-box ${className}`}><Search size={15} aria-hidden /><input type="search" className="input search" aria-label={label} placeholder={label} value={value} onChange={(event) => onText(event.target.value)} /></div>;
}

/** One of a few. */
export function Segments({ label, value, choices, onText }: { label: string; value: string; choices: Choice[]; onText: (value: string) => void }) {
  return <div className="segments" role="group" aria-label={label}>{choices.map((choice) => <button key={choice.value} type="button" aria-pressed={choice.value === value} onClick={() => onText(choice.value)}>{choice.label}</button>)}</div>;
}
