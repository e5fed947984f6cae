import type { Schema } from '../api/client';
import type { RevenueInterval } from '../api/reports';
import { money } from '../lib/money';
import { intervalName, intervalTick } from '../lib/intervals';
import { changesOf, MOVEMENTS } from './changes';
import { AreaChart, StackedBars, type Point, type Series } from '../ui/Chart';

type Figures = Schema<'CurrencyRevenue'>;
type RevenuePoint = Point & { interval: RevenueInterval };

const MAIN = new Set(['new', 'expansion', 'contraction', 'churned']);

/** Returns the kinds that occur in a report, and always the main ones. */
export function movementsOf(figures: Figures): Series[] {
  return MOVEMENTS.filter(
    ({ key }) =>
      MAIN.has(key) || figures.intervals.some(({ movements }) => Number(movements[key]?.arr ?? 0)),
  );
}

const pointsOf = (figures: Figures): RevenuePoint[] =>
  figures.intervals.map((interval) => ({
    from: interval.from,
    tick: intervalTick(interval),
    name: intervalName(interval),
    interval,
  }));

const net = ({ opening, closing }: RevenueInterval) =>
  (Number(closing.mrr) - Number(opening.mrr)).toFixed(2);

/** Keeps the place of a chart. */
export const ChartPlaceholder = () => <div className="card chart chart-empty" aria-busy="true" />;

export function MrrChart({ figures }: { figures: Figures }) {
  const { currency } = figures;
  const text = ({ interval }: RevenuePoint) =>
    `${money(interval.closing.mrr, currency)}, ${money(net(interval), currency, true)}`;
  return (
    <AreaChart
      label={`MRR in ${currency}`}
      points={pointsOf(figures)}
      value={({ interval }) => Number(interval.closing.mrr)}
      readout={text}
      describe={text}
      link={({ from }) => ({ to: '/revenue', search: { currency, at: from } })}
    />
  );
}

export function MovementChart({ figures, plan }: { figures: Figures; plan?: string }) {
  const { currency } = figures;
  const series = movementsOf(figures);
  const describe = ({ interval }: RevenuePoint) =>
    series
      .filter(({ key }) => interval.movements[key])
      .map(
        ({ key, label }) => `${label} ${money(interval.movements[key]?.mrr ?? 0, currency, true)}`,
      )
      .join(', ') || 'no movement';
  return (
    <StackedBars
      label={`MRR movements in ${currency}`}
      points={pointsOf(figures)}
      series={series}
      value={({ interval }, key) => Number(interval.movements[key]?.mrr ?? 0)}
      readout={({ interval }) => `Net ${money(net(interval), currency, true)}`}
      describe={describe}
      link={({ interval }) => changesOf(undefined, interval, { currency, plan })}
    />
  );
}
