import { queryOptions } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, body, type Schema } from '../api/client';
import { words } from '../lib/words';
import { Status } from '../ui/Status';
import { Money, Time } from '../ui/values';
import './actions.css';

type Subscription = Schema<'Subscription'>;
type Preview = Schema<'SubscriptionPreview'>;

/** What an update would do. Read once for each dialog, as the update itself makes it outdated. */
export const previewQuery = (id: string, payload: Schema<'UpdateSubscription'>) =>
  queryOptions({
    queryKey: ['subscriptions', id, 'preview', payload],
    queryFn: () =>
      body(api.POST('/subscriptions/{id}/preview', { params: { path: { id } }, body: payload })),
    staleTime: 'static',
    gcTime: 0,
    retry: false,
  });

const time = (at: string | null) => (at ? <Time at={at} format="moment" /> : 'none');

const price = ({ price: value, currency, billing_cycle, quantity }: Subscription) => (
  <>
    <Money value={value} currency={currency} /> {billing_cycle}
    {quantity > 1 && ` × ${quantity}`}
  </>
);

/** The fields that an update can change: each with the value to compare and how it is shown. */
const FIELDS: [
  string,
  (subscription: Subscription) => unknown,
  (value: Subscription) => ReactNode,
][] = [
  [
    'Status',
    ({ status, suspended }) => `${status} ${suspended}`,
    ({ status, suspended }) => <Status status={status} suspended={suspended} />,
  ],
  ['Access', ({ is_active }) => is_active, ({ is_active }) => (is_active ? 'yes' : 'no')],
  [
    'Plan',
    ({ subscription_plan_slug }) => subscription_plan_slug,
    ({ subscription_plan_slug }) => subscription_plan_slug,
  ],
  ['Price', (after) => [after.price, after.billing_cycle, after.quantity].join(' '), price],
  ['Renews', ({ renews_at }) => renews_at, ({ renews_at }) => time(renews_at)],
  ['Ends', ({ ends_at }) => ends_at, ({ ends_at }) => time(ends_at)],
  ['Paid until', ({ paid_until }) => paid_until, ({ paid_until }) => time(paid_until)],
  [
    'Credit',
    ({ credit }) => credit,
    ({ credit, currency }) => <Money value={credit} currency={currency} />,
  ],
];

/** What an update would change and charge, as the preview says. */
export function Outcome({ before, preview }: { before: Subscription; preview: Preview }) {
  const after = preview.subscription;
  const changed = FIELDS.filter(([, value]) => value(before) !== value(after));
  return (
    <div className="outcome">
      {changed.length === 0 && <p className="muted">This changes nothing.</p>}
      <dl>
        {changed.map(([label, , show]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>
              <span className="outcome-before">{show(before)}</span>
              <span aria-hidden="true"> → </span>
              <span className="hidden-text"> becomes </span>
              <span className="strong">{show(after)}</span>
            </dd>
          </div>
        ))}
        {preview.ledger.map((entry) => (
          <div key={entry.at}>
            <dt>{words(entry.type)}</dt>
            <dd>
              <Money value={entry.amount} currency={entry.currency} sign />
              {entry.period_starts_at && (
                <span className="muted">
                  {' for '}
                  <Time at={entry.period_starts_at} format="day" />
                  {' – '}
                  {entry.period_ends_at ? (
                    <Time at={entry.period_ends_at} format="day" />
                  ) : (
                    'forever'
                  )}
                </span>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
