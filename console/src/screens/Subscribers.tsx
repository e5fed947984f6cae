import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { api, body, type Schema } from '../api/client';
import { readCsv, readServiceCsv } from '../api/export';
import { findUsers } from '../api/find';
import { CsvButton } from '../ui/CsvButton';
import { ListTable } from '../ui/ListTable';
import { Empty, Page } from '../ui/Page';
import { Status } from '../ui/Status';
import type { Column } from '../ui/Table';
import { Time } from '../ui/values';
import '../ui/select.css';

const route = getRouteApi('/subscribers');
const TYPING_INTERVAL = 200;

type User = Schema<'User'>;

const listQuery = (q: string | undefined, cursor: string | undefined) =>
  queryOptions({
    queryKey: ['users', 'list', q, cursor],
    queryFn: () =>
      q
        ? findUsers(q, 50, cursor)
        : body(
            api.GET('/users', { params: { query: { sort: '-created_at', limit: 50, cursor } } }),
          ),
    placeholderData: keepPreviousData,
  });

/** Reads the users of a search, or all of them, as CSV. A search is several requests, which the service cannot combine. */
const readUsersCsv = (q: string | undefined) =>
  q
    ? readCsv((cursor) => findUsers(q, 200, cursor))
    : readServiceCsv('/users', { sort: '-created_at' });

/** The subscriptions of the users of a page, in one request. */
const statusQuery = (ids: string[]) =>
  queryOptions({
    queryKey: ['subscriptions', 'of', ids],
    queryFn: () =>
      body(
        api.GET('/subscriptions', {
          params: { query: { user_id: ids.join(','), sort: '-created_at', limit: 200 } },
        }),
      ),
    enabled: ids.length > 0,
  });

export default function Subscribers() {
  const { q, cursor } = route.useSearch();
  const list = useQuery(listQuery(q, cursor));
  const rows = list.data?.data;
  const subscriptions = useQuery(statusQuery(rows?.map(({ id }) => id) ?? []));

  const columns: Column<User>[] = [
    {
      header: 'Subscriber',
      placeholder: 190,
      cell: (user) => (
        <Link to="/subscribers/$id" params={{ id: user.id }} className="row-link" data-row>
          {user.email ?? user.external_user_id ?? user.id}
        </Link>
      ),
    },
    {
      header: 'Subscriptions',
      placeholder: 80,
      cell: (user) => {
        const own = subscriptions.data?.data.filter(({ user_id }) => user_id === user.id) ?? [];
        if (own.length === 0) return <span className="muted">–</span>;
        return (
          <span className="status">
            {own.slice(0, 3).map((entry) => (
              <Status key={entry.id} status={entry.status} suspended={entry.suspended} />
            ))}
            {own.length > 3 && <span className="muted">+{own.length - 3}</span>}
          </span>
        );
      },
    },
    {
      header: 'Your id',
      minor: true,
      cell: (user) => user.external_user_id ?? <span className="muted">–</span>,
    },
    {
      header: 'Since',
      align: 'end',
      cell: (user) => <Time at={user.created_at} format="day" />,
    },
  ];

  return (
    <Page
      title="Subscribers"
      subtitle="Users of your product, with and without a subscription."
      actions={<CsvButton name="subscribers.csv" read={() => readUsersCsv(q)} />}
    >
      <SearchField value={q} />
      <ListTable
        label="Subscribers"
        columns={columns}
        list={list}
        expected={12}
        empty={
          q ? (
            <Empty title="No subscriber found">
              The start of an email address, a whole id, or a whole id of your system finds one.
            </Empty>
          ) : (
            <Empty title="No subscriber yet">
              A user appears with the first sign-in, the first purchase at a payment provider, or{' '}
              <code>POST /users</code>.
            </Empty>
          )
        }
      />
    </Page>
  );
}

/** A field that searches while typing and keeps the text in the URL. */
function SearchField({ value }: { value: string | undefined }) {
  const navigate = useNavigate();
  const [text, setText] = useState(value ?? '');
  useEffect(() => {
    if (text === (value ?? '')) return;
    const timer = setTimeout(
      () => void navigate({ to: '/subscribers', search: { q: text || undefined }, replace: true }),
      TYPING_INTERVAL,
    );
    return () => clearTimeout(timer);
  }, [text, value, navigate]);
  return (
    <input
      type="search"
      className="input search-field"
      aria-label="Find subscribers"
      placeholder="Start of the email address, id, or your id"
      value={text}
      maxLength={254}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => setText(event.target.value)}
    />
  );
}
