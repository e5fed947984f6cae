import type { ReactNode, SelectHTMLAttributes } from 'react';
import './select.css';

type Props = SelectHTMLAttributes<HTMLSelectElement> & { label: string; children: ReactNode };

/** A labeled list of options in a dialog. */
export function SelectField({ label, children, ...select }: Props) {
  return (
    <label className="field">
      <span className="strong">{label}</span>
      <select {...select}>{children}</select>
    </label>
  );
}
