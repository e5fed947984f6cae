import { Link } from '@tanstack/react-router';
import { useSession } from '../api/session';
import { useNow } from '../lib/clock';
import { exact } from '../lib/time';

/** The mode. In a sandbox, the simulated day, which opens its clock. */
export function SandboxBadge() {
  const { mode, tenant, tenants } = useSession();
  const now = useNow();
  const today = exact(now).split(',')[0];
  return (
    <>
      {mode === 'sandbox' && (
        <Link to="/sandbox" className="mode-badge" data-tip={`Sandbox clock: ${exact(now)}`}>
          Sandbox<span className="mode-day"> · {today}</span>
        </Link>
      )}
      {tenants.length > 1 && <span className="tenant-name">{tenant.name}</span>}
    </>
  );
}
