import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { api, body } from '../../../api/client';
import { useCan } from '../../../api/session';
import { Id } from '../../../ui/values';
import type { LoggedEvent } from './log';
import { actorKind } from './words';

const staffQuery = queryOptions({
  queryKey: ['staff'],
  queryFn: () => body(api.GET('/staff')),
  staleTime: 60_000,
});

/** What made a change. A staff member has a name for roles that may read the staff. */
export function Actor({ actor }: { actor: LoggedEvent['actor'] }) {
  const { type, id } = actor;
  const isStaff = useCan('staff:read') && type === 'staff';
  const { data } = useQuery({ ...staffQuery, enabled: isStaff });
  const email = isStaff ? data?.data.find((member) => member.id === id)?.email : null;
  if (type === 'user' && id) {
    return (
      <Link to="/subscribers/$id" params={{ id }}>
        Subscriber
      </Link>
    );
  }
  const name = type === 'operator' ? id : email;
  return (
    <>
      <span className="nowrap">{actorKind(actor)}</span>{' '}
      {name ? <span className="break">{name}</span> : id && <Id id={id} />}
    </>
  );
}
