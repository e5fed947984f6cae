//! Worked examples of `docs/explanation/reports.md`. Each says whether the figure is the same as in the public definitions of
//! Stripe Billing, ChartMogul or Lago; the page has their addresses and the reasons for differences.

use serde_json::{Value, json};

use super::report_fixture::ReportFixture;
use crate::subscriptions::record_path;

/// Same as Stripe: an annual subscription for 1,200 counts 100. 100 units at 100 per month and 50 at 600 per year are 12,500, as
/// 100 and 50 subscribers are in Stripe's example.
#[tokio::test]
async fn year_counts_a_twelfth_per_month_and_quantity_multiplies_it() {
    let fixture = ReportFixture::start("2027-01-10").await;
    fixture.api.subscribe("large-yearly", json!({})).await;
    assert_eq!(fixture.mrr("2027-01-10").await, "100.00");

    let fixture = ReportFixture::start("2027-01-10").await;
    let monthly = json!({"price": 100, "quantity": 100});
    fixture.api.subscribe("gold", monthly).await;
    let yearly = json!({"price": 600, "quantity": 50});
    fixture.api.subscribe("gold-yearly", yearly).await;
    let level = fixture.level("2027-01-10").await;
    assert_eq!(level["closing"]["mrr"], "12500.00");
    assert_eq!(level["closing"]["arr"], "150000.00");
    assert_eq!(level["closing"]["users"], 2);
}

/// Deliberately different from Lago, which multiplied weeks by 4.33: a year has 52 weeks, so that annual values are whole minor
/// units, and only a figure that is shown is rounded. Three times 43.33 would be 129.99.
#[tokio::test]
async fn weeks_and_days_are_counted_per_year_and_rounded_once() {
    let fixture = ReportFixture::start("2027-01-10").await;
    fixture.api.subscribe("weekly", json!({})).await;
    let level = fixture.level("2027-01-10").await;
    assert_eq!(level["closing"]["mrr"], "43.33");
    assert_eq!(level["closing"]["arr"], "520.00");
    fixture.api.subscribe("weekly", json!({})).await;
    fixture.api.subscribe("weekly", json!({})).await;
    assert_eq!(fixture.mrr("2027-01-10").await, "130.00");

    let fixture = ReportFixture::start("2027-01-10").await;
    for (cycle, arr, mrr) in [
        ("daily", "3650.00", "304.17"),
        ("weekly", "520.00", "43.33"),
        ("monthly", "120.00", "10.00"),
        ("quarterly", "40.00", "3.33"),
        ("semiannual", "20.00", "1.67"),
        ("yearly", "10.00", "0.83"),
    ] {
        let price = json!({"billing_cycle": cycle, "price": 10});
        fixture.api.subscribe("small", price).await;
        let path = format!("revenue?from=2027-01-10&to=2027-01-10&billing_cycle={cycle}");
        let closing = &fixture.report(&path).await["currencies"][0]["closing"];
        assert_eq!(closing["arr"], arr, "{cycle}");
        assert_eq!(closing["mrr"], mrr, "{cycle}");
    }
}

