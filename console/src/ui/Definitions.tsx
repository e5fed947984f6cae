import { lazy, Suspense, useState } from 'react';

const DefinitionsDialog = lazy(() => import('./DefinitionsDialog'));

/** A link that opens what each figure of a report means, and what it leaves out. */
export function Definitions({ definitions }: { definitions: Record<string, string> | undefined }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="text-button" onClick={() => setOpen(true)}>
        Definitions
      </button>
      <Suspense>
        {isOpen && <DefinitionsDialog definitions={definitions} onClose={() => setOpen(false)} />}
      </Suspense>
    </>
  );
}
