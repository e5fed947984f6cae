import { useNavigate } from '@tanstack/react-router';
import './select.css';

type Props = {
  label: string;
  /** The search parameter that it sets. */
  param: string;
  value: string | undefined;
  options: { value: string; label: string }[];
  /** Whether the options are loaded after the screen. */
  isLoaded?: boolean;
  /** Label of the option that removes the filter; none if a value is required. */
  all?: string;
};

/** A filter that sets a search parameter of the URL. */
export function Select({ label, param, value, options, isLoaded, all }: Props) {
  const navigate = useNavigate();
  return (
    <label className={`select ${isLoaded ? 'select-loaded' : ''}`}>
      <span className="select-label">{label}</span>
      <select
        value={value ?? ''}
        onChange={(event) =>
          void navigate({
            to: '.',
            search: ((search: Record<string, unknown>) => ({
              ...search,
              [param]: event.target.value || undefined,
              cursor: undefined,
            })) as never,
          })
        }
      >
        {all && <option value="">{all}</option>}
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  );
}
