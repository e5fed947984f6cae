import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, body, type Schema } from '../api/client';
import { ProblemError, type Problem } from '../api/problem';
import { useSession } from '../api/session';
import { cliOf } from '../lib/commands';
import { money } from '../lib/money';
import { ActionDialog } from '../ui/ActionDialog';
import { Choice } from '../ui/Choice';
import { Field } from '../ui/Field';
import { Failure } from '../ui/Page';
import { addDecimals, compareDecimals, isDecimal } from './decimal';
import { tenantArgs } from './tenantArgs';

type Payment = Schema<'Payment'>;
type Props = {
  payment: Payment;
  onDone: (text: string) => void;
  onClose: () => void;
};

/** The payment as it is now, with its entity tag: another refund in the meantime is not overwritten. */
async function readPayment(id: string): Promise<{ payment: Payment; etag: string | null }> {
  const path = { payment_id: id };
  const result = await api.GET('/subscription-payments/{payment_id}', { params: { path } });
  if (!result.data)
    throw new ProblemError(result.response.status, result.error as Partial<Problem>);
  return { payment: result.data, etag: result.response.headers.get('etag') };
}

/** Records a refund, of the whole payment or a part. */
export default function RefundDialog(props: Props) {
  const session = useSession();
  const once = { staleTime: 'static', gcTime: 0 } as const;
  const current = useQuery({
    queryKey: ['payments', props.payment.id, 'current'],
    queryFn: () => readPayment(props.payment.id),
    ...once,
  });
  const payment = current.data?.payment ?? props.payment;
  const { id, currency, subscription_id } = payment;
  const subscription = useQuery({
    queryKey: ['subscriptions', subscription_id, 'current'],
    queryFn: () =>
      body(api.GET('/subscriptions/{id}', { params: { path: { id: subscription_id } } })),
    ...once,
  });
  const [extent, setExtent] = useState<'whole' | 'part'>('whole');
  const [part, setPart] = useState('');

  const whole = String(payment.amount);
  const refunded = payment.refunded_amount == null ? null : String(payment.refunded_amount);
  const total = extent === 'part' && isDecimal(part) ? addDecimals(refunded ?? '0', part) : whole;
  const isPartial = compareDecimals(total, whole) < 0;
  const isValid =
    extent === 'whole' ||
    (isDecimal(part) && Number(part) > 0 && compareDecimals(total, whole) <= 0);
  const payload = isPartial
    ? { status: 'partially_refunded', refunded_amount: total }
    : { status: 'refunded' };
  const etag = current.data?.etag;
  const request = {
    method: 'PUT' as const,
    path: `/subscription-payments/${id}`,
    body: payload,
    ...(etag && { headers: { 'If-Match': etag } }),
  };
  const left = money(payment.amount - (payment.refunded_amount ?? 0), currency);
  return (
    <ActionDialog
      title="Refund the payment"
      action="Record refund"
      look="danger"
      reason={
        !current.data
          ? 'The payment is loading.'
          : isValid
            ? null
            : `Enter an amount of more than 0 and at most ${left}.`
      }
      request={request}
      cli={cliOf(
        'payment',
        'refund',
        id,
        ...(isPartial ? ['--refunded-amount', total] : []),
        ...tenantArgs(session),
      )}
      onDone={() => props.onDone('Refund recorded.')}
      movesFocus
      onClose={props.onClose}
    >
      {current.error && <Failure error={current.error} />}
      <Choice
        label="How much?"
        value={extent}
        onChange={setExtent}
        options={[
          {
            value: 'whole',
            label:
              refunded && Number(refunded) > 0 ? `The rest, ${left}` : `The whole payment, ${left}`,
          },
          ...(refunded === null ? [] : [{ value: 'part' as const, label: 'A part' }]),
        ]}
      />
      {extent === 'part' && (
        <Field
          label={`Amount in ${currency}`}
          inputMode="decimal"
          autoComplete="off"
          value={part}
          onChange={(event) => setPart(event.target.value.trim())}
          hint={`At most ${left}.`}
        />
      )}
      {isValid && (
        <p aria-live="polite">
          {isPartial
            ? `${money(total, currency)} of ${money(payment.amount, currency)} will be refunded in total.`
            : 'The payment will be refunded in full, which is final.'}{' '}
          {subscription.data?.lifecycle === 'managed'
            ? 'It is taken from the credit of the subscription; what the credit lacks is waived. A period that has started stays.'
            : 'The subscription does not change.'}
        </p>
      )}
      <p className="muted">
        This records the refund. It does not move money: return it at the bank or payment provider.
      </p>
    </ActionDialog>
  );
}
