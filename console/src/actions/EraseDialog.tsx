import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schema } from '../api/client';
import { useSession } from '../api/session';
import { userSubscriptionsQuery } from '../api/users';
import { cliOf } from '../lib/commands';
import { pluralize } from '../lib/money';
import { ActionDialog } from '../ui/ActionDialog';
import { Field } from '../ui/Field';
import { tenantArgs } from './tenantArgs';

type Props = { user: Schema<'User'>; onClose: () => void };

/** Erases a subscriber, after the email address has been typed. */
export default function EraseDialog({ user, onClose }: Props) {
  const session = useSession();
  const queries = useQueryClient();
  const { data } = useQuery(userSubscriptionsQuery(user.id));
  const [typed, setTyped] = useState('');
  const name = user.email ?? user.external_user_id ?? user.id;
  const noun = user.email ? 'email address' : 'id';
  const live = data?.data.filter(({ status }) => status !== 'expired') ?? [];
  const atProvider = live.filter(({ lifecycle }) => lifecycle === 'provider');
  const request = { method: 'DELETE' as const, path: `/users/${user.id}` };
  return (
    <ActionDialog
      title="Erase the subscriber"
      action="Erase for good"
      look="danger"
      reason={typed === name ? null : `Type the ${noun} first.`}
      request={request}
      cli={cliOf('user', 'erase', user.id, '--yes', ...tenantArgs(session))}
      onDone={() => {
        // The user is no longer found, and the button vanishes; the timeline says when it was erased.
        void queries.resetQueries({ queryKey: ['users', user.id] });
        setTimeout(() => document.getElementById('main')?.focus());
      }}
      movesFocus
      onClose={onClose}
    >
      <p>
        The email address, the external id, the metadata and the identities are erased.{' '}
        {live.length > 0 && `${pluralize(live.length, 'subscription')} and all sessions end now. `}
        {live.length === 0 && 'All sessions end now. '}
        Payments and the history of subscriptions are kept. This cannot be undone.
      </p>
      {atProvider.length > 0 && (
        <p className="strong">
          The payment provider goes on charging {pluralize(atProvider.length, 'subscription')}:
          cancel there first.
        </p>
      )}
      <Field
        label={`Type ${name} to confirm`}
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
    </ActionDialog>
  );
}
