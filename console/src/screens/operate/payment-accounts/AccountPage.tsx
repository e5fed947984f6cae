import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useCli } from '../../../actions/useCli';
import { ButtonLink } from '../../../ui/Button';
import { CopyText } from '../../../ui/Commands';
import { Card, Failure, Page, Section, Skeleton } from '../../../ui/Page';
import { Id, Time } from '../../../ui/values';
import { AccountActions } from './AccountActions';
import { Notifications } from './Notifications';
import './payment-accounts.css';
import { accountQuery } from './queries';
import { accountName, AccountState, CheckBadge, checksOf } from './words';

/** An account with a payment provider: its checks and notifications. */
export function AccountPage({ id }: { id: string }) {
  const cliLine = useCli();
  const { data: account, error, refetch } = useQuery(accountQuery(id));
  if (error) {
    return (
      <Page title="Payment account">
        <Failure error={error} retry={() => void refetch()} />
        <ButtonLink to="/payment-accounts" search={{}}>
          All accounts
        </ButtonLink>
      </Page>
    );
  }
  return (
    <Page
      title={account ? accountName(account) : 'Payment account'}
      subtitle={
        account ? (
          <>
            <AccountState account={account} />
            <Id id={id} />
            <span>{account.mode} mode</span>
          </>
        ) : (
          <Skeleton height={20} width={260} />
        )
      }
      actions={account && <AccountActions account={account} />}
    >
      <Section
        title="Checks"
        aside={
          <Link to="/events" search={{ subject_id: id }}>
            Who changed it
          </Link>
        }
      >
        <Card className="card-padded">
          {account ? (
            <ul className="account-checks">
              {checksOf(account).map(({ is, text }) => (
                <li key={text}>
                  <CheckBadge is={is} />
                  <span>{text}</span>
                </li>
              ))}
              {account.last_reconciled_at && (
                <li>
                  <CheckBadge is="ok" />
                  <span>
                    All records were compared with the provider’s{' '}
                    <Time at={account.last_reconciled_at} />.
                  </span>
                </li>
              )}
            </ul>
          ) : (
            <Skeleton height={96} />
          )}
          <p className="muted">
            A command asks the provider whether its API key and webhook are right:
          </p>
          <CopyText label="command" text={cliLine('payment-account', 'check', id)} />
        </Card>
      </Section>
      {account && <Notifications accounts={[account]} />}
    </Page>
  );
}
