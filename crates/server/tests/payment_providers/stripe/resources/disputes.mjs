import { allow, mergeMetadata } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { invalid } from '../errors.mjs';
import { closeDispute } from '../billing/payments.mjs';

const EVIDENCE = [
  'access_activity_log',
  'billing_address',
  'cancellation_policy',
  'cancellation_policy_disclosure',
  'cancellation_rebuttal',
  'customer_communication',
  'customer_email_address',
  'customer_name',
  'customer_purchase_ip',
  'customer_signature',
  'duplicate_charge_documentation',
  'duplicate_charge_explanation',
  'duplicate_charge_id',
  'product_description',
  'receipt',
  'refund_policy',
  'refund_policy_disclosure',
  'refund_refusal_explanation',
  'service_date',
  'service_documentation',
  'shipping_address',
  'shipping_carrier',
  'shipping_date',
  'shipping_documentation',
  'shipping_tracking_number',
  'uncategorized_file',
  'uncategorized_text',
];

export function disputeView(ledger, dispute) {
  return {
    id: dispute.id,
    object: 'dispute',
    amount: dispute.amount,
    balance_transactions: [],
    charge: dispute.charge,
    created: dispute.created,
    currency: dispute.currency,
    enhanced_eligibility_types: [],
    evidence: { ...Object.fromEntries(EVIDENCE.map((name) => [name, null])), enhanced_evidence: {} },
    evidence_details: {
      due_by: dispute.created + 7 * 86_400,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
      submission_method: 'not_submitted',
    },
    intended_submission_method: null,
    is_charge_refundable: dispute.status.startsWith('warning_'),
    livemode: ledger.livemode,
    metadata: dispute.metadata,
    network_reason_code: null,
    payment_intent: dispute.payment_intent,
    reason: dispute.reason,
    status: dispute.status,
  };
}

function update({ ledger, params, path }) {
  allow(params, ['metadata', 'evidence', 'submit', 'expand']);
  const dispute = ledger.get('dispute', path.id);
  const status = params.submit === 'true' ? dispute.status.replace('needs_response', 'under_review') : dispute.status;
  const metadata = mergeMetadata(dispute.metadata, params.metadata);
  return ledger.change(dispute, { metadata, status }, 'charge.dispute.updated');
}

/** Closing a dispute by request accepts it as lost; closing an inquiry ends it without money. */
function close({ ledger, path }) {
  const dispute = ledger.get('dispute', path.id);
  if (['won', 'lost', 'warning_closed'].includes(dispute.status)) throw invalid('This dispute is already closed');
  return closeDispute(ledger, dispute, dispute.status.startsWith('warning_') ? 'warning_closed' : 'lost');
}

export const disputeRoutes = [
  [
    'GET',
    '/v1/disputes',
    ({ ledger, params }) =>
      listPage(ledger.disputes, '/v1/disputes', params, {
        filters: { payment_intent: 'payment_intent', charge: 'charge' },
      }),
  ],
  ['GET', '/v1/disputes/:id', ({ ledger, path }) => ledger.get('dispute', path.id)],
  ['POST', '/v1/disputes/:id', update],
  ['POST', '/v1/disputes/:id/close', close],
];
