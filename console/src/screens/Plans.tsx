import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schema } from '../api/client';
import { countsQuery, plansQuery } from '../api/records';
import { count } from '../lib/money';
import { Empty, Page } from '../ui/Page';
import { Badge, GLYPH } from '../ui/Status';
import { Table, type Column } from '../ui/Table';
import { Money } from '../ui/values';

type Plan = Schema<'Plan'>;

/** Statuses of subscriptions that are not over. */
const LIVE = new Set([
  'pending',
  'on_trial',
  'active',
  'paused',
  'past_due',
  'unpaid',
  'cancelled',
]);

export default function Plans() {
  const plans = useQuery(plansQuery);
  const counts = useQuery(countsQuery);
  const liveOf = (plan: Plan) => {
    const own = counts.data?.by_plan.filter(
      (entry) => entry.subscription_plan_id === plan.id && LIVE.has(entry.status),
    );
    if (!own) return '…';
    const sum = own.reduce((total, entry) => total + entry.count, 0);
    return `${count(sum)}${own.some(({ at_least }) => at_least) ? '+' : ''}`;
  };

  const columns: Column<Plan>[] = [
    {
      header: 'Plan',
      placeholder: 120,
      cell: (plan) => (
        <>
          <Link to="/subscriptions" search={{ plan: plan.slug }} className="row-link" data-row>
            {plan.name}
          </Link>
          <div className="muted small">
            <code>{plan.slug}</code>
            {plan.description && ` · ${plan.description}`}
          </div>
        </>
      ),
    },
    {
      header: 'State',
      cell: (plan) =>
        plan.is_active ? (
          <Badge tone="green" glyph={GLYPH.dot}>
            On sale
          </Badge>
        ) : (
          <Badge tone="gray" glyph={GLYPH.dash}>
            Closed
          </Badge>
        ),
    },
    {
      header: 'Features',
      minor: true,
      cell: (plan) => plan.feature_list.join(', ') || <span className="muted">–</span>,
    },
    {
      header: 'Trial',
      align: 'end',
      cell: (plan) =>
        plan.trial_days > 0 ? `${plan.trial_days} days` : <span className="muted">–</span>,
    },
    {
      header: 'Live subscriptions',
      align: 'end',
      cell: (plan) => (
        <Link to="/subscriptions" search={{ plan: plan.slug }} className="number-link">
          {liveOf(plan)}
        </Link>
      ),
    },
    {
      header: 'Price',
      align: 'end',
      cell: (plan) => (
        <>
          <Money value={plan.price} currency={plan.currency} />
          <div className="muted small">{plan.billing_cycle}</div>
        </>
      ),
    },
  ];

  return (
    <Page
      title="Plans"
      subtitle="What you sell. A changed price applies to new subscriptions only."
    >
      <Table
        label="Plans"
        columns={columns}
        rows={plans.data?.data}
        rowKey={({ id }) => id}
        error={plans.error}
        retry={() => void plans.refetch()}
        expected={3}
        empty={
          <Empty title="No plan yet">
            Create one with <code>POST /subscription-plans</code>: a name, a price, a currency and a
            billing cycle.
          </Empty>
        }
      />
    </Page>
  );
}
