import createClient from 'openapi-fetch';
import { ProblemError, type Problem } from './problem';
import type { components, paths } from '../../../clients/typescript/src/schema';

export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

/** The client of the public API. The staff cookie authenticates it. */
export const api = createClient<paths>({ baseUrl: '/' });

type Result<Data> = { data?: Data; error?: unknown; response: Response };

/** A JSON body. A response may also be text, such as CSV, which the client does not ask for. */
type Json<Data> = Exclude<Data, string | null | undefined>;

/** Returns the body of a response, or throws a `ProblemError`. */
export async function body<Data>(request: Promise<Result<Data>>): Promise<Json<Data>> {
  const { data, error, response } = await request;
  if (!response.ok) {
    const problem = typeof error === 'object' && error !== null ? (error as Partial<Problem>) : {};
    throw new ProblemError(response.status, problem);
  }
  return data as Json<Data>;
}
