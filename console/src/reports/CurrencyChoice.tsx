import { Chips } from '../ui/Table';

type Props = { currencies: string[]; value: string | undefined };

/** Chooses a currency. Currencies are never added, so that each has its own figures. */
export function CurrencyChoice({ currencies, value }: Props) {
  if (currencies.length < 2) return null;
  return (
    <Chips
      label="Currency"
      param="currency"
      value={value}
      options={currencies.map((currency) => ({ value: currency, label: currency }))}
    />
  );
}
