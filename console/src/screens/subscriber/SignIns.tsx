import { useQuery } from '@tanstack/react-query';
import { identitiesQuery, sessionsQuery } from '../../api/users';
import { Card, Failure, Section, Skeleton } from '../../ui/Page';
import { Time } from '../../ui/values';

/** Returns the host of an issuer, which is what people know a provider by. */
const hostOf = (issuer: string) => (URL.canParse(issuer) ? new URL(issuer).host : issuer);

/** With which accounts the subscriber signs in, and on which devices. */
export function SignIns({ id }: { id: string }) {
  const identities = useQuery(identitiesQuery(id));
  const sessions = useQuery(sessionsQuery(id));
  const error = identities.error ?? sessions.error;
  const retry = () => {
    void identities.refetch();
    void sessions.refetch();
  };
  return (
    <Section title="Sign-ins" id="sign-ins">
      {error && <Failure error={error} retry={retry} />}
      {!error && !(identities.data && sessions.data) && <Skeleton height={120} />}
      {identities.data && sessions.data && (
        <Card>
          <dl className="facts">
            {identities.data.data.map(({ issuer, subject }) => (
              <div key={`${issuer} ${subject}`}>
                <dt>{hostOf(issuer)}</dt>
                <dd className="break">{subject}</dd>
              </div>
            ))}
            {identities.data.data.length === 0 && (
              <div>
                <dt>Identity</dt>
                <dd>none; has not signed up yet</dd>
              </div>
            )}
            {sessions.data.data.map((session) => (
              <div key={session.id}>
                <dt>
                  Used <Time at={session.last_used_at} />
                </dt>
                <dd className="break">
                  {session.user_agent ?? 'Unknown device'}, {session.ip}
                </dd>
              </div>
            ))}
            {sessions.data.data.length === 0 && (
              <div>
                <dt>Sessions</dt>
                <dd>none</dd>
              </div>
            )}
          </dl>
        </Card>
      )}
    </Section>
  );
}
