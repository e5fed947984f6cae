import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { DemoDataButton } from '../actions/DemoDataButton';
import {
  accessLossQuery,
  countsQuery,
  endOfSoon,
  SOON,
  trialsEndingQuery,
  webhookEndpointsQuery,
} from '../api/records';
import { currenciesOf, overviewChurnQuery, overviewRevenueQuery } from '../api/reports';
import { useCan, useSession } from '../api/session';
import { useNow } from '../lib/clock';
import { count, percent, pluralize } from '../lib/money';
import { DAY, month } from '../lib/time';
import { changesOf } from '../reports/changes';
import { CurrencyChoice } from '../reports/CurrencyChoice';
import { ChartPlaceholder, MovementChart, MrrChart } from '../reports/RevenueCharts';
import { Definitions } from '../ui/Definitions';
import { Later } from '../ui/Later';
import { Failure, Page, Section, Skeleton } from '../ui/Page';
import { Badge, GLYPH, Status, type SubscriptionStatus } from '../ui/Status';
import { Tile, Tiles } from '../ui/Tile';
import { Money, Time } from '../ui/values';

const route = getRouteApi('/');

export default function Overview() {
  const seesSums = useCan('reports:read');
  return seesSums ? <Business /> : <Operations />;
}

/** The overview of a role without sums. */
function Operations() {
  return (
    <Page
      title="Overview"
      subtitle="Sums need the scope reports:read of the roles finance and admin."
    >
      <Attention />
    </Page>
  );
}

function Business() {
  const now = useNow();
  const { currency: chosen } = route.useSearch();
  const revenue = useQuery(overviewRevenueQuery(now));
  const churn = useQuery(overviewChurnQuery(now));
  const currencies = currenciesOf(revenue.data);
  const currency = chosen ?? currencies[0];
  const figures = revenue.data?.currencies.find((entry) => entry.currency === currency);
  const current = figures?.intervals.at(-1);
  const lost = churn.data?.currencies.find((entry) => entry.currency === currency);
  const [before, present] = [lost?.intervals.at(-2), lost?.intervals.at(-1)];
  const search = { currency };

  const subtitle = revenue.data ? (
    <>
      <span>
        As of <Time at={revenue.data.as_of} format="clock" />
      </span>
      <Definitions definitions={{ ...revenue.data.definitions, ...churn.data?.definitions }} />
    </>
  ) : (
    <Skeleton height={16} width={180} />
  );

  if (revenue.error) {
    return (
      <Page title="Overview">
        <Failure error={revenue.error} retry={() => void revenue.refetch()} />
        <Attention />
      </Page>
    );
  }

  const change = current ? Number(current.closing.mrr) - Number(current.opening.mrr) : 0;
  const users = current ? current.closing.users - current.opening.users : 0;
  const changes = (kind: string) => current?.movements[kind]?.changes ?? 0;
  const isEmpty = revenue.data && !figures;

  return (
    <Page
      title="Overview"
      subtitle={subtitle}
      actions={<CurrencyChoice currencies={currencies} value={currency} />}
    >
      {isEmpty ? (
        <FirstSteps />
      ) : (
        <Tiles>
          <Tile
            to="/revenue"
            search={search}
            label="MRR"
            value={figures && <Money value={figures.closing.mrr} currency={currency} />}
            detail={
              figures && (
                <>
                  Committed <Money value={figures.closing.committed_mrr} currency={currency} />
                </>
              )
            }
          />
          <Tile
            {...(current ? changesOf(undefined, current, search) : { to: '/revenue/changes' })}
            label="Net new MRR this month"
            value={
              current && (
                <span className={change < 0 ? 'down' : change > 0 ? 'up' : ''}>
                  <Money value={change.toFixed(4).replace(/00$/, '')} currency={currency} sign />
                </span>
              )
            }
            detail={`${count(changes('new'))} new · ${count(changes('expansion'))} upgraded · ${count(changes('churned'))} lost`}
          />
          <Tile
            to="/subscriptions"
            search={{ status: 'active,past_due,cancelled', access: 'true' }}
            label="Paying subscribers"
            value={figures && count(figures.closing.users)}
            detail={`${users < 0 ? '−' : '+'}${count(Math.abs(users))} this month`}
          />
          <Tile
            {...(present ? changesOf('churned', present, search) : { to: '/revenue/changes' })}
            label="Churn this month"
            value={lost && percent(present?.user_churn_rate)}
            detail={
              present && (
                <>
                  {count(present.churned_users)} of {count(present.opening_users)}
                  {before &&
                    ` · ${percent(before.user_churn_rate)} in ${month(before.from).split(' ')[0]}`}
                </>
              )
            }
          />
        </Tiles>
      )}
      <Attention includes={figures?.includes} currency={currency} />
      <Section title="MRR">
        {figures ? (
          <Later placeholder={<ChartPlaceholder />}>
            <MrrChart figures={figures} />
          </Later>
        ) : (
          <ChartPlaceholder />
        )}
      </Section>
      <Section title="MRR movements">
        {figures ? (
          <Later placeholder={<ChartPlaceholder />}>
            <MovementChart figures={figures} />
          </Later>
        ) : (
          <ChartPlaceholder />
        )}
      </Section>
    </Page>
  );
}

