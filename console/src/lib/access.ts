import type { Schema } from '../api/client';

type Step = Schema<'TimelineStep'>;
type Grant = Schema<'Grant'>;

const WITHOUT_ACCESS = new Set(['unpaid', 'expired']);

/** Returns when access ends by a forecast, which assumes that nothing is paid; null if it does not. */
export const accessLoss = (steps: Step[]): string | null =>
  steps.find(({ at, status }) => at !== null && WITHOUT_ACCESS.has(status))?.at ?? null;

export type AccessEnd = {
  /** Null if access has no end. */
  at: string | null;
  /** Whether a payment moves the end. */
  isPayable: boolean;
};

/**
 * Returns when the last access of a user ends. A past due subscription has no `ends_at`, so its end is that of the
 * forecast. `stepsOf` returns the next steps of a subscription.
 */
export function accessEnd(grants: Grant[], stepsOf: (id: string) => Step[]): AccessEnd {
  const ends = grants.map(({ id, status, ends_at }): AccessEnd => {
    const loss = status === 'past_due' ? accessLoss(stepsOf(id)) : null;
    const isPayable = loss !== null && (ends_at === null || Date.parse(loss) < Date.parse(ends_at));
    return { at: isPayable ? loss : ends_at, isPayable };
  });
  const timeOf = ({ at }: AccessEnd) => (at === null ? Number.POSITIVE_INFINITY : Date.parse(at));
  return ends.reduce(
    (last, end) => (timeOf(end) > timeOf(last) ? end : last),
    ends[0] ?? { at: null, isPayable: false },
  );
}