/// Same as ChartMogul, with churn at the end of the final service period. Its example of a customer: 4 gold yearly plans,
/// 2 silver monthly plans in addition, which end, then the end of gold, then 3 gold monthly plans.
#[tokio::test]
async fn customer_moves_through_all_kinds_of_movements() {
    let fixture = ReportFixture::start("2026-01-10").await;
    let user = fixture.api.new_user().await;
    let four = json!({"quantity": 4});
    let gold = fixture.api.subscribe_user(&user, "gold-yearly", four).await;
    assert_eq!(fixture.movements("2026-01", "").await, ["new 166.67"]);

    fixture.advance("2026-02-01").await;
    let two = json!({"quantity": 2});
    let silver = fixture.api.subscribe_user(&user, "silver", two).await;
    assert_eq!(fixture.movements("2026-02", "").await, ["expansion 60.00"]);
    fixture.advance("2026-02-15").await;
    let end = json!({"status": "cancelled", "ends_at": "2026-03-01T12:00:00Z"});
    fixture.api.update(&silver, end).await;
    assert_eq!(fixture.movements("2026-02", "").await, ["expansion 60.00"]);
    fixture.advance("2026-03-05").await;
    let contraction = ["contraction -60.00"];
    assert_eq!(fixture.movements("2026-03", "").await, contraction);

    fixture.advance("2026-12-20").await;
    let end = json!({"status": "cancelled", "ends_at": "2027-01-10T12:00:00Z"});
    fixture.api.update(&gold, end).await;
    assert_eq!(fixture.mrr("2026-12-31").await, "166.67");
    fixture.advance("2027-01-15").await;
    assert_eq!(fixture.movements("2027-01", "").await, ["churned -166.67"]);

    fixture.advance("2027-02-01").await;
    let three = json!({"quantity": 3});
    fixture.api.subscribe_user(&user, "gold", three).await;
    let reactivated = ["reactivated 150.00"];
    assert_eq!(fixture.movements("2027-02", "").await, reactivated);

    // A rebuild computes the same figures from the journal.
    let path = "revenue?from=2026-01-01&to=2027-02-28&interval=day";
    let before = fixture.report(path).await;
    fixture.rebuild();
    assert_eq!(fixture.report(path).await, before);
}

/// Deliberately different from Stripe, where by default a subscription stops counting when its cancellation is requested: it is
/// paid for, and the cancellation can be undone. `committed_mrr` is the figure without it.
#[tokio::test]
async fn cancelled_subscription_counts_until_it_ends() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let subscription = fixture.api.subscribe("small", json!({})).await;
    fixture.advance("2027-01-20").await;
    let end = json!({"status": "cancelled", "ends_at": "2027-02-10T12:00:00Z"});
    fixture.api.update(&subscription, end).await;
    let level = fixture.level("2027-01-20").await;
    assert_eq!(level["closing"]["mrr"], "20.00");
    assert_eq!(level["closing"]["committed_mrr"], "0.00");
    assert_eq!(level["includes"]["cancelled"]["mrr"], "20.00");
    // The worker is late; the end counts on its own day.
    fixture.advance("2027-02-20").await;
    assert_eq!(fixture.mrr("2027-02-09").await, "20.00");
    assert_eq!(fixture.mrr("2027-02-10").await, "0.00");
    assert_eq!(fixture.movements("2027-02", "").await, ["churned -20.00"]);
}

/// Deliberately different from ChartMogul, where all 50 leave the segment of a plan: the part that the user still pays is
/// `transferred`, and only 20 is lost, so that the losses of all plans add up to the losses of the tenant.
#[tokio::test]
async fn plan_change_transfers_what_the_user_still_pays() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let subscription = fixture.api.subscribe("gold", json!({})).await;
    fixture.advance("2027-02-01").await;
    let silver = json!({"subscription_plan_id": fixture.api.plan_id("silver").await, "price": 30});
    fixture.api.update(&subscription, silver).await;
    let all = fixture.movements("2027-02", "").await;
    assert_eq!(all, ["contraction -20.00"]);
    let gold = fixture.movements("2027-02", "&plan=gold").await;
    assert_eq!(gold, ["contraction -20.00", "transferred -30.00"]);
    let silver = fixture.movements("2027-02", "&plan=silver").await;
    assert_eq!(silver, ["transferred 30.00"]);

    fixture.advance("2027-03-01").await;
    let gold = json!({"subscription_plan_id": fixture.api.plan_id("gold").await, "price": 50});
    fixture.api.update(&subscription, gold).await;
    let all = fixture.movements("2027-03", "").await;
    assert_eq!(all, ["expansion 20.00"]);
    let gold = fixture.movements("2027-03", "&plan=gold").await;
    assert_eq!(gold, ["expansion 20.00", "transferred 30.00"]);
    let silver = fixture.movements("2027-03", "&plan=silver").await;
    assert_eq!(silver, ["transferred -30.00"]);
}

