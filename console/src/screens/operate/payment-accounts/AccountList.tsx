import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ScopedButton } from '../../../ui/Button';
import { Empty, Page } from '../../../ui/Page';
import { Table, type Column } from '../../../ui/Table';
import { Time } from '../../../ui/values';
import { ConnectAccount } from './ConnectAccount';
import { Notifications } from './Notifications';
import { accountsQuery, type Account } from './queries';
import { accountName, AccountState } from './words';

const columns: Column<Account>[] = [
  {
    header: 'Account',
    placeholder: 180,
    cell: (account) => (
      <>
        <Link to="/payment-accounts" search={{ account: account.id }} className="row-link" data-row>
          {accountName(account)}
        </Link>
        {account.external_account_id && (
          <div className="muted small">
            <code>{account.external_account_id}</code>
          </div>
        )}
      </>
    ),
  },
  { header: 'State', cell: (account) => <AccountState account={account} /> },
  { header: 'Mode', cell: ({ mode }) => mode },
  {
    header: 'Last notification',
    align: 'end',
    cell: ({ last_heard_at: at }) => (at ? <Time at={at} /> : <span className="muted">none</span>),
  },
  {
    header: 'Last compared',
    align: 'end',
    minor: true,
    cell: ({ last_reconciled_at: at }) =>
      at ? <Time at={at} /> : <span className="muted">never</span>,
  },
];

/** The accounts with payment providers, and what the providers sent. */
export function AccountList() {
  const [isConnecting, setConnecting] = useState(false);
  const list = useQuery(accountsQuery);
  return (
    <Page
      title="Payment accounts"
      subtitle="Where subscribers pay. A provider’s notification is a hint to fetch what has changed."
      actions={
        <ScopedButton scope="payment_accounts:write" onClick={() => setConnecting(true)}>
          Connect account
        </ScopedButton>
      }
    >
      <Table
        label="Payment accounts"
        columns={columns}
        rows={list.data?.data}
        rowKey={({ id }) => id}
        error={list.error}
        retry={() => void list.refetch()}
        expected={2}
        empty={
          <Empty title="No payment account yet">
            Connect Stripe or Lemon Squeezy, and payments and subscriptions follow the provider.
            Without one, payments are recorded with <code>POST /subscription-payments</code>.
          </Empty>
        }
      />
      {list.data && list.data.data.length > 0 && <Notifications accounts={list.data.data} />}
      {isConnecting && <ConnectAccount onClose={() => setConnecting(false)} />}
    </Page>
  );
}
