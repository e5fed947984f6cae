//! What a test records about one subscription.

/// The length of a billing period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cycle {
    /// One calendar day.
    Daily,
    /// Seven calendar days.
    Weekly,
    /// One calendar month.
    Monthly,
    /// Three calendar months.
    Quarterly,
    /// Six calendar months.
    Semiannual,
    /// Twelve calendar months.
    Yearly,
    /// One period without end.
    Lifetime,
}

/// The status of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not started: waits for credit or for `starts_at`.
    Pending,
    /// Inside free time granted as a trial.
    OnTrial,
    /// Covered and running.
    Active,
    /// Paused: no access, no charge.
    Paused,
    /// Late, within its grace.
    PastDue,
    /// Late, after its grace.
    Unpaid,
    /// Cancelled: ends at `ends_at` or when credit does not pay a period.
    Cancelled,
    /// Ended.
    Expired,
}

/// What a subscription costs. The amount of a period is `price * quantity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Terms {
    /// Identifier of the plan.
    pub plan: u128,
    /// Number of units, at least 1.
    pub quantity: u32,
    /// Price of one unit and period, in minor units.
    pub price: i64,
    /// Length of a period.
    pub cycle: Cycle,
}

impl Terms {
    /// Returns the amount of one period.
    pub(crate) fn amount(&self) -> i64 {
        self.price.saturating_mul(i64::from(self.quantity))
    }
}

/// What an accepted call asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// The subscription was created.
    Create {
        /// Status in the request; `None` selects the default.
        status: Option<Status>,
        /// Start in the request.
        starts_at: Option<i64>,
        /// End of the first period in the request.
        renews_at: Option<i64>,
        /// End of the subscription in the request.
        ends_at: Option<i64>,
        /// Trial days of the plan that the user can still use; 0 for none.
        trial_days: u16,
        /// Plan, quantity, price and cycle.
        terms: Terms,
    },
    /// A payment became completed.
    Pay {
        /// Identifier of the payment.
        payment: u128,
        /// Amount in minor units.
        amount: i64,
    },
    /// A payment was first recorded as disputed.
    PayDisputed {
        /// Identifier of the payment.
        payment: u128,
        /// Amount in minor units.
        amount: i64,
    },
    /// The refunded amount of a payment changed, in either direction.
    Refund {
        /// Identifier of the payment.
        payment: u128,
        /// The refunded amount after the call.
        refunded_total: i64,
    },
    /// A payment became disputed.
    Dispute {
        /// Identifier of the payment.
        payment: u128,
    },
    /// A dispute was won: the payment is completed again.
    WinDispute {
        /// Identifier of the payment.
        payment: u128,
    },
    /// A dispute was lost: the payment is refunded.
    LoseDispute {
        /// Identifier of the payment.
        payment: u128,
    },
    /// The status changed: pause, resume, cancel, undo, expire, trial or reopen.
    SetStatus {
        /// The new status.
        status: Status,
        /// `ends_at` in the same request.
        ends_at: Option<i64>,
    },
    /// The plan or the quantity changed.
    ChangeTerms {
        /// Terms after the call.
        terms: Terms,
        /// Trial days of the new plan that the user may still have; 0 for none.
        trial_days: u16,
    },
    /// The price or the cycle changed, from the next period not yet paid.
    SetPrice {
        /// Terms after the call.
        terms: Terms,
    },
    /// A server gave free time.
    FreeUntil {
        /// End of covered time after the call.
        until: i64,
    },
    /// `starts_at` changed.
    SetStart {
        /// `starts_at` after the call.
        starts_at: i64,
    },
    /// `ends_at` changed.
    SetEnd {
        /// `ends_at` after the call.
        ends_at: Option<i64>,
    },
    /// The subscription was suspended.
    Suspend,
    /// The suspension was lifted.
    Unsuspend,
    /// The lifecycle changed from managed to recorded, or an external id was set.
    LeaveManaged,
    /// The lifecycle changed from recorded to managed, or an external id was removed.
    EnterManaged {
        /// The record just before the switch.
        shown: Shown,
    },
}

/// A record in recorded mode, just before the switch to managed mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Status; expired if `ends_at` has passed.
    pub status: Status,
    /// Plan, quantity, price and cycle.
    pub terms: Terms,
    /// Start of the subscription.
    pub starts_at: i64,
    /// End of covered time, or of the trial of a lifetime plan.
    pub renews_at: Option<i64>,
    /// End of the subscription.
    pub ends_at: Option<i64>,
    /// Start of lateness.
    pub late_since: Option<i64>,
}

/// Declares the names of all verbs. The match makes a new verb extend the list.
macro_rules! verb_kinds {
    ($($kind:ident)*) => {
        impl Verb {
            /// Names of all verbs.
            pub const KINDS: &[&str] = &[$(stringify!($kind)),*];

            /// Returns the name of the verb.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind { .. } => stringify!($kind),)*
                }
            }
        }
    };
}

verb_kinds!(
    Create Pay PayDisputed Refund Dispute WinDispute LoseDispute SetStatus ChangeTerms SetPrice
    FreeUntil SetStart SetEnd Suspend Unsuspend LeaveManaged EnterManaged
);

/// One accepted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Microseconds since the Unix epoch.
    pub at: i64,
    /// What the call asked for.
    pub verb: Verb,
    /// Whether the same request also made the call before, at the same instant. A request changes the
    /// start, then the terms, then the status and the other dates.
    pub is_same_request: bool,
}

/// The type of a ledger entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Money received, a won dispute included.
    Payment,
    /// Money taken back, a dispute included.
    Refund,
    /// A period that was charged.
    Period,
    /// A change of plan or quantity.
    Change,
    /// Negative credit that was forgiven; negative if a waiver is taken back.
    Waiver,
    /// Free time.
    Extension,
}

/// One ledger entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Microseconds since the Unix epoch.
    pub at: i64,
    /// The type of the entry.
    pub kind: EntryKind,
    /// Signed amount in minor units.
    pub amount: i64,
    /// Credit after the entry.
    pub credit_after: i64,
    /// The payment that caused the entry.
    pub payment: Option<u128>,
    /// Start and end of the period; a period without end belongs to a lifetime plan.
    pub period: Option<(i64, Option<i64>)>,
    /// Identifier of the plan.
    pub plan: u128,
    /// Number of units.
    pub quantity: u32,
}

/// What a read shows at one instant, with everything due applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Microseconds since the Unix epoch.
    pub at: i64,
    /// Whether the subscription gives access.
    pub access: bool,
    /// The status shown.
    pub status: Status,
    /// Whether the subscription is suspended.
    pub suspended: bool,
    /// Credit in minor units.
    pub credit: i64,
    /// Start of the subscription.
    pub starts_at: i64,
    /// End of covered time; `None` for a paid lifetime.
    pub renews_at: Option<i64>,
    /// End of the subscription.
    pub ends_at: Option<i64>,
    /// Terms shown.
    pub terms: Terms,
}

/// How long an open period may stay unpaid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dunning {
    /// Days of 24 hours with access after a due instant.
    pub unpaid_after_days: i64,
    /// Days of 24 hours from a due instant to expiry.
    pub expired_after_days: i64,
}

/// Everything the auditor knows about one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Dunning settings of the tenant.
    pub dunning: Dunning,
    /// Accepted calls, in order.
    pub calls: Vec<Call>,
    /// Ledger entries, in append order.
    pub entries: Vec<Entry>,
    /// Reads, in ascending order of time.
    pub probes: Vec<Probe>,
}
