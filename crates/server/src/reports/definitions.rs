//! The definitions that every report contains. `docs/explanation/reports.md` explains them with examples.

/// Of recurring revenue.
pub(super) const REVENUE: &[(&str, &str)] = &[
    (
        "mrr",
        "Monthly recurring revenue: price × quantity of subscriptions that are active, past_due, or cancelled and not ended; \
         have started; are not deleted; renew; and have a price above zero. Per year, divided by 12. Suspended ones count. \
         Trials, pending, scheduled, paused and unpaid subscriptions, lifetimes and unknown prices do not; `not_counted` has \
         their numbers. Taxes, discounts, one-time payments and exchange rates are not known here.",
    ),
    (
        "arr",
        "The same per year, exact: 12 months, 4 quarters, 2 half-years, 52 weeks or 365 days.",
    ),
    (
        "committed_mrr",
        "MRR without cancelled subscriptions, which end soon.",
    ),
    ("users", "Users with any MRR in this currency."),
    (
        "new",
        "MRR of users who pay for the first time in this currency. Each user's changes of a day (UTC) count together.",
    ),
    ("expansion", "Added MRR of users who already paid."),
    ("contraction", "Lost MRR of users who still pay."),
    (
        "churned",
        "Lost MRR of users who pay no more. A subscription that becomes unpaid is lost at that moment.",
    ),
    ("reactivated", "MRR of users who paid before and pay again."),
    (
        "imported",
        "MRR of subscriptions that had started more than 7 days before they were recorded.",
    ),
    (
        "correction",
        "MRR of deleted subscriptions, which were mistakes.",
    ),
    (
        "transferred",
        "MRR that a user moved between plans or billing cycles. Zero without a filter.",
    ),
];

/// Of churn.
pub(super) const CHURN: &[(&str, &str)] = &[
    (
        "user_churn_rate",
        "Users who churned in the interval ÷ users who paid at its start.",
    ),
    (
        "gross_revenue_churn_rate",
        "Churned and contracted MRR ÷ MRR at the start of the interval.",
    ),
    (
        "net_revenue_churn_rate",
        "Churned and contracted MRR minus expanded and reactivated MRR ÷ MRR at the start of the interval. Negative if the \
         users who stayed added more than the others took away.",
    ),
    (
        "churned_users",
        "Users who stopped paying. One who stops twice in an interval counts twice. Imports, deleted subscriptions and moves \
         between plans are not churn. Trials that end without a payment are not churn either.",
    ),
];

/// Of trials.
pub(super) const TRIALS: &[(&str, &str)] = &[
    ("started", "Trials that began in the interval."),
    (
        "converted",
        "Trials that became active in the interval. One that ends without a payment and is paid later converts when it is paid.",
    ),
    (
        "lost",
        "Trials that ended in the interval without becoming active: unpaid, expired or deleted.",
    ),
    ("conversion_rate", "Converted ÷ (converted + lost)."),
    (
        "cohorts",
        "The same by the month in which trials began, of all outcomes up to the last day. `undecided` ones still run or wait \
         for a payment.",
    ),
];

/// Of cohorts.
pub(super) const COHORTS: &[(&str, &str)] = &[
    (
        "cohort",
        "Users by the month of the first day on which they had MRR in this currency. Imported users belong to the month of \
         their import.",
    ),
    ("joined", "The number of users in the cohort."),
    (
        "user_retention",
        "Users of the cohort who pay at the end of the month ÷ joined.",
    ),
    (
        "revenue_retention",
        "MRR of the cohort at the end of the month ÷ at the end of its first month.",
    ),
];

/// Of payments.
pub(super) const PAYMENTS: &[(&str, &str)] = &[
    (
        "collected",
        "Payments that were received, by the day of `paid_at`, also if they were refunded or disputed later.",
    ),
    (
        "refunded",
        "The refunded part, on the day of the payment. Refunds of unknown size are counted in `unknown_refunds` only.",
    ),
    (
        "disputed",
        "What payers' banks demand back, on the day of the payment.",
    ),
    ("net", "Collected minus refunded and disputed."),
    (
        "failed",
        "Payments that failed and have not succeeded since, by the day of their creation.",
    ),
    (
        "pending",
        "Payments that are not decided yet, by the day of their creation.",
    ),
    (
        "late",
        "Subscriptions that became past_due or unpaid in the interval, those that became active again (recovered), and those \
         that ended (lost), with their MRR.",
    ),
];
