import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { Button, ButtonLink } from '../../ui/Button';
import { Empty, Failure, Page } from '../../ui/Page';
import { Select } from '../../ui/Select';
import { Badge, GLYPH } from '../../ui/Status';
import { Table, type Column } from '../../ui/Table';
import { Id, Time } from '../../ui/values';
import { Actor } from './events/Actor';
import './events/events.css';
import {
  latestEventsQuery,
  useEventTail,
  type EventFilter,
  type LoggedEvent,
  type Tail,
} from './events/log';
import { EVENT_PATTERNS, summaryOf } from './events/words';

const EventDialog = lazy(() => import('./events/EventDialog'));

const route = getRouteApi('/events');

const columns: Column<LoggedEvent>[] = [
  {
    header: 'Event',
    placeholder: 160,
    cell: (event) => (
      <Link
        to="."
        search={((search: object) => ({ ...search, event: event.id })) as never}
        className="row-link nowrap"
        resetScroll={false}
        data-row
      >
        {event.type}
      </Link>
    ),
  },
  {
    header: 'Change',
    placeholder: 220,
    cell: (event) => <span className="event-change">{summaryOf(event)}</span>,
  },
  { header: 'Record', cell: (event) => <Id id={event.subject_id} /> },
  { header: 'By', cell: (event) => <Actor actor={event.actor} /> },
  {
    header: 'Request',
    minor: true,
    cell: (event) =>
      event.request_id ? <Id id={event.request_id} /> : <span className="muted">–</span>,
  },
  {
    header: 'Recorded',
    align: 'end',
    cell: (event) => <Time at={event.recorded_at} />,
  },
];

export default function Events() {
  const { types, subject_id } = route.useSearch();
  // Another filter starts another list.
  return <EventLog key={`${types} ${subject_id}`} filter={{ types, subject_id }} />;
}

function EventLog({ filter }: { filter: EventFilter }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const [isPaused, setPaused] = useState(false);
  const list = useInfiniteQuery(latestEventsQuery(filter));
  const tail = useEventTail(filter, list.data?.pages[0]?.newer, isPaused);
  const listed = list.data?.pages.flatMap((page) => page.events);
  const events = listed && join(tail.events, listed);
  const isFiltered = Boolean(filter.types ?? filter.subject_id);

  return (
    <Page
      title="Events"
      subtitle="Every change of a record: who made it, when, and what it was before."
      actions={
        <>
          <LiveBadge tail={tail} isPaused={isPaused} isLoading={list.isPending} />
          <Button onClick={() => setPaused(!isPaused)}>{isPaused ? 'Resume' : 'Pause'}</Button>
        </>
      }
    >
      <div className="filters">
        <Select
          label="Type"
          param="types"
          value={filter.types}
          all="All types"
          options={[
            ...EVENT_PATTERNS,
            ...(filter.types && !EVENT_PATTERNS.includes(filter.types) ? [filter.types] : []),
          ].map((pattern) => ({ value: pattern, label: pattern }))}
        />
        <SubjectFilter value={filter.subject_id} />
        {isFiltered && (
          <ButtonLink to="/events" search={{}} look="quiet">
            Clear filters
          </ButtonLink>
        )}
      </div>
      {tail.error !== null && <Failure error={tail.error} retry={() => void list.refetch()} />}
      <Table
        label="Events"
        columns={columns}
        rows={events}
        rowKey={({ id }) => id}
        error={list.error}
        retry={() => void list.refetch()}
        expected={12}
        empty={
          list.hasNextPage ? (
            <Empty title="None of the latest events matches">Show older events to search on.</Empty>
          ) : isFiltered ? (
            <Empty title="No event matches">New events appear here as they happen.</Empty>
          ) : (
            <Empty title="No event yet">
              Create a plan, a user or a subscription, and its event appears here.
            </Empty>
          )
        }
      />
      {list.hasNextPage && (
        <nav className="pager" aria-label="Pages">
          <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show older events
          </Button>
        </nav>
      )}
      <Suspense>
        {search.event && events && (
          <EventDialog
            id={search.event}
            listed={events.find(({ id }) => id === search.event)}
            onClose={() =>
              void navigate({
                to: '.',
                search: ((before: object) => ({ ...before, event: undefined })) as never,
                resetScroll: false,
              })
            }
          />
        )}
      </Suspense>
    </Page>
  );
}

/** Joins the events of the stream with those of the list, which may have some of them after it was read again. */
function join(streamed: LoggedEvent[], listed: LoggedEvent[]): LoggedEvent[] {
  const newest = listed[0]?.position ?? 0;
  const newer = streamed.filter(({ position }) => position > newest);
  return [...newer, ...listed];
}

type LiveBadgeProps = { tail: Tail; isPaused: boolean; isLoading: boolean };

function LiveBadge({ tail, isPaused, isLoading }: LiveBadgeProps) {
  const [tone, glyph, text] = isPaused
    ? (['gray', GLYPH.bars, 'Paused'] as const)
    : tail.isConnected
      ? (['green', GLYPH.dot, 'Live'] as const)
      : (['amber', GLYPH.ring, isLoading ? 'Reading' : 'Connecting'] as const);
  return (
    <span className="live" role="status">
      <Badge tone={tone} glyph={glyph}>
        {text}
      </Badge>
    </span>
  );
}

function SubjectFilter({ value }: { value: string | undefined }) {
  const navigate = useNavigate();
  return (
    <form
      className="subject-filter"
      role="search"
      onSubmit={(submit) => {
        submit.preventDefault();
        const text = String(new FormData(submit.currentTarget).get('subject') ?? '').trim();
        void navigate({
          to: '.',
          search: ((before: object) => ({
            ...before,
            subject_id: text || undefined,
            event: undefined,
          })) as never,
        });
      }}
    >
      <label className="muted" htmlFor="subject">
        Record
      </label>
      <input
        id="subject"
        name="subject"
        className="input"
        defaultValue={value}
        placeholder="sub_…, usr_…, pay_…, plan_…"
        autoComplete="off"
        spellCheck={false}
      />
      <Button type="submit">Filter</Button>
    </form>
  );
}
