/** Search parameters of the URL are flat strings, so that a URL can be read and written by hand. */
export function parseSearch(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const entries = Object.entries(search).flatMap(([key, value]) =>
    value === undefined || value === null || value === '' ? [] : [[key, String(value)]],
  );
  const text = new URLSearchParams(entries).toString().replaceAll('%2C', ',');
  return text && `?${text}`;
}

/** Returns a validator that keeps the named parameters. */
export function searchOf<Name extends string>(...names: Name[]) {
  return (search: Record<string, unknown>): Partial<Record<Name, string>> => {
    const kept = names.flatMap((name) => {
      const value = search[name];
      return value === undefined || value === '' ? [] : [[name, String(value)]];
    });
    return Object.fromEntries(kept) as Partial<Record<Name, string>>;
  };
}
