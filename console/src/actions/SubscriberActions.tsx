import { lazy, Suspense, useState } from 'react';
import type { Schema } from '../api/client';
import { useSession } from '../api/session';
import { ScopedButton } from '../ui/Button';

const ExportDialog = lazy(() => import('./ExportDialog'));
const EraseDialog = lazy(() => import('./EraseDialog'));

/** What staff can do with a subscriber. */
export function SubscriberActions({ user }: { user: Schema<'User'> }) {
  const [open, setOpen] = useState<'export' | 'erase'>();
  const close = () => setOpen(undefined);
  const { staff_member } = useSession();
  return (
    <>
      <ScopedButton scope="users:read" onClick={() => setOpen('export')}>
        Export
      </ScopedButton>
      <ScopedButton
        scope="users:write"
        reason={
          staff_member.role === 'admin' ? null : 'Only the role admin can erase a subscriber.'
        }
        onClick={() => setOpen('erase')}
      >
        Erase
      </ScopedButton>
      <Suspense>
        {open === 'export' && <ExportDialog user={user} onClose={close} />}
        {open === 'erase' && <EraseDialog user={user} onClose={close} />}
      </Suspense>
    </>
  );
}
