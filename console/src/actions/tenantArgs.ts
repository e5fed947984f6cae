import type { Session } from '../api/session';

/** Returns the flag that names the tenant, which a command needs if there are several. */
export const tenantArgs = ({ tenant, tenants }: Session) =>
  tenants.length > 1 ? ['--tenant', tenant.name] : [];
