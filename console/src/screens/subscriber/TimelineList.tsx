import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schema } from '../../api/client';
import { Button } from '../../ui/Button';
import { Sentence } from '../../ui/Sentence';
import { Time } from '../../ui/values';

const ENTRIES = 12;

/** Returns what made a change, in words. */
export function actorOf(entry: Schema<'TimelineEntry'>): string {
  const { type, id } = entry.actor;
  switch (type) {
    case 'system':
      return 'by the service';
    case 'client':
      return `by API key ${entry.client_name ?? id ?? ''}`;
    case 'user':
      return `by the subscriber${entry.client_name ? ` through ${entry.client_name}` : ''}`;
    case 'staff':
      return `by staff member ${entry.client_name ?? id ?? ''}`;
    case 'operator':
      return `by operator ${id ?? ''}`;
    case 'payment_account':
      return 'by the payment provider';
    default:
      return `by ${type} ${id ?? ''}`;
  }
}

/** The latest events of a subscriber, newest first, each with its actor and request. */
export function TimelineList({ timeline }: { timeline: Schema<'Timeline'> }) {
  const [showAll, setShowAll] = useState(false);
  const { entries } = timeline;
  return (
    <>
      <ol className="card timeline">
        {entries.slice(0, showAll ? entries.length : ENTRIES).map((entry) => (
          <li key={`${entry.at} ${entry.type} ${entry.subject_id} ${entry.sentence}`}>
            <Time at={entry.at} format="moment" />
            <div className="break">
              <Sentence text={entry.sentence} />
              <div className="muted small">
                {actorOf(entry)}
                {entry.request_id && (
                  <>
                    {' · request '}
                    <code>{entry.request_id}</code>
                  </>
                )}
                {' · '}
                <Link to="/events" search={{ subject_id: entry.subject_id }}>
                  {entry.type}
                </Link>
              </div>
            </div>
          </li>
        ))}
      </ol>
      {!showAll && entries.length > ENTRIES && (
        <Button onClick={() => setShowAll(true)}>Show all {entries.length} events</Button>
      )}
    </>
  );
}
