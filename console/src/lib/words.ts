const ACRONYMS: Record<string, string> = { mrr: 'MRR', arr: 'ARR', id: 'id', api: 'API' };

/** Returns a field's name in words: "net_revenue_churn_rate" is "Net revenue churn rate". */
export function words(name: string): string {
  const text = name
    .split('_')
    .map((word) => ACRONYMS[word] ?? word)
    .join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}
