import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import type { Schema } from '../api/client';
import { send } from '../lib/commands';
import { ScopedButton } from '../ui/Button';
import { offersOf, undoOf, type SubscriptionAction } from './offers';
import { useDone } from './useDone';
import './actions.css';

const SubscriptionDialog = lazy(() => import('./SubscriptionDialog'));

type Props = { subscription: Schema<'Subscription'>; fixes: Schema<'TimelineFix'>[] };

/** What staff can do with a subscription. The first fix is the primary action. */
export function SubscriptionActions({ subscription, fixes }: Props) {
  const [opened, setOpened] = useState<{ action: SubscriptionAction; amount?: string } | null>(
    null,
  );
  const [hasCancelled, setCancelled] = useState(false);
  const { notice, say } = useDone();
  const client = useQueryClient();
  const undo = useMutation({
    mutationFn: () =>
      send({ method: 'PUT', path: `/subscriptions/${subscription.id}`, body: undoOf(fixes) }),
    onSuccess: async () => {
      await client.invalidateQueries();
      setCancelled(false);
      say('Cancellation undone.');
    },
    // Its dialog shows why.
    onError: () => setOpened({ action: 'undo_cancellation' }),
  });
  return (
    <div className="actions">
      {offersOf(subscription).map(({ action, label, scope, reason }) => (
        <ScopedButton
          key={action}
          scope={scope}
          reason={reason}
          look={fixes[0]?.action === action ? 'primary' : 'plain'}
          onClick={() => setOpened({ action })}
        >
          {label}
        </ScopedButton>
      ))}
      {notice}
      {hasCancelled && subscription.status === 'cancelled' && (
        <ScopedButton
          scope="subscriptions:write"
          look="quiet"
          reason={undo.isPending ? 'It is being undone.' : null}
          onClick={() => undo.mutate()}
        >
          Undo
        </ScopedButton>
      )}
      <Suspense>
        {opened && (
          <SubscriptionDialog
            key={opened.action}
            action={opened.action}
            amount={opened.amount}
            subscription={subscription}
            fixes={fixes}
            onPay={(amount) => setOpened({ action: 'record_payment', amount })}
            onDone={(text) => {
              setCancelled(opened.action === 'cancel');
              say(text);
            }}
            onClose={() => setOpened(null)}
          />
        )}
      </Suspense>
    </div>
  );
}
