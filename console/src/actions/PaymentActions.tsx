import { lazy, Suspense, useState } from 'react';
import type { Schema } from '../api/client';
import { ScopedButton } from '../ui/Button';
import { useDone } from './useDone';
import './actions.css';

const RefundDialog = lazy(() => import('./RefundDialog'));
const REFUNDABLE = new Set(['completed', 'partially_refunded']);

/** What staff can do with a payment. */
export function PaymentActions({ payment }: { payment: Schema<'Payment'> }) {
  const [isOpen, setOpen] = useState(false);
  const { notice, say } = useDone();
  return (
    <div className="actions">
      {notice}
      {REFUNDABLE.has(payment.status) && payment.amount > 0 && (
        <ScopedButton scope="payments:write" onClick={() => setOpen(true)}>
          Refund
        </ScopedButton>
      )}
      <Suspense>
        {isOpen && <RefundDialog payment={payment} onDone={say} onClose={() => setOpen(false)} />}
      </Suspense>
    </div>
  );
}
