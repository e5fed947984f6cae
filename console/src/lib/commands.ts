import { ProblemError } from '../api/problem';

/** A change, as it is sent and as it is shown. */
export type ChangeRequest = {
  method: 'POST' | 'PUT' | 'DELETE';
  path: string;
  body?: Record<string, unknown>;
  /** Headers besides those of every request, such as `Idempotency-Key`. */
  headers?: Record<string, string>;
};

/** Sends a change with the staff member's session and returns the response's text, or throws a `ProblemError`. */
export async function sendForText(request: ChangeRequest): Promise<string> {
  const { method, path, body, headers } = request;
  const response = await fetch(path, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) {
    throw new ProblemError(response.status, text.startsWith('{') ? JSON.parse(text) : {});
  }
  return text;
}

/** Sends a change and returns the response's body. Numbers lose the zeros at the end of their decimals. */
export async function send<Result>(request: ChangeRequest): Promise<Result> {
  const text = await sendForText(request);
  return (text ? JSON.parse(text) : null) as Result;
}

/** Returns a word as a POSIX shell reads it back. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns the curl command of a request. The API key is in the variable CLIENT_ID. */
export function curlOf(request: ChangeRequest, origin: string): string {
  const { method, path, body, headers } = request;
  const verb = method === 'POST' && body ? '' : `-X ${method} `;
  return [
    `curl ${verb}${shellWord(`${origin}${path}`)}`,
    '-H "client-id: $CLIENT_ID"',
    ...Object.entries(headers ?? {}).map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`),
    ...(body ? [`--json ${shellWord(JSON.stringify(body))}`] : []),
  ].join(' \\\n  ');
}

/** Returns a command of the service from its words. */
export const cliOf = (...words: string[]) => ['perennial', ...words].map(shellWord).join(' ');

/** Returns the flags of a command that changes these fields. An empty value clears a field. */
export const flagsOf = (fields: Record<string, unknown>): string[] =>
  Object.entries(fields).flatMap(([name, value]) => {
    const flag = name === 'subscription_plan_slug' ? 'plan' : name.replaceAll('_', '-');
    return [`--${flag}`, String(value ?? '')];
  });
