import { api, body, type Schema } from './client';

type User = Schema<'User'>;
type UserPage = { data: User[]; next_cursor: string | null };

const ID =
  /^(?:(usr|sub|pay|plan|whe|pac)_)?([0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Returns the prefix of an id, '' for a UUID without one, or null if the text is no id. */
export function idPrefix(text: string): string | null {
  const match = ID.exec(text);
  return match ? (match[1]?.toLowerCase() ?? '') : null;
}

/** Returns a record, or null if there is none. Other errors pass. */
async function optional<Data>(request: Promise<Data>): Promise<Data | null> {
  try {
    return await request;
  } catch (error) {
    const status = (error as { status?: number }).status;
    if (status === 404 || status === 403) return null;
    throw error;
  }
}

/** Finds users by id, your id, or the start of the email address. */
export async function findUsers(text: string, limit: number, cursor?: string): Promise<UserPage> {
  const query = text.trim();
  const prefix = idPrefix(query);
  if (prefix === 'usr' || prefix === '') {
    const user = await optional(body(api.GET('/users/{id}', { params: { path: { id: query } } })));
    return { data: user ? [user] : [], next_cursor: null };
  }
  const byExternalId = cursor
    ? null
    : body(api.GET('/users', { params: { query: { external_user_id: query, limit: 1 } } }));
  const byEmail = /\s/.test(query)
    ? null
    : body(api.GET('/users', { params: { query: { email_prefix: query, limit, cursor } } }));
  const [external, email] = await Promise.all([byExternalId, byEmail]);
  const found = [...(external?.data ?? []), ...(email?.data ?? [])];
  return {
    data: [...new Map(found.map((user) => [user.id, user])).values()],
    next_cursor: email?.next_cursor ?? null,
  };
}

export type Found = { key: string; title: string; detail: string; to: string; hash?: string };

const subscriptionResult = (subscription: Schema<'Subscription'>): Found => ({
  key: subscription.id,
  title: subscription.external_subscription_id ?? subscription.id,
  detail: `Subscription · ${subscription.subscription_plan_slug} · ${subscription.status}`,
  to: `/subscribers/${subscription.user_id}`,
  hash: subscription.id,
});

const userResult = (user: User): Found => ({
  key: user.id,
  title: user.email ?? user.external_user_id ?? user.id,
  detail:
    user.email && user.external_user_id ? `Subscriber · ${user.external_user_id}` : 'Subscriber',
  to: `/subscribers/${user.id}`,
});

async function paymentResults(payments: Schema<'Payment'>[]): Promise<Found[]> {
  return Promise.all(
    payments.map(async (payment) => {
      const id = payment.subscription_id;
      const subscription = await body(api.GET('/subscriptions/{id}', { params: { path: { id } } }));
      return {
        key: payment.id,
        title: payment.external_payment_id ?? payment.id,
        detail: `Payment · ${payment.amount} ${payment.currency} · ${payment.status}`,
        to: `/subscribers/${subscription.user_id}`,
        hash: 'payments',
      };
    }),
  );
}

/** Finds records by any id, or users by the start of the email address. */
export async function findAnything(text: string): Promise<Found[]> {
  const query = text.trim();
  const prefix = idPrefix(query);
  const isOf = (kind: string) => prefix === kind || prefix === '';
  const none = Promise.resolve(null);
  if (prefix === 'whe') {
    return [
      { key: query, title: query, detail: 'Webhook endpoint', to: `/webhooks?endpoint=${query}` },
    ];
  }
  if (prefix === 'pac') {
    const to = `/payment-accounts?account=${query}`;
    return [{ key: query, title: query, detail: 'Payment account', to }];
  }
  if (prefix !== null) {
    const path = { id: query };
    const [users, subscription, payment] = await Promise.all([
      isOf('usr') ? findUsers(query, 1) : none,
      isOf('sub') ? optional(body(api.GET('/subscriptions/{id}', { params: { path } }))) : none,
      isOf('pay')
        ? optional(
            body(
              api.GET('/subscription-payments/{payment_id}', {
                params: { path: { payment_id: query } },
              }),
            ),
          )
        : none,
    ]);
    return [
      ...(users?.data ?? []).map(userResult),
      ...(subscription ? [subscriptionResult(subscription)] : []),
      ...(payment ? await paymentResults([payment]) : []),
    ];
  }
  const [users, subscriptions, payments] = await Promise.all([
    findUsers(query, 6),
    optional(
      body(
        api.GET('/subscriptions', {
          params: { query: { external_subscription_id: query, limit: 3 } },
        }),
      ),
    ),
    optional(
      body(api.GET('/payments', { params: { query: { external_payment_id: query, limit: 3 } } })),
    ),
  ]);
  return [
    ...users.data.map(userResult),
    ...(subscriptions?.data ?? []).map(subscriptionResult),
    ...(await paymentResults(payments?.data ?? [])),
  ];
}
