type Props<Value extends string> = {
  label: string;
  values: Value[];
  options: { value: Value; label: string }[];
  onChange: (values: Value[]) => void;
};

/** A choice of several options in a dialog. */
export function Checks<Value extends string>({ label, values, options, onChange }: Props<Value>) {
  return (
    <fieldset className="choice">
      <legend className="strong">{label}</legend>
      <div className="checks">
        {options.map((option) => (
          <label key={option.value} className="check-field">
            <input
              type="checkbox"
              checked={values.includes(option.value)}
              onChange={(event) =>
                onChange(
                  event.target.checked
                    ? [...values, option.value]
                    : values.filter((value) => value !== option.value),
                )
              }
            />
            {option.label}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
