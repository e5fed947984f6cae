import type { ReactNode } from 'react';
import { PaymentActions } from '../actions/PaymentActions';
import type { Schema } from '../api/client';
import { PaymentBadge } from '../ui/Status';
import { Table, type Column } from '../ui/Table';
import { Money, Time } from '../ui/values';

type Payment = Schema<'Payment'>;

type Props = {
  rows: Payment[] | undefined;
  error?: unknown;
  retry?: () => void;
  empty: ReactNode;
  expected?: number;
  stale?: boolean;
  /** A column before the others, such as the subscriber. */
  first?: Column<Payment>;
};

/** Payments, with what they paid for. */
export function PaymentTable({ first, ...table }: Props) {
  const columns: Column<Payment>[] = [
    ...(first ? [first] : []),
    {
      header: 'Time',
      cell: (payment) => <Time at={payment.paid_at ?? payment.created_at} format="moment" />,
    },
    {
      header: 'Status',
      cell: (payment) => (
        <>
          <PaymentBadge status={payment.status} />
          {payment.failure_reason && <div className="muted small">{payment.failure_reason}</div>}
        </>
      ),
    },
    {
      header: 'Paid for',
      minor: true,
      cell: (payment) =>
        payment.period_starts_at ? (
          <span className="nowrap">
            <Time at={payment.period_starts_at} format="day" />
            {' – '}
            {payment.period_ends_at ? <Time at={payment.period_ends_at} format="day" /> : 'forever'}
          </span>
        ) : (
          <span className="muted">–</span>
        ),
    },
    {
      header: 'Amount',
      align: 'end',
      cell: (payment) => (
        <>
          <Money value={payment.amount} currency={payment.currency} />
          {payment.status === 'partially_refunded' && payment.refunded_amount != null && (
            <div className="muted small">
              <Money value={payment.refunded_amount} currency={payment.currency} /> refunded
            </div>
          )}
        </>
      ),
    },
    {
      header: 'Actions',
      align: 'end',
      cell: (payment) => <PaymentActions payment={payment} />,
    },
  ];
  return <Table label="Payments" columns={columns} rowKey={({ id }) => id} {...table} />;
}