type AttentionProps = {
  includes?: Record<string, { mrr: string; subscriptions: number }>;
  currency?: string;
};

/** Subscriptions, trials and webhooks that need attention today. */
function Attention({ includes, currency }: AttentionProps) {
  const now = useNow();
  const counts = useQuery(countsQuery);
  const soon = endOfSoon(now);
  const ending = useQuery(trialsEndingQuery(now));
  const losses = useQuery(accessLossQuery);
  const seesWebhooks = useCan('webhooks:read');
  const webhooks = useQuery({ ...webhookEndpointsQuery, enabled: seesWebhooks });
  const failing = webhooks.data?.data.filter((endpoint) => endpoint.failing_since !== null);
  const total = (status: SubscriptionStatus) => {
    const entry = counts.data?.by_status.find((item) => item.status === status);
    if (!counts.data) return undefined;
    return entry ? `${count(entry.count)}${entry.at_least ? '+' : ''}` : '0';
  };
  const late = includes?.past_due;
  return (
    <Section title="Needs attention">
      {counts.error && <Failure error={counts.error} retry={() => void counts.refetch()} />}
      <Tiles isTall>
        <Tile
          to="/subscriptions"
          search={{ status: 'past_due', sort: 'renews_at' }}
          label={<Status status="past_due" />}
          value={total('past_due')}
          detail={
            <>
              {late && (
                <div>
                  <Money value={late.mrr} currency={currency} /> a month
                </div>
              )}
              <div>{losses.data ? lossText(losses.data, now) : '\u00a0'}</div>
            </>
          }
        />
        <Tile
          to="/subscriptions"
          search={{ status: 'unpaid' }}
          label={<Status status="unpaid" />}
          value={total('unpaid')}
          detail="Without access until they pay"
        />
        <Tile
          to="/subscriptions"
          search={{ status: 'on_trial', renews_before: soon, sort: 'renews_at' }}
          label={<Status status="on_trial" />}
          value={total('on_trial')}
          detail={
            ending.data &&
            `${count(ending.data.data.length)}${ending.data.has_more ? '+' : ''} end within ${SOON} days`
          }
        />
        {seesWebhooks && (
          <Tile
            to="/webhooks"
            label={
              <Badge tone={failing?.length ? 'red' : 'gray'} glyph={GLYPH.cross}>
                Webhooks failing
              </Badge>
            }
            value={failing && count(failing.length)}
            detail={webhooks.data && `of ${pluralize(webhooks.data.data.length, 'endpoint')}`}
          />
        )}
      </Tiles>
    </Section>
  );
}

type Losses = { times: string[]; hasMore: boolean };

/** Returns how many past due subscriptions lose access soon. */
function lossText({ times, hasMore }: Losses, now: number): string {
  const soon = times.filter((at) => Date.parse(at) < now + SOON * DAY).length;
  const verb = soon === 1 && !hasMore ? 'loses' : 'lose';
  return `${count(soon)}${hasMore ? '+' : ''} ${verb} access within ${SOON} days`;
}

function FirstSteps() {
  const { mode } = useSession();
  return (
    <div className="card card-padded">
      <p className="strong">No recurring revenue yet</p>
      <p className="muted">
        MRR appears with the first active subscription to a plan with a price. Create plans and
        subscriptions with the API, or import them.
      </p>
      {mode === 'sandbox' && (
        <p className="first-step">
          <DemoDataButton look="primary" />
        </p>
      )}
    </div>
  );
}
