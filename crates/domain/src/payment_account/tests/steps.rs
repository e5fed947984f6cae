//! What can happen at the payment provider, and when.

use super::provider::Provider;
use crate::{PaymentStatus, SubscriptionStatus, subscription::random::SplitMix64};

/// What happens at the payment provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    StartPending,
    StartTrial,
    StartActive,
    /// The first or next period is paid.
    Renew,
    FailRenewal,
    /// A failed invoice is paid.
    Recover,
    GiveUp,
    Upgrade,
    Pause,
    Resume,
    RefundPart,
    RefundAll,
    Dispute,
    WinDispute,
    LoseDispute,
    Cancel,
    UndoCancel,
    End,
    /// Something that the service does not record, such as another card.
    Touch,
}

const STEPS: [Step; 16] = [
    Step::Renew,
    Step::FailRenewal,
    Step::Recover,
    Step::GiveUp,
    Step::Upgrade,
    Step::Pause,
    Step::Resume,
    Step::RefundPart,
    Step::RefundAll,
    Step::Dispute,
    Step::WinDispute,
    Step::LoseDispute,
    Step::Cancel,
    Step::UndoCancel,
    Step::End,
    Step::Touch,
];

impl Provider {
    /// Returns a random step that is possible now.
    pub(super) fn random_step(&self, random: &mut SplitMix64) -> Step {
        if self.subscription.is_none() {
            return random.pick(&[Step::StartPending, Step::StartTrial, Step::StartActive]);
        }
        loop {
            let step = random.pick(&STEPS);
            if self.allows(step) {
                return step;
            }
        }
    }

    fn allows(&self, step: Step) -> bool {
        use SubscriptionStatus::{
            Active, Cancelled, Expired, OnTrial, PastDue, Paused, Pending, Unpaid,
        };
        let Some((fact, _)) = &self.subscription else {
            return matches!(
                step,
                Step::StartPending | Step::StartTrial | Step::StartActive
            );
        };
        let status = fact.status;
        let paid = self.last_invoice(|invoice| invoice.status.is_settled());
        let paid_status = paid.map(|index| self.invoices[index].fact.status);
        match step {
            Step::StartPending | Step::StartTrial | Step::StartActive => false,
            Step::Renew => matches!(status, Pending | OnTrial | Active),
            Step::FailRenewal => matches!(status, OnTrial | Active),
            Step::Recover => matches!(status, PastDue | Unpaid),
            Step::GiveUp => status == PastDue,
            Step::Upgrade => matches!(status, Active | OnTrial),
            Step::Pause => status == Active,
            Step::Resume => status == Paused,
            Step::RefundPart | Step::RefundAll | Step::Dispute => matches!(
                paid_status,
                Some(PaymentStatus::Completed | PaymentStatus::PartiallyRefunded)
            ),
            Step::WinDispute | Step::LoseDispute => paid_status == Some(PaymentStatus::Disputed),
            Step::Cancel => matches!(status, Active | OnTrial),
            Step::UndoCancel => status == Cancelled && fact.ends_at > Some(self.now),
            Step::End => status != Expired,
            Step::Touch => true,
        }
    }
}
