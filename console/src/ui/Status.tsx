import type { ReactNode } from 'react';
import type { Schema } from '../api/client';
import './status.css';

export type SubscriptionStatus = Schema<'SubscriptionStatus'>;
export type PaymentStatus = Schema<'PaymentStatus'>;
export type Tone = 'green' | 'blue' | 'amber' | 'red' | 'purple' | 'gray';

type Look = { word: string; tone: Tone; glyph: ReactNode };

const dot = <circle cx="6" cy="6" r="4" />;
const ring = <circle cx="6" cy="6" r="3.2" className="glyph-line" />;
const half = (
  <>
    <circle cx="6" cy="6" r="3.4" className="glyph-line" />
    <path d="M6 2a4 4 0 0 0 0 8Z" />
  </>
);
const triangle = <path d="M6 1.6 11 10.400H1Z" />;
const square = <rect x="2" y="2" width="8" height="8" rx="0.5" />;
const bars = <path d="M2.5 2h2.600v8H2.500Zm4.4 0h2.600v8H6.900Z" />;
const dash = <path d="M2 6h8" className="glyph-line" />;
const cross = <path d="m2.8 2.8 6.4 6.400m0-6.400L2.8 9.2" className="glyph-line" />;
const check = <path d="m2.2 6.4 2.6 2.6 5-5.6" className="glyph-line" />;
const back = (
  <path d="M4.5 2 2 4.5 4.5 7M2 4.500h5a2.75 2.75 0 0 1 0 5.500H4" className="glyph-line" />
);

export const SUBSCRIPTION_STATUS: Record<SubscriptionStatus, Look> = {
  active: { word: 'Active', tone: 'green', glyph: dot },
  on_trial: { word: 'On trial', tone: 'blue', glyph: half },
  past_due: { word: 'Past due', tone: 'amber', glyph: triangle },
  unpaid: { word: 'Unpaid', tone: 'red', glyph: square },
  paused: { word: 'Paused', tone: 'purple', glyph: bars },
  pending: { word: 'Pending', tone: 'gray', glyph: ring },
  cancelled: { word: 'Cancelled', tone: 'gray', glyph: dash },
  expired: { word: 'Expired', tone: 'gray', glyph: cross },
};

export const PAYMENT_STATUS: Record<PaymentStatus, Look> = {
  completed: { word: 'Completed', tone: 'green', glyph: check },
  pending: { word: 'Pending', tone: 'gray', glyph: ring },
  failed: { word: 'Failed', tone: 'red', glyph: cross },
  partially_refunded: { word: 'Partly refunded', tone: 'purple', glyph: back },
  refunded: { word: 'Refunded', tone: 'purple', glyph: back },
  disputed: { word: 'Disputed', tone: 'amber', glyph: triangle },
  void: { word: 'Void', tone: 'gray', glyph: dash },
};

/** A status as glyph, word and color. */
export function Badge({
  tone,
  glyph,
  children,
}: {
  tone: Tone;
  glyph: ReactNode;
  children: ReactNode;
}) {
  return (
    <span className={`badge tone-${tone}`}>
      <Glyph>{glyph}</Glyph>
      {children}
    </span>
  );
}

export function Glyph({ children }: { children: ReactNode }) {
  return (
    <svg className="glyph" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      {children}
    </svg>
  );
}

/** Glyphs for states other than a status. */
export const GLYPH = { dot, ring, triangle, square, bars, dash, cross, check };

export function Status({
  status,
  suspended = false,
}: {
  status: SubscriptionStatus;
  suspended?: boolean;
}) {
  const { word, tone, glyph } = SUBSCRIPTION_STATUS[status];
  return (
    <span className="status">
      <Badge tone={tone} glyph={glyph}>
        {word}
      </Badge>
      {suspended && (
        <span className="badge tone-red">
          <svg className="glyph" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
            <rect x="2" y="5.5" width="8" height="5.5" rx="1" />
            <path d="M3.8 5.500V4a2.2 2.2 0 0 1 4.4 0v1.5" className="glyph-line" />
          </svg>
          Suspended
        </span>
      )}
    </span>
  );
}

export function PaymentBadge({ status }: { status: PaymentStatus }) {
  const { word, tone, glyph } = PAYMENT_STATUS[status];
  return (
    <Badge tone={tone} glyph={glyph}>
      {word}
    </Badge>
  );
}
