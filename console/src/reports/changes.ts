import { words } from '../lib/words';
import type { Series } from '../ui/Chart';

/** The kinds of movements, in the order in which they are drawn and listed. */
export const MOVEMENTS: Series[] = [
  { key: 'new', label: 'New', tone: 'green' },
  { key: 'reactivated', label: 'Reactivated', tone: 'purple' },
  { key: 'expansion', label: 'Expansion', tone: 'blue' },
  { key: 'imported', label: 'Imported', tone: 'gray' },
  { key: 'transferred', label: 'Transferred', tone: 'gray' },
  { key: 'contraction', label: 'Contraction', tone: 'amber' },
  { key: 'churned', label: 'Churned', tone: 'red' },
  { key: 'correction', label: 'Correction', tone: 'gray' },
];

/** What can happen to a trial or to a late payment. */
const OUTCOMES: Series[] = [
  { key: 'trial_started', label: 'Trial started', tone: 'blue' },
  { key: 'trial_converted', label: 'Trial converted', tone: 'green' },
  { key: 'trial_lost', label: 'Trial lost', tone: 'red' },
  { key: 'late_started', label: 'Became late', tone: 'amber' },
  { key: 'late_recovered', label: 'Recovered', tone: 'green' },
  { key: 'late_lost', label: 'Lost after a late payment', tone: 'red' },
];

/** The movements that rates of churn count. */
export const GROSS_CHURN = 'churned,contraction';
export const NET_CHURN = 'churned,contraction,expansion,reactivated';

/** What the figures of a trial count. */
export const TRIALS = 'trial_started,trial_converted,trial_lost';

/** The kinds of changes that reports count, and groups of them. */
export const CHANGE_KINDS = [
  ...[...MOVEMENTS, ...OUTCOMES].map(({ key, label }) => ({ key, label })),
  { key: GROSS_CHURN, label: 'Gross churn' },
  { key: NET_CHURN, label: 'Net churn' },
  { key: TRIALS, label: 'Trials' },
];

/** Returns the name of one or several kinds, separated by commas. */
export function kindLabel(kind: string): string {
  const known = CHANGE_KINDS.find(({ key }) => key === kind)?.label;
  return known ?? kind.split(',').map(words).join(', ');
}

type Span = { from: string; to: string };
type Filter = { currency?: string; plan?: string; started_month?: string };

/** Returns where the changes behind a figure are. Commas separate several kinds; without one, all movements. */
export const changesOf = (kind: string | undefined, { from, to }: Span, filter: Filter = {}) => ({
  to: '/revenue/changes' as const,
  search: { kind, from, to, ...filter },
});
