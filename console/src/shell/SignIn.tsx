import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { api, body } from '../api/client';
import { sessionQuery, signIn } from '../api/session';
import icon from '../icon.svg';
import { Button } from '../ui/Button';
import { Failure } from '../ui/Page';
import './sign-in.css';

const offerQuery = queryOptions({
  queryKey: ['sign-in'],
  queryFn: () => body(api.GET('/console/sign-in')),
});

/** The secret of a sign-in link, taken from the fragment, so that the URL does not keep it. */
let link = /^#link=(.+)$/.exec(location.hash)?.[1];
const errorCode = /^#error=(\w+)$/.exec(location.hash)?.[1];
if (link || errorCode) history.replaceState(null, '', location.pathname + location.search);

/** Why a sign-in with an identity provider failed, by the code in the fragment. */
const ERRORS: Record<string, string> = {
  sign_in_expired: 'The sign-in took too long. Try again.',
  sign_in_refused: 'The identity provider refused the sign-in.',
  provider_unavailable: 'The identity provider did not respond. Try again later.',
  email_unverified: 'The identity provider has not verified your email address.',
  not_invited:
    'No staff member has your email address. Ask a colleague with the role admin to invite you.',
};

/** Returns whether the page was opened with a sign-in link that is not used yet. */
export const hasLink = () => link !== undefined;

/** Signs in with the link in the URL, or offers the ways to sign in. */
export function SignIn({ onDone }: { onDone: () => void }) {
  const queries = useQueryClient();
  const { data: session } = useQuery(sessionQuery);
  const { data: offer } = useQuery(offerQuery);
  const { mutate, isPending, error } = useMutation({
    mutationFn: signIn,
    onSuccess: (started) => {
      queries.clear();
      queries.setQueryData(sessionQuery.queryKey, started);
      onDone();
    },
  });
  useEffect(() => {
    document.title = 'Sign in · Perennial';
    if (!link) return;
    mutate(link);
    // A link works once.
    link = undefined;
  }, [mutate]);

  return (
    <main className="sign-in">
      <div className="card sign-in-card">
        <img src={icon} width="40" height="40" alt="" />
        <h1>Sign in to Perennial</h1>
        {isPending && <p className="muted">Signing in…</p>}
        {error && <Failure error={error} />}
        {errorCode && !error && (
          <p className="sign-in-error" role="alert">
            {ERRORS[errorCode] ?? 'The sign-in failed.'}
          </p>
        )}
        {error && session && <Button onClick={onDone}>Stay signed in as before</Button>}
        {!isPending && (
          <>
            {offer?.identity_providers.map(({ id, name }) => (
              <a
                key={id}
                className="button button-primary"
                href={`/console/sign-in/${encodeURIComponent(id)}`}
              >
                Continue with {name}
              </a>
            ))}
            <p className="muted">
              {offer?.identity_providers.length
                ? 'Or open a sign-in link. '
                : 'Open a sign-in link. '}
              An operator creates one, which works once and for 10 minutes, with:
            </p>
            <pre className="sign-in-command">
              <code>perennial console link</code>
            </pre>
            <p className="muted">A colleague with the role admin can invite you, too.</p>
          </>
        )}
      </div>
    </main>
  );
}