/// Returns the churn of a month.
async fn churn(fixture: &ReportFixture, month: &str) -> Value {
    let path = format!("churn?from={month}-01&to={month}-28&interval=month");
    let report = fixture.report(&path).await;
    report["currencies"][0]["intervals"][0].clone()
}

/// Same as ChartMogul (standard formula): of 100 at the start of the month, 10 churned and 10 contracted, while another customer
/// added 10. Gross churn is 20%, net churn 10%. One of three customers left.
#[tokio::test]
async fn churn_rates_of_a_month() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let leaves = fixture.api.subscribe("small", json!({"price": 10})).await;
    let shrinks = fixture.api.subscribe("small", json!({"price": 40})).await;
    let grows = fixture.api.subscribe("small", json!({"price": 50})).await;
    fixture.advance("2027-02-10").await;
    fixture
        .api
        .update(&leaves, json!({"status": "expired"}))
        .await;
    fixture.api.update(&shrinks, json!({"price": 30})).await;
    fixture.api.update(&grows, json!({"price": 60})).await;
    let month = churn(&fixture, "2027-02").await;
    assert_eq!(month["opening"]["mrr"], "100.00");
    assert_eq!(month["gross_revenue_churn_rate"], "0.2000");
    assert_eq!(month["net_revenue_churn_rate"], "0.1000");
    assert_eq!(month["user_churn_rate"], "0.3333");
}

/// Deliberately different from Stripe, which adds the new subscribers of the last 30 days to those at their start: a rate of
/// calendar months is the part of known users who left, and new users do not hide it. Here Stripe's rate would be 1 of 4.
#[tokio::test]
async fn new_users_do_not_lower_the_churn_rate() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let leaves = fixture.api.subscribe("small", json!({})).await;
    fixture.api.subscribe("small", json!({})).await;
    fixture.advance("2027-02-10").await;
    fixture.api.subscribe("small", json!({})).await;
    fixture.api.subscribe("small", json!({})).await;
    fixture
        .api
        .update(&leaves, json!({"status": "expired"}))
        .await;
    let month = churn(&fixture, "2027-02").await;
    assert_eq!(month["opening_users"], 2);
    assert_eq!(month["churned_users"], 1);
    assert_eq!(month["user_churn_rate"], "0.5000");
}

/// Same as Stripe: `past_due` counts, and a subscription that becomes `unpaid` is churn at that moment.
#[tokio::test]
async fn past_due_counts_and_unpaid_is_churn() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let subscription = fixture.api.subscribe("small", json!({})).await;
    fixture.advance("2027-02-10").await;
    let past_due = json!({"status": "past_due"});
    fixture.api.update(&subscription, past_due).await;
    let level = fixture.level("2027-02-10").await;
    assert_eq!(level["closing"]["mrr"], "20.00");
    assert_eq!(level["includes"]["past_due"]["subscriptions"], 1);
    fixture.advance("2027-02-17").await;
    fixture
        .api
        .update(&subscription, json!({"status": "unpaid"}))
        .await;
    assert_eq!(fixture.mrr("2027-02-17").await, "0.00");
    assert_eq!(fixture.movements("2027-02", "").await, ["churned -20.00"]);
    fixture.advance("2027-03-01").await;
    fixture
        .api
        .update(&subscription, json!({"status": "active"}))
        .await;
    let reactivated = ["reactivated 20.00"];
    assert_eq!(fixture.movements("2027-03", "").await, reactivated);
    let payments = fixture
        .report("payments?from=2027-02-01&to=2027-03-31&interval=quarter")
        .await;
    let late = &payments["currencies"][0]["intervals"][0]["late"];
    assert_eq!(late["started"]["subscriptions"], 1);
    assert_eq!(late["recovered"]["subscriptions"], 1);
    assert_eq!(late["recovered"]["mrr"], "20.00");
    assert_eq!(late["lost"]["subscriptions"], 0);
}

