import { Badge, GLYPH } from '../../../ui/Status';
import { Time } from '../../../ui/values';
import type { Attempt, Endpoint } from './queries';

const DISABLED_REASONS: Record<string, string> = {
  request: 'Paused',
  gone: 'Disabled: it responded with 410 Gone',
  failures: 'Disabled: every attempt failed for five days',
};

/** What a failed event delays, by the endpoint's order. */
export const ORDERS: Record<Endpoint['order'], string> = {
  none: 'A failed event delays no other.',
  subject: 'A failed event delays later events of its record.',
  strict: 'A failed event delays all later events.',
};

/** Whether an endpoint receives events, and since when it fails. */
export function EndpointState({ endpoint }: { endpoint: Endpoint }) {
  if (endpoint.status === 'disabled') {
    const reason = endpoint.disabled_reason ?? 'request';
    return (
      <Badge
        tone={reason === 'request' ? 'gray' : 'red'}
        glyph={reason === 'request' ? GLYPH.bars : GLYPH.cross}
      >
        {DISABLED_REASONS[reason] ?? 'Disabled'}
      </Badge>
    );
  }
  return endpoint.failing_since ? (
    <Badge tone="red" glyph={GLYPH.triangle}>
      <span>
        Failing since <Time at={endpoint.failing_since} format="moment" />
      </span>
    </Badge>
  ) : (
    <Badge tone="green" glyph={GLYPH.dot}>
      Receiving
    </Badge>
  );
}

const STATUS_WORDS: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  410: 'Gone',
  413: 'Content Too Large',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

/** Returns what became of an attempt: the status of the response, or why there was none. */
export function outcomeOf({ status_code, error, is_success }: Attempt): string {
  if (status_code === null) return error ?? 'No response';
  const word = STATUS_WORDS[status_code];
  return `${status_code}${word ? ` ${word}` : ''}${error && !is_success ? `: ${error}` : ''}`;
}

export function AttemptBadge({ attempt }: { attempt: Attempt }) {
  return attempt.is_success ? (
    <Badge tone="green" glyph={GLYPH.check}>
      Delivered
    </Badge>
  ) : (
    <Badge tone="red" glyph={GLYPH.cross}>
      Failed
    </Badge>
  );
}

export const typesText = ({ event_types }: Pick<Endpoint, 'event_types'>) =>
  event_types.join(', ') || 'All events';
