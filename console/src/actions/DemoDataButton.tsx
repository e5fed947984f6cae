import { lazy, Suspense, useState } from 'react';
import { ScopedButton } from '../ui/Button';

const DemoDataDialog = lazy(() => import('./DemoDataDialog'));

/** Offers to fill an empty sandbox. */
export function DemoDataButton({ look }: { look?: 'primary' }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <ScopedButton scope="sandbox:write" look={look} onClick={() => setOpen(true)}>
        Fill with demo data
      </ScopedButton>
      <Suspense>{isOpen && <DemoDataDialog onClose={() => setOpen(false)} />}</Suspense>
    </>
  );
}
