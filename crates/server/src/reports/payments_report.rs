//! `GET /reports/payments`

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::{extract::State, http::HeaderMap, response::Response};
use jiff::civil::Date;
use perennial_domain::{Currency, OutcomeKind, PaymentTotalKind, format_minor_units};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ReportContext, definitions,
    report_query::{ReportParams, ReportQuery},
    report_view::{RecurringAmount, ReportFrame, ReportTable, Tabular, day, respond},
};
use crate::{
    app::App,
    auth::{Caller, ReportsRead},
    http::{
        problem::{CommonResponses, Problem},
        query::QueryParams,
    },
};

/// Payments over time.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaymentsReport {
    #[serde(flatten)]
    frame: ReportFrame,
    /// One item for each currency; they are never added.
    pub currencies: Vec<CurrencyPayments>,
}

/// Payments in a currency.
#[derive(Debug, Serialize, ToSchema)]
pub struct CurrencyPayments {
    /// The currency (ISO 4217).
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// The intervals, oldest first.
    pub intervals: Vec<PaymentInterval>,
}

/// Payments in an interval.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaymentInterval {
    /// The first day.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-01")]
    pub from: Date,
    /// The last day.
    #[serde(serialize_with = "day")]
    #[schema(value_type = String, format = Date, example = "2026-11-30")]
    pub to: Date,
    /// Received.
    pub collected: PaymentFigures,
    /// Returned.
    pub refunded: PaymentFigures,
    /// Demanded back by payers' banks.
    pub disputed: PaymentFigures,
    /// Collected minus refunded and disputed.
    #[schema(example = "1980.01")]
    pub net: String,
    /// Not received.
    pub failed: PaymentFigures,
    /// Not decided yet.
    pub pending: PaymentFigures,
    /// Payments of which a part of unknown size was returned.
    #[schema(example = 0)]
    pub unknown_refunds: i64,
    /// Subscriptions whose payment was late.
    pub late: LateFigures,
}

/// A number of payments, and their amount.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaymentFigures {
    /// How many payments.
    #[schema(example = 100)]
    pub payments: i64,
    /// Their amount.
    #[schema(example = "1999.00")]
    pub amount: String,
}

/// Subscriptions whose payment was late.
#[derive(Debug, Serialize, ToSchema)]
pub struct LateFigures {
    /// Those that became past_due or unpaid.
    pub started: LateOutcome,
    /// Those that became active again.
    pub recovered: LateOutcome,
    /// Those that ended.
    pub lost: LateOutcome,
}

/// Subscriptions with a late payment: their number, and their recurring amount.
#[derive(Debug, Serialize, ToSchema)]
pub struct LateOutcome {
    /// How many subscriptions.
    #[schema(example = 4)]
    pub subscriptions: i64,
    #[serde(flatten)]
    pub amount: RecurringAmount,
}

/// Report payments
///
/// Collected, refunded, disputed, failed and pending payments, and late subscriptions, by interval and currency. With
/// `Accept: text/csv`, one row per currency and interval.
#[utoipa::path(
    get,
    path = "/reports/payments",
    tag = "Reports",
    operation_id = "reportPayments",
    params(ReportParams),
    responses(
        (status = 200, description = "The report.", content(
            (PaymentsReport = "application/json", example = json!({
                "as_of": "2026-11-15T09:30:00.000000Z",
                "from": "2026-11-01",
                "to": "2026-11-15",
                "interval": "month",
                "definitions": {"net": "Collected minus refunded and disputed."},
                "currencies": [{
                    "currency": "USD",
                    "intervals": [{
                        "from": "2026-11-01",
                        "to": "2026-11-15",
                        "collected": {"payments": 100, "amount": "1999.00"},
                        "refunded": {"payments": 1, "amount": "19.99"},
                        "disputed": {"payments": 0, "amount": "0.00"},
                        "net": "1979.01",
                        "failed": {"payments": 3, "amount": "59.97"},
                        "pending": {"payments": 0, "amount": "0.00"},
                        "unknown_refunds": 0,
                        "late": {"started": {"subscriptions": 4, "mrr": "79.96", "arr": "959.52"}, "recovered": {"subscriptions": 3, "mrr": "59.97", "arr": "719.64"}, "lost": {"subscriptions": 0, "mrr": "0.00", "arr": "0.00"}}
                    }]
                }]
            })),
            (String = "text/csv", example = json!("currency,from,to,collected,…\r\nUSD,2026-11-01,2026-11-15,1999.00,…\r\n")),
        )),
        CommonResponses,
    ),
)]
pub async fn read_payments(
    State(app): State<Arc<App>>,
    caller: Caller<ReportsRead>,
    headers: HeaderMap,
    params: QueryParams,
) -> Result<Response, Problem> {
    let mut context = ReportContext::for_caller(&app, &caller).await?;
    let query = ReportQuery::parse(params, context.today(), false)?;
    let report = payments_report(&mut context, &query).await?;
    Ok(respond(&headers, &report))
}

