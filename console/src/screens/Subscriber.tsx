import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { SubscriberActions } from '../actions/SubscriberActions';
import type { Schema } from '../api/client';
import { problemOf } from '../api/problem';
import { useCan } from '../api/session';
import {
  entitlementsQuery,
  identitiesQuery,
  sessionsQuery,
  timelineQuery,
  userPaymentsQuery,
  userQuery,
  userSubscriptionsQuery,
} from '../api/users';
import { accessEnd } from '../lib/access';
import { pluralize } from '../lib/money';
import { PaymentTable } from '../records/PaymentTable';
import { Button } from '../ui/Button';
import { Card, Empty, Failure, Page, Section, Skeleton } from '../ui/Page';
import { Id, Time } from '../ui/values';
import { SignIns } from './subscriber/SignIns';
import { SubscriptionCard } from './subscriber/SubscriptionCard';
import { TimelineList } from './subscriber/TimelineList';
import './subscriber/subscriber.css';

const route = getRouteApi('/subscribers/$id');
const CARDS = 3;

export default function Subscriber() {
  const { id } = route.useParams();
  const user = useQuery(userQuery(id));
  const timeline = useQuery(timelineQuery(id));
  const subscriptions = useQuery(userSubscriptionsQuery(id));
  const seesPayments = useCan('payments:read');
  const payments = useQuery({ ...userPaymentsQuery(id), enabled: seesPayments });
  const aside = [
    user,
    useQuery(entitlementsQuery(id)),
    useQuery(identitiesQuery(id)),
    useQuery(sessionsQuery(id)),
  ];
  // Parts of different height that appear one after the other would move what is below them.
  const isLoading =
    timeline.isPending || subscriptions.isPending || (seesPayments && payments.isPending);
  const isAsideLoading = aside.some(({ isPending }) => isPending);
  const [showAll, setShowAll] = useState(false);
  const erased = timeline.data?.erased_at;
  const title =
    user.data?.email ?? user.data?.external_user_id ?? (erased ? 'Erased subscriber' : id);

  if (user.error && !(problemOf(user.error)?.status === 404 && timeline.data)) {
    return (
      <Page title="Subscriber">
        <Failure error={user.error} retry={() => void user.refetch()} />
      </Page>
    );
  }

  const cards = timeline.data?.subscriptions ?? [];
  const shown = showAll ? cards : cards.slice(0, CARDS);
  return (
    <Page
      title={title}
      heading={user.data || erased ? title : <Skeleton height={28} width={240} />}
      subtitle={
        <>
          <Id id={id} />
          {user.data?.external_user_id && user.data.email && (
            <span className="break">{user.data.external_user_id}</span>
          )}
          {user.data && (
            <span>
              since <Time at={user.data.created_at} format="day" />
            </span>
          )}
          {erased && (
            <span>
              erased <Time at={erased} />
            </span>
          )}
        </>
      }
      actions={user.data && <SubscriberActions user={user.data} />}
    >
      <div className="subscriber-columns">
        <div className="subscriber-main">
          {isLoading ? (
            <Section title="Subscription">
              <Card className="subscriber-loading">{null}</Card>
            </Section>
          ) : (
            <>
              <Section title={cards.length > 1 ? 'Subscriptions' : 'Subscription'}>
                <div className="subscription-list">
                  {timeline.error && (
                    <Failure error={timeline.error} retry={() => void timeline.refetch()} />
                  )}
                  {timeline.data && cards.length === 0 && (
                    <Card>
                      <Empty title="No subscription">
                        A subscription appears here once one is created for this user with{' '}
                        <code>POST /subscriptions</code> or bought at a payment provider.
                      </Empty>
                    </Card>
                  )}
                  {shown.map((card) => (
                    <SubscriptionCard
                      key={card.id}
                      timeline={card}
                      subscription={subscriptions.data?.data.find((entry) => entry.id === card.id)}
                    />
                  ))}
                  {cards.length > shown.length && (
                    <Button onClick={() => setShowAll(true)}>
                      Show {pluralize(cards.length - shown.length, 'more subscription')}
                    </Button>
                  )}
                </div>
              </Section>
              {seesPayments && (
                <Section title="Payments" id="payments">
                  <PaymentTable
                    rows={payments.data?.data}
                    error={payments.error}
                    retry={() => void payments.refetch()}
                    empty={<Empty title="No payment yet" />}
                  />
                </Section>
              )}
              <Section title="Timeline" id="timeline">
                {timeline.data &&
                  (timeline.data.entries.length > 0 ? (
                    <TimelineList timeline={timeline.data} />
                  ) : (
                    <Card>
                      <Empty title="No event">Events of the last months appear here.</Empty>
                    </Card>
                  ))}
                {timeline.data?.has_more && (
                  <p className="muted small">Earlier events are on the Events screen.</p>
                )}
              </Section>
            </>
          )}
        </div>
        <aside className="subscriber-aside">
          {isAsideLoading ? (
            <Section title="Access">
              <Card className="subscriber-loading">{null}</Card>
            </Section>
          ) : (
            <>
              <Access id={id} timeline={timeline.data} />
              {user.data && <SignIns id={id} />}
              {user.data && <Metadata metadata={user.data.metadata} />}
            </>
          )}
        </aside>
      </div>
    </Page>
  );
}

/** What the subscriber may do now. */
function Access({ id, timeline }: { id: string; timeline: Schema<'Timeline'> | undefined }) {
  const { data, error, refetch } = useQuery(entitlementsQuery(id));
  return (
    <Section title="Access">
      {error && <Failure error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton height={160} />}
      {data && <AccessFacts entitlements={data} timeline={timeline} />}
    </Section>
  );
}

type AccessProps = {
  entitlements: Schema<'Entitlements'>;
  timeline: Schema<'Timeline'> | undefined;
};

function AccessFacts({ entitlements, timeline }: AccessProps) {
  const { active, tier, node_quota, features, subscriptions } = entitlements;
  const end = accessEnd(
    subscriptions,
    (id) => timeline?.subscriptions.find((entry) => entry.id === id)?.next ?? [],
  );
  if (!active) {
    return (
      <Card>
        <Empty title="No access">No subscription gives access now.</Empty>
      </Card>
    );
  }
  return (
    <Card>
      <dl className="facts">
        <div>
          <dt>Until</dt>
          <dd>
            {end.at ? <Time at={end.at} format="day" /> : timeline ? 'no end' : '…'}
            {end.isPayable && ' unless it is paid'}
          </dd>
        </div>
        <div>
          <dt>Tier</dt>
          <dd>{tier}</dd>
        </div>
        <div>
          <dt>Node quota</dt>
          <dd>{node_quota < 0 ? 'unlimited' : node_quota}</dd>
        </div>
        <div>
          <dt>Features</dt>
          <dd>
            {features.length > 0
              ? features.map((feature) => (
                  <span key={feature} className="feature">
                    {feature}
                  </span>
                ))
              : 'none'}
          </dd>
        </div>
      </dl>
    </Card>
  );
}

function Metadata({ metadata }: { metadata: Record<string, string> }) {
  const entries = Object.entries(metadata);
  if (entries.length === 0) return null;
  return (
    <Section title="Metadata">
      <Card>
        <dl className="facts">
          {entries.map(([key, value]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </Card>
    </Section>
  );
}
