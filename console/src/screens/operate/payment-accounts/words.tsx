import { Badge, GLYPH, type Tone } from '../../../ui/Status';
import type { ReactNode } from 'react';
import type { Account, Notification } from './queries';

const PROVIDERS: Record<Account['provider'], string> = {
  stripe: 'Stripe',
  lemonsqueezy: 'Lemon Squeezy',
};

export const accountName = ({ provider, description }: Account) =>
  description ? `${PROVIDERS[provider]}: ${description}` : PROVIDERS[provider];

type Check = { is: 'ok' | 'waiting' | 'missing'; text: string };

/** Returns what an account has and lacks, as far as the service knows without asking the provider. */
export function checksOf(account: Account): Check[] {
  return [
    account.has_api_key
      ? { is: 'ok', text: 'An API key is stored.' }
      : { is: 'missing', text: 'No API key is stored: nothing can be fetched from the provider.' },
    account.has_secret
      ? { is: 'ok', text: 'A secret for notifications is stored.' }
      : { is: 'missing', text: 'No secret is stored: no notification is accepted.' },
    account.last_heard_at
      ? { is: 'ok', text: 'Notifications arrive.' }
      : { is: 'waiting', text: 'No notification has arrived yet.' },
    account.pending_commands === 0
      ? { is: 'ok', text: 'The provider has acknowledged every command.' }
      : { is: 'waiting', text: `${account.pending_commands} commands are not acknowledged.` },
  ];
}

const CHECKS: Record<Check['is'], { tone: Tone; glyph: ReactNode; word: string }> = {
  ok: { tone: 'green', glyph: GLYPH.check, word: 'OK' },
  waiting: { tone: 'amber', glyph: GLYPH.triangle, word: 'Waiting' },
  missing: { tone: 'red', glyph: GLYPH.cross, word: 'Missing' },
};

export function CheckBadge({ is }: { is: Check['is'] }) {
  const { tone, glyph, word } = CHECKS[is];
  return (
    <Badge tone={tone} glyph={glyph}>
      {word}
    </Badge>
  );
}

/** The worst check of an account. */
export function AccountState({ account }: { account: Account }) {
  const checks = checksOf(account);
  const missing = checks.find(({ is }) => is === 'missing');
  const waiting = checks.find(({ is }) => is === 'waiting');
  const { tone, glyph } = CHECKS[missing ? 'missing' : waiting ? 'waiting' : 'ok'];
  return (
    <Badge tone={tone} glyph={glyph}>
      {missing ? 'Not ready' : waiting ? 'Waiting' : 'Ready'}
    </Badge>
  );
}

export type NotificationState = Notification['state'];

export const NOTIFICATION_STATES: Record<
  NotificationState,
  { word: string; tone: Tone; glyph: ReactNode; meaning: string }
> = {
  failed: {
    word: 'Failed',
    tone: 'red',
    glyph: GLYPH.cross,
    meaning: 'It could not be read. Nothing has changed.',
  },
  refused: {
    word: 'Refused',
    tone: 'red',
    glyph: GLYPH.square,
    meaning: 'It is for another mode, or for another account of the provider.',
  },
  waiting: {
    word: 'Waiting',
    tone: 'amber',
    glyph: GLYPH.triangle,
    meaning: 'It is applied as soon as what it needs exists.',
  },
  new: {
    word: 'New',
    tone: 'blue',
    glyph: GLYPH.ring,
    meaning: 'It is stored, and applied in a moment.',
  },
  done: { word: 'Done', tone: 'green', glyph: GLYPH.check, meaning: 'It is applied.' },
  ignored: {
    word: 'Ignored',
    tone: 'gray',
    glyph: GLYPH.dash,
    meaning: 'Its type changes no record.',
  },
};

export function NotificationBadge({ state }: { state: NotificationState }) {
  const { word, tone, glyph } = NOTIFICATION_STATES[state];
  return (
    <Badge tone={tone} glyph={glyph}>
      {word}
    </Badge>
  );
}

/** Returns the provider's object that a notification is about. */
export const objectText = ({ object_type, object_id }: Notification) =>
  object_id ? `${object_type ?? 'object'} ${object_id}` : '–';