/// Same as Stripe: a trial counts nothing, and the conversion rate is conversions ÷ trials that ended. Deliberately different from
/// ChartMogul, which divides by all trials that started (here 2 of 5): a trial that still runs has no outcome yet, and would
/// lower the rate of every recent month. Trials are also reported by the month in which they started.
#[tokio::test]
async fn running_trial_is_undecided_and_cancelled_trial_never_counts() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let mut trials = Vec::new();
    for _ in 0..5 {
        trials.push(fixture.api.subscribe("tried", json!({})).await);
    }
    let level = fixture.level("2027-01-10").await;
    assert_eq!(level["closing"]["mrr"], "0.00");
    assert_eq!(level["not_counted"]["on_trial"]["subscriptions"], 5);
    fixture.advance("2027-01-12").await;
    let end = json!({"status": "cancelled", "ends_at": "2027-01-24T12:00:00Z"});
    fixture.api.update(&trials[0], end).await;
    assert_eq!(fixture.mrr("2027-01-12").await, "0.00");
    fixture.advance("2027-01-24").await;
    fixture
        .api
        .update(&trials[1], json!({"status": "active"}))
        .await;
    fixture
        .api
        .update(&trials[2], json!({"status": "active"}))
        .await;
    fixture.advance("2027-01-25").await;
    assert_eq!(fixture.movements("2027-01", "").await, ["new 80.00"]);
    let report = fixture
        .report("trials?from=2027-01-01&to=2027-01-31&interval=month")
        .await;
    let interval = &report["intervals"][0];
    assert_eq!(interval["started"], 5);
    assert_eq!(interval["converted"], 2);
    assert_eq!(interval["lost"], 1);
    assert_eq!(interval["conversion_rate"], "0.6667");
    assert_eq!(report["cohorts"][0]["undecided"], 2);
    assert_eq!(churn(&fixture, "2027-01").await["churned_users"], 0);
}

/// Same as Stripe: a returning user belongs to their first cohort.
#[tokio::test]
async fn returning_user_stays_in_the_first_cohort() {
    let fixture = ReportFixture::start("2027-01-10").await;
    fixture.api.subscribe("gold", json!({})).await;
    let user = fixture.api.new_user().await;
    let subscription = fixture.api.subscribe_user(&user, "gold", json!({})).await;
    fixture.advance("2027-02-10").await;
    fixture
        .api
        .update(&subscription, json!({"status": "expired"}))
        .await;
    fixture.advance("2027-03-10").await;
    fixture.api.subscribe_user(&user, "silver", json!({})).await;
    let report = fixture
        .report("cohorts?from=2027-01-01&to=2027-03-31")
        .await;
    let cohorts = report["cohorts"].as_array().unwrap();
    assert_eq!(cohorts.len(), 1, "{report}");
    assert_eq!(cohorts[0]["joined"], 2);
    let months = cohorts[0]["months"].as_array().unwrap().iter();
    let rates = months.map(|month| [&month["user_retention"], &month["revenue_retention"]]);
    let rates: Vec<[&Value; 2]> = rates.collect();
    assert_eq!(
        rates,
        [
            ["1.0000", "1.0000"],
            ["0.5000", "0.5000"],
            ["1.0000", "0.8000"]
        ]
    );
}

/// Deliberately different from ChartMogul, which groups changes within 60 minutes by default: all changes of a user on one day
/// (UTC) count together, so that a figure does not depend on how many requests a change took.
#[tokio::test]
async fn changes_of_a_day_count_together() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let user = fixture.api.new_user().await;
    let first = fixture.api.subscribe_user(&user, "small", json!({})).await;
    fixture
        .set_time("2027-01-10T18:00:00Z".parse().unwrap())
        .await;
    fixture.api.subscribe_user(&user, "silver", json!({})).await;
    assert_eq!(fixture.movements("2027-01", "").await, ["new 50.00"]);
    fixture.advance("2027-02-10").await;
    fixture
        .api
        .update(&first, json!({"status": "expired"}))
        .await;
    fixture
        .set_time("2027-02-10T13:00:00Z".parse().unwrap())
        .await;
    fixture.api.subscribe_user(&user, "small", json!({})).await;
    let none: [&str; 0] = [];
    assert_eq!(fixture.movements("2027-02", "").await, none);
}

