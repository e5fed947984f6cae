import type { Schema } from '../api/client';
import { intervalName, intervalTick } from '../lib/intervals';
import { money } from '../lib/money';
import { StackedBars, type Series } from '../ui/Chart';

const SERIES: Series[] = [
  { key: 'collected', label: 'Collected', tone: 'green' },
  { key: 'refunded', label: 'Refunded', tone: 'purple' },
  { key: 'disputed', label: 'Disputed', tone: 'amber' },
];

type Figures = Schema<'CurrencyPayments'>;

/** Money received and returned, by the day of the payment. */
export function PaymentsChart({ figures }: { figures: Figures }) {
  const { currency } = figures;
  const points = figures.intervals.map((interval) => ({
    from: interval.from,
    tick: intervalTick(interval),
    name: intervalName(interval),
    interval,
  }));
  type Entry = (typeof points)[number];
  const text = ({ interval }: Entry) =>
    `Net ${money(interval.net, currency)}, collected ${money(interval.collected.amount, currency)}`;
  return (
    <StackedBars
      label={`Payments in ${currency}`}
      points={points}
      series={SERIES}
      value={({ interval }, key) => {
        const amount = Number(interval[key as 'collected'].amount);
        return key === 'collected' ? amount : -amount;
      }}
      readout={text}
      describe={text}
      link={({ interval }) => ({
        to: '/payments',
        search: {
          from: interval.from,
          to: interval.to,
          currency,
          status: 'completed,partially_refunded,refunded,disputed',
        },
      })}
    />
  );
}
