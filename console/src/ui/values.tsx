import { Fragment, useState } from 'react';
import { useNow } from '../lib/clock';
import { amount } from '../lib/money';
import { clock, day, exact, moment, relative } from '../lib/time';
import './values.css';

const FORMATS = { relative, day, moment, clock };

type TimeProps = { at: string; format?: keyof typeof FORMATS; focusable?: boolean };

/** A time, relative to the service's clock or absolute, with the exact time in UTC on hover and focus. */
export function Time({ at, format = 'relative', focusable = true }: TimeProps) {
  const now = useNow();
  return (
    <time
      className="time"
      dateTime={at}
      data-tip={exact(at)}
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the exact time appears on focus
      tabIndex={focusable ? 0 : undefined}
    >
      {FORMATS[format](at, now)}
    </time>
  );
}

type MoneyProps = {
  value: number | string | null | undefined;
  currency: string | null | undefined;
  sign?: boolean;
};

/** An amount with the code of its currency. */
export function Money({ value, currency, sign = false }: MoneyProps) {
  if (value == null || !currency) return <span className="muted">–</span>;
  return (
    <span className="money">
      {amount(value, currency, sign)} <span className="currency">{currency}</span>
    </span>
  );
}

/** A name such as "invoice.payment_failed", which can break between its words. */
export const TypeName = ({ name }: { name: string }) =>
  [...name.matchAll(/[^._]*[._]|[^._]+/g)].map(({ 0: word, index }) => (
    <Fragment key={name.slice(0, index + word.length)}>
      {word}
      <wbr />
    </Fragment>
  ));

/** How long a copied id says so. */
const COPIED_INTERVAL = 1200;

/** An id, shortened to its prefix and last characters, with the whole id on hover and focus. */
export function Id({ id }: { id: string }) {
  const [isCopied, setCopied] = useState(false);
  const short = id.length > 16 ? `${id.slice(0, id.indexOf('_') + 5)}…${id.slice(-4)}` : id;
  return (
    <button
      type="button"
      className="id"
      data-tip={`${id} · click to copy`}
      onClick={() => {
        void navigator.clipboard?.writeText(id);
        setCopied(true);
        setTimeout(() => setCopied(false), COPIED_INTERVAL);
      }}
    >
      {isCopied ? 'Copied' : short}
    </button>
  );
}
