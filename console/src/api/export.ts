import { csvOf } from '../lib/csv';
import { ProblemError } from './problem';

/** The most rows that a CSV file of a list has. */
const MAX_ROWS = 10_000;

type Page = { data: object[]; next_cursor: string | null };

/** Reads a list page by page and returns it as CSV. */
export async function readCsv(readPage: (cursor?: string) => Promise<Page>): Promise<string> {
  const rows: object[] = [];
  let cursor: string | undefined;
  do {
    // oxlint-disable-next-line no-await-in-loop -- each page needs the cursor of the one before
    const page = await readPage(cursor);
    rows.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor && rows.length < MAX_ROWS);
  return csvOf(rows as Record<string, unknown>[]);
}

/** Reads a list or a report as the service's CSV. A list has at most 10,000 rows. */
export async function readServiceCsv(
  path: string,
  query: Record<string, string | undefined>,
): Promise<string> {
  const given = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const response = await fetch(`${path}?${new URLSearchParams(given)}`, {
    headers: { accept: 'text/csv' },
  });
  if (!response.ok)
    throw new ProblemError(response.status, await response.json().catch(() => ({})));
  return response.text();
}
