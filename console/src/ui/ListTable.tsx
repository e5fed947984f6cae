import { Pager, Table, type TableProps } from './Table';

type Page<Row> = { data: Row[]; next_cursor?: string | null };

type Props<Row> = Omit<TableProps<Row>, 'rows' | 'rowKey' | 'error' | 'retry' | 'stale'> & {
  /** The query of a page of rows. */
  list: {
    data: Page<Row> | undefined;
    error: unknown;
    isPlaceholderData: boolean;
    refetch: () => unknown;
  };
  /** Default: the row's id. */
  rowKey?: (row: Row) => string;
};

const idOf = (row: object) => (row as { id: string }).id;

/** A page of a list as a table, with links to the other pages. */
export function ListTable<Row extends object>({ list, rowKey = idOf, ...table }: Props<Row>) {
  const rows = list.data?.data;
  return (
    <Table
      {...table}
      rows={rows}
      rowKey={rowKey}
      error={list.error}
      retry={() => void list.refetch()}
      stale={list.isPlaceholderData}
      footer={<Pager next={list.data?.next_cursor} shown={rows?.length} />}
    />
  );
}
