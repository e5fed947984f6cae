import { useSession } from '../api/session';
import { cliOf } from '../lib/commands';
import { tenantArgs } from './tenantArgs';

/** Returns a function that writes a command for the session's tenant. */
export function useCli(): (...words: string[]) => string {
  const session = useSession();
  return (...words) => cliOf(...words, ...tenantArgs(session));
}
