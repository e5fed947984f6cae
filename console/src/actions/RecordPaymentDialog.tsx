import { useMemo, useState } from 'react';
import { useSession } from '../api/session';
import { decimals, money } from '../lib/money';
import { cliOf } from '../lib/commands';
import { ActionDialog } from '../ui/ActionDialog';
import { Field } from '../ui/Field';
import { Sentence } from '../ui/Sentence';
import { compareDecimals, isDecimal } from './decimal';
import type { DialogProps } from './PreviewedChange';
import { tenantArgs } from './tenantArgs';

type Props = DialogProps & { amount?: string };

/** Records a payment that was made elsewhere. */
export function RecordPaymentDialog({ subscription, fixes, onDone, onClose, ...props }: Props) {
  const session = useSession();
  const fix = fixes.find(({ action }) => action === 'record_payment');
  const suggested = props.amount ?? fix?.amount ?? subscription.price;
  const [currency, setCurrency] = useState(fix?.currency ?? subscription.currency ?? '');
  const [amount, setAmount] = useState(() =>
    suggested == null ? '' : Number(suggested).toFixed(decimals(currency || 'USD')),
  );
  const [reference, setReference] = useState('');
  const payload = {
    subscription_id: subscription.id,
    amount,
    currency: currency.toUpperCase(),
    status: 'completed',
    ...(reference && { external_payment_id: reference }),
  };
  const text = JSON.stringify(payload);
  // A repeated request has no second effect; another payload is another payment.
  // oxlint-disable-next-line react/exhaustive-deps -- one key for each payload
  const key = useMemo(() => crypto.randomUUID(), [text]);
  const request = {
    method: 'POST' as const,
    path: '/subscription-payments',
    body: payload,
    headers: { 'Idempotency-Key': key },
  };
  const isValid = isDecimal(amount) && /^[a-z]{3}$/i.test(currency);
  return (
    <ActionDialog
      title="Record a payment"
      action="Record payment"
      reason={isValid ? null : 'Enter an amount, such as 19.99, and a currency, such as USD.'}
      request={request}
      cli={cliOf(
        'payment',
        'record',
        '--subscription',
        subscription.id,
        '--amount',
        amount,
        '--currency',
        payload.currency,
        ...(reference ? ['--external-payment-id', reference] : []),
        ...tenantArgs(session),
      )}
      onDone={() => onDone(`Payment of ${money(amount, payload.currency)} recorded.`)}
      movesFocus
      onClose={onClose}
    >
      <div className="field-row">
        <Field
          label="Amount"
          inputMode="decimal"
          autoComplete="off"
          value={amount}
          onChange={(event) => setAmount(event.target.value.trim())}
        />
        <Field
          label="Currency"
          autoComplete="off"
          maxLength={3}
          value={currency}
          onChange={(event) => setCurrency(event.target.value)}
        />
      </div>
      <Field
        label="Reference (optional)"
        autoComplete="off"
        value={reference}
        onChange={(event) => setReference(event.target.value)}
        hint="The bank's or payment provider's id of the payment. It is recorded only once."
      />
      {isValid && (
        <p aria-live="polite">
          <Effect
            amount={amount}
            currency={payload.currency}
            subscription={subscription}
            fix={fix}
          />
        </p>
      )}
    </ActionDialog>
  );
}

type EffectProps = Pick<DialogProps, 'subscription'> & {
  amount: string;
  currency: string;
  fix: DialogProps['fixes'][number] | undefined;
};

/** What the payment does. A fix of the timeline says so for the amount that it names, or more. */
function Effect({ amount, currency, subscription, fix }: EffectProps) {
  const { lifecycle, status, amount_due } = subscription;
  const sum = money(amount, currency);
  if (lifecycle === 'provider') {
    return 'The payment is recorded. The subscription does not change: it follows its payment provider.';
  }
  if (subscription.currency && currency !== subscription.currency) {
    return `The payment is recorded. In another currency than ${subscription.currency}, it does not change the subscription.`;
  }
  if (fix?.amount != null && compareDecimals(amount, String(fix.amount)) >= 0) {
    return <Sentence text={fix.sentence} />;
  }
  if (lifecycle === 'managed') {
    return amount_due
      ? `${sum} becomes credit. That is less than the ${money(amount_due, currency)} that are due: the status stays.`
      : `${sum} becomes credit, which pays later periods when they start.`;
  }
  return ['past_due', 'unpaid'].includes(status) && Number(amount) > 0
    ? 'A completed payment makes the subscription active.'
    : 'The payment is recorded. The subscription does not change.';
}
