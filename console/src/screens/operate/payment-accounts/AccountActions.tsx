import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useCli } from '../../../actions/useCli';
import { ActionDialog } from '../../../ui/ActionDialog';
import { ScopedButton } from '../../../ui/Button';
import { Field } from '../../../ui/Field';
import type { Account } from './queries';
import { accountName } from './words';

type Props = { account: Account; onClose: () => void };

const DIALOGS = { change: ChangeAccount, remove: RemoveAccount };

/** What staff can do with an account. Secrets are set with the CLI. */
export function AccountActions({ account }: { account: Account }) {
  const [open, setOpen] = useState<keyof typeof DIALOGS | null>(null);
  const Dialog = open && DIALOGS[open];
  return (
    <>
      <ScopedButton scope="payment_accounts:write" onClick={() => setOpen('change')}>
        Change
      </ScopedButton>
      <ScopedButton scope="payment_accounts:write" onClick={() => setOpen('remove')}>
        Remove
      </ScopedButton>
      {Dialog && <Dialog account={account} onClose={() => setOpen(null)} />}
    </>
  );
}

function ChangeAccount({ account, onClose }: Props) {
  const cliLine = useCli();
  const [description, setDescription] = useState(account.description ?? '');
  const [createsUsers, setCreatesUsers] = useState(account.creates_users);
  const changes = {
    description: description !== (account.description ?? ''),
    users: createsUsers !== account.creates_users,
  };
  return (
    <ActionDialog
      title="Change account"
      action="Save changes"
      reason={changes.description || changes.users ? null : 'Nothing is changed.'}
      request={{
        method: 'PUT',
        path: `/payment-accounts/${account.id}`,
        body: {
          ...(changes.description && { description: description || null }),
          ...(changes.users && { creates_users: createsUsers }),
        },
      }}
      cli={cliLine(
        'payment-account',
        'update',
        account.id,
        ...(changes.description ? ['--description', description] : []),
        ...(changes.users ? ['--creates-users', String(createsUsers)] : []),
      )}
      onClose={onClose}
    >
      <Field
        label="Description"
        value={description}
        maxLength={200}
        onChange={(event) => setDescription(event.target.value)}
      />
      <label className="check-field">
        <input
          type="checkbox"
          checked={createsUsers}
          onChange={(event) => setCreatesUsers(event.target.checked)}
        />
        Create a user for a customer whom no user matches
      </label>
      <p className="muted small">
        The API key and the secret change with <code>perennial payment-account update</code> and{' '}
        <code>rotate</code>.
      </p>
    </ActionDialog>
  );
}

function RemoveAccount({ account, onClose }: Props) {
  const cliLine = useCli();
  const navigate = useNavigate();
  return (
    <ActionDialog
      title="Remove the account"
      action="Remove account"
      look="danger"
      request={{ method: 'DELETE', path: `/payment-accounts/${account.id}` }}
      cli={cliLine('payment-account', 'remove', account.id)}
      onDone={() => void navigate({ to: '/payment-accounts', search: {} })}
      onClose={onClose}
    >
      <p className="break">
        Erases the API key and secrets of {accountName(account)}. Its notifications are refused, and
        its subscriptions no longer follow the provider. The webhook at the provider stays.
      </p>
    </ActionDialog>
  );
}