/// Deliberately different from ChartMogul, whose default keeps customers on a free plan as active: a user who pays nothing is
/// churned, so that users and MRR agree. The same holds for a pause.
#[tokio::test]
async fn free_plan_and_pause_are_churn() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let changed = fixture.api.subscribe("small", json!({})).await;
    let paused = fixture.api.subscribe("silver", json!({})).await;
    fixture.advance("2027-02-10").await;
    let free = json!({"subscription_plan_id": fixture.api.plan_id("free").await, "price": 0});
    fixture.api.update(&changed, free).await;
    fixture
        .api
        .update(&paused, json!({"status": "paused"}))
        .await;
    assert_eq!(fixture.movements("2027-02", "").await, ["churned -50.00"]);
    assert_eq!(churn(&fixture, "2027-02").await["churned_users"], 2);
    let level = fixture.level("2027-02-10").await;
    assert_eq!(level["not_counted"]["free"]["subscriptions"], 1);
    assert_eq!(level["not_counted"]["paused"]["mrr"], "30.00");
    fixture.advance("2027-03-10").await;
    fixture
        .api
        .update(&paused, json!({"status": "active"}))
        .await;
    let reactivated = ["reactivated 30.00"];
    assert_eq!(fixture.movements("2027-03", "").await, reactivated);
}

/// Deliberately different from ChartMogul and Stripe, which have no such movements: a record that was a mistake is not a lost
/// customer, and a customer of another system is not a new one.
#[tokio::test]
async fn deletion_is_a_correction_and_old_start_is_imported() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let mistake = fixture.api.subscribe("small", json!({})).await;
    let long_ago = json!({"starts_at": "2026-05-01T12:00:00Z"});
    fixture.api.subscribe("silver", long_ago).await;
    let january = fixture.movements("2027-01", "").await;
    assert_eq!(january, ["imported 30.00", "new 20.00"]);
    fixture.advance("2027-02-10").await;
    let response = fixture.api.delete(&record_path(&mistake)).await;
    assert_eq!(response.status, 204);
    assert_eq!(
        fixture.movements("2027-02", "").await,
        ["correction -20.00"]
    );
    assert_eq!(churn(&fixture, "2027-02").await["churned_users"], 0);
}

/// Same as ChartMogul: a refund alone does not change MRR. It counts on the day of the payment.
#[tokio::test]
async fn refund_changes_payments_and_not_mrr() {
    let fixture = ReportFixture::start("2027-01-10").await;
    let subscription = fixture.api.subscribe("small", json!({})).await;
    let paid = json!({"subscription_id": subscription["id"], "amount": 20, "currency": "USD", "status": "completed"});
    let payment = fixture.api.create("/subscription-payments", &paid).await;
    fixture.advance("2027-02-10").await;
    let refund = json!({"status": "partially_refunded", "refunded_amount": 5});
    fixture.api.update(&payment, refund).await;
    assert_eq!(fixture.mrr("2027-02-10").await, "20.00");
    let report = fixture
        .report("payments?from=2027-01-01&to=2027-02-28&interval=month")
        .await;
    let intervals = &report["currencies"][0]["intervals"];
    assert_eq!(intervals[0]["collected"]["amount"], "20.00");
    assert_eq!(intervals[0]["refunded"]["amount"], "5.00");
    assert_eq!(intervals[0]["net"], "15.00");
    assert_eq!(intervals[1]["net"], "0.00");
}
