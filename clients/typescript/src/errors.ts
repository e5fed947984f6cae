import type { components } from './schema.js';

/** A problem document (RFC 9457) of the service. */
export type Problem = components['schemas']['Problem'];

/** The code of a problem. Each code has a page under `/docs/errors` of the service. */
export type ProblemCode = components['schemas']['ProblemCode'];

/** An invalid field or parameter of a request. */
export type FieldError = components['schemas']['FieldError'];

/**
 * The code of a {@link PerennialError}. Besides the codes of the service:
 * `connection_failed` (no complete response), `timeout` (no response in time) and `unexpected_response` (an error without a
 * problem document, for example from a proxy).
 */
export type ErrorCode = ProblemCode | 'connection_failed' | 'timeout' | 'unexpected_response';

/** A request that failed: a problem document of the service, or no response. */
export class PerennialError extends Error {
  override readonly name = 'PerennialError';
  /** The HTTP status; 0 without a response. */
  readonly status: number;
  readonly code: ErrorCode;
  /** The address of the page that documents the code. */
  readonly type: string | undefined;
  readonly title: string;
  readonly detail: string;
  /** The id of the request, for the operator's log. */
  readonly requestId: string | undefined;
  /** The invalid fields and parameters; empty for other problems. */
  readonly errors: readonly FieldError[];
  /** The whole document, with the members of particular codes: `allowed`, `amount_due`, `existing_id`. */
  readonly problem: Problem | undefined;

  constructor(status: number, code: ErrorCode, detail: string, problem?: Problem, cause?: unknown) {
    super(detail, cause === undefined ? undefined : { cause });
    this.status = status;
    this.code = code;
    this.type = problem?.type;
    this.title = problem?.title ?? (status ? 'Unexpected response' : 'No response');
    this.detail = detail;
    this.requestId = problem?.request_id;
    this.errors = problem?.errors ?? [];
    this.problem = problem;
  }

  /** Returns the error of a field by its JSON pointer, such as `/price`, or of a parameter, such as `?limit`. */
  field(pointer: string): FieldError | undefined {
    return this.errors.find((error) => error.pointer === pointer);
  }
}

/** Creates the error of a response that is not 2xx. The body has been parsed, if it is JSON. */
export function errorFromResponse(response: Response, body: unknown): PerennialError {
  if (isProblem(body)) return new PerennialError(response.status, body.code, body.detail, body);
  const detail = `the response is ${response.status} without a problem document`;
  return new PerennialError(response.status, 'unexpected_response', detail);
}

/** Returns the code of a response's problem document. Leaves the body of the response unread. */
export async function readCode(response: Response): Promise<ProblemCode | undefined> {
  const body = parseJson(await response.clone().text());
  return isProblem(body) ? body.code : undefined;
}

/** Returns undefined for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && 'code' in body && 'detail' in body;
}
