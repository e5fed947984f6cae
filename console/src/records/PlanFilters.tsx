import { useQuery } from '@tanstack/react-query';
import { plansQuery } from '../api/records';
import { BILLING_CYCLES } from '../lib/cycles';
import { words } from '../lib/words';
import { Select } from '../ui/Select';

type Props = { plan: string | undefined; billingCycle: string | undefined };

/** Filters by the plan and the billing cycle, which are in the URL. */
export function PlanFilters({ plan, billingCycle }: Props) {
  const plans = useQuery(plansQuery);
  return (
    <>
      <Select
        label="Plan"
        param="plan"
        value={plan}
        isLoaded
        all="all plans"
        options={(plans.data?.data ?? []).map(({ slug, name }) => ({ value: slug, label: name }))}
      />
      <Select
        label="Billing cycle"
        param="billing_cycle"
        value={billingCycle}
        all="any"
        options={BILLING_CYCLES.map((value) => ({ value, label: words(value) }))}
      />
    </>
  );
}
