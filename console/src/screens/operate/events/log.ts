import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api, body } from '../../../api/client';
import { ProblemError, problemOf } from '../../../api/problem';
import { readEvents } from '../../../lib/sse';

export type LoggedEvent = {
  id: string;
  type: string;
  occurred_at: string;
  recorded_at: string;
  position: number;
  subject_id: string;
  actor: { type: string; id: string | null };
  request_id: string | null;
  data: Record<string, unknown>;
  previous?: Record<string, unknown>;
};
export type EventFilter = { types?: string; subject_id?: string };

const PAGE_EVENTS = 50;
/** One request reads a limited part of the log, so that a page of a rare type takes several. */
const MAX_REQUESTS = 20;
/** Events of the stream that a screen keeps. */
const MAX_STREAMED_EVENTS = 1000;
const RETRY_INTERVAL = 3000;

export type EventPage = {
  /** Newest first. */
  events: LoggedEvent[];
  /** Where older events follow; undefined at the start of the log. */
  older: string | undefined;
  /** Where new events follow; only on the first page. */
  newer: string | undefined;
};

async function readPage(filter: EventFilter, before: string | undefined, signal: AbortSignal) {
  const newest = { after: 'now', limit: 1 };
  // Read before the page, so that an event between both is in the stream.
  const head = before
    ? undefined
    : await body(api.GET('/events', { params: { query: newest }, signal }));
  const page: EventPage = { events: [], older: before, newer: head?.next_cursor };
  for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
    const limit = PAGE_EVENTS - page.events.length;
    const query = { ...filter, sort: '-position' as const, after: page.older, limit };
    // oxlint-disable-next-line no-await-in-loop -- each request needs the cursor of the one before
    const part = await body(api.GET('/events', { params: { query }, signal }));
    page.events.push(...(part.data as LoggedEvent[]));
    page.older = part.has_more ? part.next_cursor : undefined;
    if (!page.older || page.events.length >= PAGE_EVENTS) break;
  }
  return page;
}

/** The event with an id; null if it is not in the log any more. */
export const eventQuery = (id: string) =>
  queryOptions({
    queryKey: ['events', id],
    queryFn: async ({ signal }) => {
      try {
        const params = { path: { id } };
        return (await body(api.GET('/events/{id}', { params, signal }))) as LoggedEvent;
      } catch (error) {
        if (problemOf(error)?.status === 404) return null;
        throw error;
      }
    },
    staleTime: Infinity,
  });

export const latestEventsQuery = (filter: EventFilter) =>
  infiniteQueryOptions({
    queryKey: ['events', filter],
    queryFn: ({ pageParam, signal }) => readPage(filter, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ older }) => older,
    // The stream adds newer events.
    staleTime: Infinity,
    gcTime: 0,
  });

const pause = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, RETRY_INTERVAL);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

async function openStream(filter: EventFilter, after: string, signal: AbortSignal) {
  const given = Object.entries({ ...filter, after }).filter(([, value]) => value);
  const response = await fetch(`/events?${new URLSearchParams(given as [string, string][])}`, {
    headers: { accept: 'text/event-stream' },
    signal,
  });
  if (!response.ok || !response.body) {
    throw new ProblemError(response.status, await response.json().catch(() => ({})));
  }
  return response.body;
}

/** Returns whether the stream can continue later: the service restarts, or too many streams are open. */
const isTemporary = (error: unknown) =>
  !(error instanceof ProblemError) || error.status >= 500 || error.status === 429;

export type Tail = { events: LoggedEvent[]; isConnected: boolean; error: unknown };

/**
 * Streams the events after a cursor, newest first. `EventSource` would need the name of every type, and
 * hides why a stream was refused. A paused or hidden page has no stream and continues where it stopped.
 */
export function useEventTail(filter: EventFilter, cursor: string | undefined, isPaused: boolean) {
  const [tail, setTail] = useState<Tail>({ events: [], isConnected: false, error: null });
  const isVisible = useVisibility();
  const last = useRef<string>(undefined);
  const { types, subject_id } = filter;

  useEffect(() => {
    if (!cursor || isPaused || !isVisible) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    async function follow(start: string) {
      last.current ??= start;
      while (!signal.aborted) {
        try {
          // oxlint-disable-next-line no-await-in-loop -- a stream follows the one that has ended
          const stream = await openStream({ types, subject_id }, last.current ?? start, signal);
          setTail((before) => ({ ...before, isConnected: true, error: null }));
          // oxlint-disable-next-line no-await-in-loop -- events come one after another
          for await (const { id, data } of readEvents(stream)) {
            if (id) last.current = id;
            if (!data) continue;
            const event = JSON.parse(data) as LoggedEvent;
            setTail(({ events, ...before }) => ({
              ...before,
              events: [event, ...events].slice(0, MAX_STREAMED_EVENTS),
            }));
          }
        } catch (error) {
          if (!signal.aborted && !isTemporary(error)) {
            setTail((before) => ({ ...before, error }));
            break;
          }
        }
        setTail((before) => ({ ...before, isConnected: false }));
        // oxlint-disable-next-line no-await-in-loop -- a stream follows the one that has ended
        await pause(signal);
      }
    }
    void follow(cursor);
    return () => controller.abort();
  }, [cursor, isPaused, isVisible, types, subject_id]);

  return tail;
}

function useVisibility(): boolean {
  const [isVisible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const update = () => setVisible(!document.hidden);
    document.addEventListener('visibilitychange', update);
    return () => document.removeEventListener('visibilitychange', update);
  }, []);
  return isVisible;
}
