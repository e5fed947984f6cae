import { Link } from '@tanstack/react-router';
import type { Schema } from '../api/client';
import type { RevenueInterval } from '../api/reports';
import { intervalName } from '../lib/intervals';
import { amount } from '../lib/money';
import { Empty } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { changesOf } from './changes';
import { movementsOf } from './RevenueCharts';

type Props = {
  figures: Schema<'CurrencyRevenue'>;
  label: string;
  rows: RevenueInterval[];
  /** Whether an interval opens its days. */
  opensDays: boolean;
  /** The plan that the report is limited to. */
  plan?: string;
};

/** Recurring revenue by interval: the opening, each movement with its number of changes, and the closing. */
export function MovementTable({ figures, label, rows, opensDays, plan }: Props) {
  const { currency } = figures;
  const columns: Column<RevenueInterval>[] = [
    {
      header: 'Interval',
      cell: (interval) =>
        opensDays ? (
          <Link
            to="."
            search={((search: object) => ({ ...search, at: interval.from })) as never}
            hash="days"
            className="row-link nowrap"
            data-row
          >
            {intervalName(interval)}
          </Link>
        ) : (
          <span className="nowrap">{intervalName(interval)}</span>
        ),
    },
    {
      header: 'Opening',
      align: 'end',
      minor: true,
      cell: ({ opening }) => amount(opening.mrr, currency),
    },
    ...movementsOf(figures).map(({ key, label: header }): Column<RevenueInterval> => ({
      header,
      align: 'end',
      cell: (interval) => {
        const movement = interval.movements[key];
        if (!movement?.changes) return <span className="muted">–</span>;
        return (
          <Link {...changesOf(key, interval, { currency, plan })} className="number-link">
            {amount(movement.mrr, currency, true)}
            <span className="muted small nowrap"> ({movement.changes})</span>
          </Link>
        );
      },
    })),
    {
      header: 'Closing',
      align: 'end',
      cell: ({ closing }) => amount(closing.mrr, currency),
    },
  ];
  return (
    <Table
      label={label}
      columns={columns}
      rows={rows}
      rowKey={({ from }) => from}
      empty={<Empty title="No movement">Nothing changed in this interval.</Empty>}
    />
  );
}
