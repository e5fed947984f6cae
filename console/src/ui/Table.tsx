import { Link, useNavigate, useRouterState } from '@tanstack/react-router';
import { memo, useCallback, useDeferredValue, type ReactNode } from 'react';
import { observeWidth } from '../lib/width';
import { ButtonLink, Button } from './Button';
import { Failure, Skeleton } from './Page';
import './table.css';

export type Column<Row> = {
  header: string;
  cell: (row: Row) => ReactNode;
  align?: 'end';
  /** Left out of cards. */
  minor?: boolean;
  /** Share of the table's width in percent. If all columns have one, they do not move when rows change. */
  share?: number;
  /** Width of the placeholder while rows load. */
  placeholder?: number;
};

export type TableProps<Row> = {
  label: string;
  columns: Column<Row>[];
  rows: Row[] | undefined;
  rowKey: (row: Row) => string;
  error?: unknown;
  retry?: () => void;
  /** Shown instead of a table without rows. */
  empty: ReactNode;
  /** Number of placeholder rows. */
  expected?: number;
  /** Whether the rows are those of an earlier request. */
  stale?: boolean;
  /** Shown below all rows. */
  footer?: ReactNode;
};

/** How many rows appear at once. The others follow in the background. */
const FIRST_ROWS = 20;

/** Least width of a column. A table with less room becomes a list of cards. */
const COLUMN_WIDTH = 112;

/**
 * A table that becomes a list of cards where it has no room. Roles keep its meaning there. It renders in the background,
 * so that many rows do not block the page.
 */
export function Table<Row>(props: TableProps<Row>) {
  const { rows } = props;
  const isLong = rows && rows.length > FIRST_ROWS;
  const first = isLong ? { ...props, rows: rows.slice(0, FIRST_ROWS), footer: null } : props;
  const shown = useDeferredValue(props, first);
  return <TableRows {...(shown as TableProps<unknown>)} />;
}

const TableRows = memo(function TableRows<Row>(props: TableProps<Row>) {
  const { label, columns, rows, rowKey, error, retry, empty, expected = 8, stale, footer } = props;
  const minWidth = columns.length * COLUMN_WIDTH;
  const ref = useCallback(
    // An attribute, because another rendering of all rows would take time.
    (box: HTMLElement | null) =>
      box
        ? observeWidth(box, (width) => box.toggleAttribute('data-cards', width < minWidth))
        : undefined,
    [minWidth],
  );
  if (error) return <Failure error={error} retry={retry} />;
  if (rows?.length === 0) {
    return (
      <>
        <div className="card">{empty}</div>
        {footer}
      </>
    );
  }
  const cellClass = (column: Column<Row>) =>
    `cell ${column.align === 'end' ? 'cell-end' : ''} ${column.minor ? 'cell-minor' : ''}`;
  const isFixed = columns.every(({ share }) => share);
  const box = `card table-box ${stale ? 'table-stale' : ''}`;
  return (
    <>
      <div ref={ref} className={box}>
        <table
          className={`table ${isFixed ? 'table-fixed' : ''}`}
          role="table"
          aria-label={label}
          aria-busy={!rows || stale}
        >
          {isFixed && (
            <colgroup>
              {columns.map(({ header, share }) => (
                <col key={header} style={{ width: `${share}%` }} />
              ))}
            </colgroup>
          )}
          <thead role="rowgroup">
            <tr role="row">
              {columns.map((column) => (
                <th
                  key={column.header}
                  role="columnheader"
                  scope="col"
                  className={cellClass(column)}
                >
                  {column.header}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {rows
              ? rows.map((row) => (
                  <tr key={rowKey(row)} role="row">
                    {columns.map((column) => (
                      <td key={column.header} role="cell" className={cellClass(column)}>
                        <span className="cell-label" aria-hidden="true">
                          {column.header}
                        </span>
                        <span className="cell-value">{column.cell(row)}</span>
                      </td>
                    ))}
                  </tr>
                ))
              : Array.from({ length: expected }, (_, index) => (
                  <tr key={index} role="row">
                    {columns.map((column) => (
                      <td key={column.header} role="cell" className={cellClass(column)}>
                        <Skeleton height={14} width={column.placeholder ?? 90} />
                      </td>
                    ))}
                  </tr>
                ))}
          </tbody>
        </table>
      </div>
      {footer}
    </>
  );
});

type PagerProps = { next: string | null | undefined; shown: number | undefined };

/** Links to the next page of a list, whose cursor is in the URL, and back. */
export function Pager({ next, shown }: PagerProps) {
  const location = useRouterState({ select: (state) => state.location });
  const navigate = useNavigate();
  const search = location.search as Record<string, string | undefined>;
  const isPaged = Boolean(search.cursor);
  const cameByNext = Boolean((location.state as { paged?: boolean }).paged);
  if (!next && !isPaged) return null;
  return (
    <nav className="pager" aria-label="Pages">
      <span className="muted">{shown ? `${shown} on this page` : ''}</span>
      {isPaged &&
        (cameByNext ? (
          <Button onClick={() => window.history.back()}>Previous</Button>
        ) : (
          <ButtonLink to="." search={{ ...search, cursor: undefined } as never}>
            First page
          </ButtonLink>
        ))}
      {next ? (
        <Button
          onClick={() =>
            void navigate({
              to: '.',
              search: { ...search, cursor: next } as never,
              state: { paged: true } as never,
            })
          }
        >
          Next
        </Button>
      ) : (
        <Button aria-disabled="true" data-tip="This is the last page.">
          Next
        </Button>
      )}
    </nav>
  );
}

type ChipsProps = {
  label: string;
  /** The search parameter that a chip sets. */
  param: string;
  value: string | undefined;
  options: { value: string | undefined; label: ReactNode; count?: string }[];
};

/** Filters of which one applies, each a link that sets a search parameter. */
export function Chips({ label, param, value, options }: ChipsProps) {
  return (
    <nav className="chips" aria-label={label}>
      {options.map((option) => (
        <Link
          key={option.value ?? ''}
          to="."
          search={
            ((search: Record<string, unknown>) => ({
              ...search,
              [param]: option.value,
              cursor: undefined,
            })) as never
          }
          className="chip"
          aria-current={option.value === value ? 'true' : undefined}
          activeOptions={{ exact: true, includeSearch: true, explicitUndefined: true }}
        >
          {option.label}
          {option.count !== undefined && <span className="chip-count">{option.count}</span>}
        </Link>
      ))}
    </nav>
  );
}