/// The sums of an interval and currency.
#[derive(Default)]
struct IntervalSums {
    payments: BTreeMap<PaymentTotalKind, (i64, i128)>,
    late: BTreeMap<OutcomeKind, (i64, i128)>,
}

/// Returns the report of payments.
pub async fn payments_report(
    context: &mut ReportContext,
    query: &ReportQuery,
) -> Result<PaymentsReport, Problem> {
    let frame = context.frame(query, definitions::PAYMENTS);
    let reader = context.sums(query).await?;
    let payments = reader.payments().await?;
    let outcomes = reader.outcomes().await?;
    let mut sums: BTreeMap<(Currency, Option<Date>), IntervalSums> = BTreeMap::new();
    for sum in &payments {
        let key = (sum.currency, query.interval_from(sum.bucket));
        let total = sums.entry(key).or_default().payments.entry(sum.kind);
        let (count, amount) = total.or_default();
        *count += sum.payments;
        *amount += sum.amount;
    }
    for sum in outcomes.iter().filter(|sum| sum.bucket.is_some()) {
        let key = (sum.currency, query.interval_from(sum.bucket));
        let total = sums.entry(key).or_default().late.entry(sum.kind);
        let (count, value) = total.or_default();
        *count += sum.subscriptions;
        *value += sum.annual_value;
    }
    let currencies: BTreeSet<Currency> = sums.keys().map(|(currency, _)| *currency).collect();
    let currencies = currencies.into_iter().map(|currency| {
        let intervals = query.buckets().into_iter().map(|(from, to)| {
            let sums = sums.remove(&(currency, Some(from))).unwrap_or_default();
            payment_interval((from, to), &sums, currency)
        });
        CurrencyPayments {
            currency: currency.code(),
            intervals: intervals.collect(),
        }
    });
    Ok(PaymentsReport {
        frame,
        currencies: currencies.collect(),
    })
}

fn payment_interval(
    (from, to): (Date, Date),
    sums: &IntervalSums,
    currency: Currency,
) -> PaymentInterval {
    let sum = |kind| sums.payments.get(&kind).copied().unwrap_or_default();
    let figures = |kind| {
        let (payments, amount) = sum(kind);
        let amount = format_minor_units(amount, currency);
        PaymentFigures { payments, amount }
    };
    let late = |kind| {
        let (subscriptions, value) = sums.late.get(&kind).copied().unwrap_or_default();
        LateOutcome {
            subscriptions,
            amount: RecurringAmount::new(value, currency),
        }
    };
    let [(_, collected), (_, refunded), (_, disputed)] = [
        PaymentTotalKind::Collected,
        PaymentTotalKind::Refunded,
        PaymentTotalKind::Disputed,
    ]
    .map(sum);
    let (unknown_refunds, _) = sum(PaymentTotalKind::UnknownRefund);
    PaymentInterval {
        from,
        to,
        collected: figures(PaymentTotalKind::Collected),
        refunded: figures(PaymentTotalKind::Refunded),
        disputed: figures(PaymentTotalKind::Disputed),
        net: format_minor_units(collected - refunded - disputed, currency),
        failed: figures(PaymentTotalKind::Failed),
        pending: figures(PaymentTotalKind::Pending),
        unknown_refunds,
        late: LateFigures {
            started: late(OutcomeKind::LateStarted),
            recovered: late(OutcomeKind::LateRecovered),
            lost: late(OutcomeKind::LateLost),
        },
    }
}

impl Tabular for PaymentsReport {
    fn table(&self) -> ReportTable {
        let rows = self.currencies.iter().flat_map(|currency| {
            currency.intervals.iter().map(|interval| {
                vec![
                    currency.currency.to_owned(),
                    interval.from.to_string(),
                    interval.to.to_string(),
                    interval.collected.amount.clone(),
                    interval.refunded.amount.clone(),
                    interval.disputed.amount.clone(),
                    interval.net.clone(),
                    interval.failed.amount.clone(),
                    interval.pending.amount.clone(),
                    interval.collected.payments.to_string(),
                    interval.failed.payments.to_string(),
                    interval.late.started.subscriptions.to_string(),
                    interval.late.recovered.subscriptions.to_string(),
                    interval.late.lost.subscriptions.to_string(),
                ]
            })
        });
        ReportTable {
            header: vec![
                "currency",
                "from",
                "to",
                "collected",
                "refunded",
                "disputed",
                "net",
                "failed",
                "pending",
                "collected_payments",
                "failed_payments",
                "late_started",
                "late_recovered",
                "late_lost",
            ],
            rows: rows.collect(),
        }
    }
}
