import { useId, type ReactNode } from 'react';
import './choice.css';

type Props<Value extends string> = {
  label: string;
  value: Value;
  options: { value: Value; label: ReactNode; detail?: ReactNode }[];
  onChange: (value: Value) => void;
};

/** A choice of one of a few options in a dialog. */
export function Choice<Value extends string>({ label, value, options, onChange }: Props<Value>) {
  const name = useId();
  return (
    <fieldset className="choice">
      <legend className="strong">{label}</legend>
      {options.map((option) => (
        <label key={option.value} className="check-field">
          <input
            type="radio"
            name={name}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>
            {option.label}
            {option.detail && <span className="muted"> {option.detail}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
