export { Perennial, type PerennialOptions } from './client.js';
export type { Entitlements, EntitlementsUser } from './entitlements.js';
export { PerennialError, type ErrorCode, type FieldError, type Problem, type ProblemCode } from './errors.js';
export type { EventOptions, StreamedEvent } from './events.js';
export type { components, operations, paths } from './schema.js';
export type { Credentials, Session } from './session.js';
export { browserTokenStore, memoryTokenStore, sessionTokens } from './token_store.js';
export type { SessionTokens, TokenStore } from './token_store.js';
export type { RetryOptions } from './transport.js';
export type {
  CallArguments,
  CallOptions,
  ListItem,
  ListPath,
  Method,
  Page,
  PathOf,
  RawClient,
  Result,
  Schemas,
} from './types.js';
export { verifyWebhook, WebhookVerificationError, type WebhookEvent, type WebhookRequest } from './webhooks.js';
