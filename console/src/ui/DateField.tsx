import { useNavigate } from '@tanstack/react-router';
import './select.css';

type Props = {
  label: string;
  /** The search parameter that it sets. */
  param: string;
  value: string | undefined;
  min?: string;
  max?: string;
};

/** A day that is a search parameter of the URL. */
export function DateField({ label, param, value, min, max }: Props) {
  const navigate = useNavigate();
  return (
    <label className="select">
      <span className="select-label">{label}</span>
      <input
        type="date"
        className="input"
        value={value ?? ''}
        min={min}
        max={max}
        onChange={(event) => {
          const day = event.target.value || undefined;
          void navigate({
            to: '.',
            search: ((search: Record<string, unknown>) => ({
              ...search,
              [param]: day,
              cursor: undefined,
            })) as never,
            replace: true,
          });
        }}
      />
    </label>
  );
}
