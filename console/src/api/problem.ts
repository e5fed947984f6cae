import type { components } from '../../../clients/typescript/src/schema';

export type Problem = components['schemas']['Problem'];

/** An error response of the API. */
export class ProblemError extends Error {
  readonly status: number;
  readonly problem: Partial<Problem>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? problem.title ?? `The service responded with status ${status}.`);
    this.status = status;
    this.problem = problem;
  }
}

/** Returns the API's error, or null if there was no response. */
export function problemOf(error: unknown): ProblemError | null {
  return error instanceof ProblemError ? error : null;
}
