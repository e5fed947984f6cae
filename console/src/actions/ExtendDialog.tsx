import { useState } from 'react';
import { useNow } from '../lib/clock';
import { DAY, isoDay } from '../lib/time';
import { Field } from '../ui/Field';
import { Time } from '../ui/values';
import { PreviewedChange, type DialogProps } from './PreviewedChange';

const SUGGESTED_DAYS = 7;

/** Gives time: free time, a later renewal, a later end of a cancelled subscription, or reopens an expired one. */
export function ExtendDialog(props: DialogProps) {
  const { status, renews_at, ends_at, lifecycle } = props.subscription;
  const now = useNow();
  const isExpired = status === 'expired';
  const isManaged = lifecycle === 'managed';
  const field = status === 'cancelled' ? 'ends_at' : isManaged ? 'free_until' : 'renews_at';
  const current = isExpired ? null : field === 'ends_at' ? ends_at : renews_at;
  // The time of day stays.
  const time = (current ?? new Date(now).toISOString()).slice(11, 19);
  const start = Math.max(now, current ? Date.parse(current) : now);
  const [date, setDate] = useState(() => isoDay(start + SUGGESTED_DAYS * DAY));
  const at = date && `${date}T${time}Z`;
  const isLater = at && Date.parse(at) > (current ? Date.parse(current) : now);
  return (
    <PreviewedChange
      {...props}
      title={isExpired ? 'Reopen the subscription' : 'Extend the subscription'}
      action={isExpired ? 'Reopen' : 'Extend'}
      done={isExpired ? 'Reopened.' : 'Extended.'}
      payload={isLater ? { ...(isExpired && { status: 'active' }), [field]: at } : null}
      missing="Choose a later day."
      explain={(after) => {
        const until = after[field];
        return (
          <>
            {field === 'ends_at' ? 'Access ends' : 'The next renewal is'} at{' '}
            {until && <Time at={until} format="moment" />} UTC.
            {field === 'free_until' && ' The time up to it is free.'}
          </>
        );
      }}
    >
      <Field
        label={{ ends_at: 'Ends on', renews_at: 'Renews on', free_until: 'Free until' }[field]}
        type="date"
        value={date}
        min={isoDay(current ? Date.parse(current) : now)}
        onChange={(event) => setDate(event.target.value)}
        hint={
          current ? (
            <>
              Now <Time at={current} format="moment" focusable={false} />. The time of day,{' '}
              {time.slice(0, 5)} UTC, stays.
            </>
          ) : (
            `At ${time.slice(0, 5)} UTC.`
          )
        }
      />
    </PreviewedChange>
  );
}
