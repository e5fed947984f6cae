import type { Client, ClientPathsWithMethod, MethodResponse, RequestBodyOption } from 'openapi-fetch';
import type { components, paths } from './schema.js';

/** The generated client of openapi-fetch. */
export type RawClient = Client<paths, 'application/json'>;

/** The HTTP methods of the API. */
export type Method = 'get' | 'post' | 'put' | 'delete';

/** The paths that have this method. */
export type PathOf<M extends Method> = ClientPathsWithMethod<RawClient, M>;

/** The paths of lists with pages. */
export type ListPath = {
  [P in PathOf<'get'>]: Result<'get', P> extends { data: unknown[]; has_more: boolean } ? P : never;
}[PathOf<'get'>];

/** The body of a successful response. */
export type Result<M extends Method, P extends PathOf<M>> = MethodResponse<RawClient, M, P>;

/** A record of a list. */
export type ListItem<P extends ListPath> = Result<'get', P> extends { data: (infer Item)[] } ? Item : never;

/** A page of a list. */
export type Page<P extends ListPath> = Result<'get', P>;

type Operation<M extends Method, P extends PathOf<M>> = M extends keyof paths[P] ? NonNullable<paths[P][M]> : never;

type ParametersOf<O> = O extends { parameters: infer Parameters } ? Parameters : never;

type HeadersOf<O> = O extends { parameters: { header?: infer H } } ? NonNullable<H> : never;

type HeaderOption<O, Name extends string, Option extends string> = [Name] extends [KeyOf<HeadersOf<O>>]
  ? { [K in Option]?: string }
  : { [K in Option]?: never };

/** The keys of an object; none if there is no object. */
type KeyOf<T> = [T] extends [never] ? never : keyof T;

/** The options of a call: `path`, `query` and `body` as in the OpenAPI document. */
export type CallOptions<M extends Method, P extends PathOf<M>> = Pick<
  ParametersOf<Operation<M, P>>,
  'path' & keyof ParametersOf<Operation<M, P>>
> &
  Pick<ParametersOf<Operation<M, P>>, 'query' & keyof ParametersOf<Operation<M, P>>> &
  RequestBodyOption<Operation<M, P>> &
  HeaderOption<Operation<M, P>, 'Idempotency-Key', 'idempotencyKey'> &
  HeaderOption<Operation<M, P>, 'If-Match', 'ifMatch'> &
  HeaderOption<Operation<M, P>, 'x-forwarded-for', 'forwardedFor'> & {
    /** Cancels the call and its retries. */
    signal?: AbortSignal;
  };

/** The options of a call as arguments: optional if no option is required. */
export type CallArguments<M extends Method, P extends PathOf<M>> =
  {} extends CallOptions<M, P> ? [options?: CallOptions<M, P>] : [options: CallOptions<M, P>];

/** All records and requests of the API by name, for example `Schemas['Subscription']`. */
export type Schemas = components['schemas'];
