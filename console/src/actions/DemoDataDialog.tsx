import type { Schema } from '../api/client';
import { useSession } from '../api/session';
import { cliOf } from '../lib/commands';
import { count } from '../lib/money';
import { ActionDialog } from '../ui/ActionDialog';

/** Fills an empty tenant of a sandbox. */
export default function DemoDataDialog({ onClose }: { onClose: () => void }) {
  const { tenant } = useSession();
  return (
    <ActionDialog<Schema<'DemoData'>>
      title="Fill with demo data"
      action="Fill with demo data"
      request={{ method: 'POST', path: '/sandbox/demo-data' }}
      cli={cliOf('seed', '--demo', '--tenant', tenant.name)}
      result={({ plans, subscribers, payments }) => (
        <p>
          Created {count(plans)} plans, {count(subscribers)} subscribers and {count(payments)}{' '}
          payments.
        </p>
      )}
      onClose={onClose}
    >
      <p>
        Creates three plans, 240 subscribers and 14 months of payments in the tenant {tenant.name},
        and lets the service manage their renewals. The tenant must be empty. It takes some seconds.
      </p>
    </ActionDialog>
  );
}
