import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { plansQuery } from '../api/records';
import { money } from '../lib/money';
import { Field } from '../ui/Field';
import { Failure } from '../ui/Page';
import { SelectField } from '../ui/SelectField';
import { PreviewedChange, type DialogProps } from './PreviewedChange';

const MAX_QUANTITY = 100_000;

/** Changes the plan, the quantity, or both. */
export function ChangePlanDialog(props: DialogProps) {
  const { subscription } = props;
  const { data, error } = useQuery(plansQuery);
  const [slug, setSlug] = useState(subscription.subscription_plan_slug);
  const [quantity, setQuantity] = useState(String(subscription.quantity));
  const units = /^\d+$/.test(quantity) ? Number(quantity) : 0;
  const isValid = units >= 1 && units <= MAX_QUANTITY;
  const changes = {
    ...(slug !== subscription.subscription_plan_slug && { subscription_plan_slug: slug }),
    ...(units !== subscription.quantity && { quantity: units }),
  };
  const isChanged = Object.keys(changes).length > 0;
  // The currency of a subscription cannot change.
  const plans = (data?.data ?? []).filter(
    (plan) =>
      plan.slug === subscription.subscription_plan_slug ||
      (plan.is_active && (!subscription.currency || plan.currency === subscription.currency)),
  );
  return (
    <PreviewedChange
      {...props}
      title="Change the plan"
      action="Change plan"
      done="Plan changed."
      payload={isChanged && isValid ? changes : null}
      missing={
        isValid
          ? 'Choose another plan or quantity.'
          : `The quantity must be a whole number from 1 to ${MAX_QUANTITY}.`
      }
      explain={() =>
        subscription.lifecycle === 'managed'
          ? 'The change applies now. The rest of the period is charged to the credit, or returned to it.'
          : 'The change applies now. The next renewal has the new price.'
      }
    >
      {error && <Failure error={error} />}
      <div className="field-row">
        <SelectField label="Plan" value={slug} onChange={(event) => setSlug(event.target.value)}>
          {plans.length === 0 && <option value={slug}>{slug}</option>}
          {plans.map((plan) => (
            <option key={plan.id} value={plan.slug}>
              {plan.slug} · {money(plan.price, plan.currency)} {plan.billing_cycle}
              {plan.slug === subscription.subscription_plan_slug ? ' (current)' : ''}
            </option>
          ))}
        </SelectField>
        <Field
          label="Quantity"
          inputMode="numeric"
          value={quantity}
          onChange={(event) => setQuantity(event.target.value.trim())}
        />
      </div>
    </PreviewedChange>
  );
}
