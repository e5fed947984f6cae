/** Returns a CSV field. A leading character that a spreadsheet takes for a formula gets an apostrophe. */
function field(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const isFormula = typeof value === 'string' && /^[=+\-@\t\r]/.test(text);
  const safe = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns records as CSV (RFC 4180), with one column for each field of the first one. */
export function csvOf(records: Record<string, unknown>[]): string {
  const columns = Object.keys(records[0] ?? {});
  const lines = records.map((record) => columns.map((column) => field(record[column])));
  return [columns, ...lines].map((line) => `${line.join(',')}\r\n`).join('');
}

/** Saves text as a file of this browser. */
export function download(name: string, text: string, type = 'text/csv'): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
