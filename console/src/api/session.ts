import { queryOptions } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import { api, body, type Schema } from './client';
import { ProblemError } from './problem';

export type Role = Schema<'StaffRole'>;
export type Session = Schema<'ConsoleSession'> & {
  /** Milliseconds to add to this browser's clock to get the service's clock. */
  clockOffset: number;
};

const withOffset = (session: Schema<'ConsoleSession'>): Session => ({
  ...session,
  clockOffset: Date.parse(session.now) - Date.now(),
});

/** The session of the signed-in staff member; null without one. */
export const sessionQuery = queryOptions<Session | null>({
  queryKey: ['session'],
  queryFn: async () => {
    try {
      return withOffset(await body(api.GET('/console/session')));
    } catch (error) {
      if (error instanceof ProblemError && error.status === 401) return null;
      throw error;
    }
  },
  // Not polled: requests without a person would keep an idle session alive.
  staleTime: 60_000,
});

export const signIn = async (link: string) =>
  withOffset(await body(api.POST('/console/session', { body: { link } })));

export const switchTenant = async (id: string) =>
  withOffset(await body(api.PUT('/console/session', { body: { tenant_id: id } })));

export const signOut = async () => {
  await body(api.DELETE('/console/session'));
};

/** The session, for components below the shell. A context costs less than a query in each cell of a table. */
export const SessionContext = createContext<Session | null>(null);

/** Returns the session. Only for components below the shell, which renders with a session only. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('not signed in');
  return session;
}

/** Returns whether the role has a scope. */
export function useCan(scope: string): boolean {
  return useSession().staff_member.scopes.includes(scope);
}
