import type { components } from './schema.js';

/** The event of a verified webhook request. `id` is the `webhook-id`: ignore one that you have processed. */
export type WebhookEvent = components['schemas']['WebhookEvent'] & { id: string };

/** A webhook request to verify. */
export interface WebhookRequest {
  /** The body as it was received. A parsed and serialized body has another signature. */
  body: string | Uint8Array | ArrayBuffer;
  /** The headers of the request: `Headers`, or an object with lowercase names as in Node.js. */
  headers: Headers | Record<string, string | string[] | undefined>;
  /** The secrets (`whsec_…`) that are accepted. During a rotation, the old one and the new one. */
  secrets: string | readonly string[];
  /** How far the timestamp may be from the present time, in seconds. Default: 300. */
  tolerance?: number;
}

/** A webhook request that was not sent by the service, was changed, or is too old. Respond with 401. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

/**
 * Verifies a webhook request by the Standard Webhooks specification and returns its event. One valid signature of one of the
 * secrets is enough. Throws {@link WebhookVerificationError}.
 */
export async function verifyWebhook(request: WebhookRequest): Promise<WebhookEvent> {
  const { headers, secrets, tolerance = 300 } = request;
  const id = header(headers, 'webhook-id');
  const timestamp = header(headers, 'webhook-timestamp');
  const signatures = header(headers, 'webhook-signature')
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
    .flatMap((signature) => decodeBase64(signature.slice(3)) ?? []);
  if (!/^\d{1,12}$/.test(timestamp) || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= tolerance)) {
    throw new WebhookVerificationError('the timestamp of the webhook request is too old or too new');
  }
  const body = toBytes(request.body);
  const prefix = toBytes(`${id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  const accepted = typeof secrets === 'string' ? [secrets] : secrets;
  const checks = await Promise.all(accepted.map((secret) => hasSignature(secret, signatures, signed)));
  if (!checks.includes(true)) {
    throw new WebhookVerificationError('no signature of the webhook request is valid');
  }
  const event = JSON.parse(new TextDecoder().decode(body)) as components['schemas']['WebhookEvent'];
  return { ...event, id };
}

/** Whether one of the signatures is that of the secret. `crypto.subtle.verify` compares in constant time. */
async function hasSignature(secret: string, signatures: Bytes[], signed: Bytes): Promise<boolean> {
  const raw = decodeBase64(secret.replace(/^whsec_/, ''));
  if (!raw?.length) throw new TypeError('a webhook secret must be whsec_ and base64');
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', raw, algorithm, false, ['verify']);
  const checks = await Promise.all(signatures.map((signature) => crypto.subtle.verify('HMAC', key, signature, signed)));
  return checks.includes(true);
}

type Bytes = Uint8Array<ArrayBuffer>;

function toBytes(body: string | Uint8Array | ArrayBuffer): Bytes {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  return new Uint8Array(body);
}

function decodeBase64(text: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function header(headers: WebhookRequest['headers'], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value === 'string' && value) return value;
  throw new WebhookVerificationError(`the webhook request must have the header ${name} once`);
}
