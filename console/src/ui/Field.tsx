import type { InputHTMLAttributes, ReactNode } from 'react';
import './select.css';

type Props = InputHTMLAttributes<HTMLInputElement> & { label: string; hint?: ReactNode };

/** A labeled text field of a dialog. */
export function Field({ label, hint, ...input }: Props) {
  return (
    <label className="field">
      <span className="strong">{label}</span>
      <input className="input" {...input} />
      {hint && <span className="muted small">{hint}</span>}
    </label>
  );
}
