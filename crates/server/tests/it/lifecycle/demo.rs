//! `perennial seed --demo`: demo data.

use crate::harness::{
    process::{run_err, run_ok},
    service::Service,
};

#[tokio::test]
async fn demo_data_is_deterministic() {
    let mut summaries = Vec::new();
    for _ in 0..2 {
        let service = Service::start_in_process().await;
        let output = run_ok(&service.variables, &["seed", "--demo"]);
        assert!(output.contains("240 subscribers"), "{output}");
        let client = service.database.connect().await;
        let sql = "SELECT concat_ws(' ', status, count(*), sum(price_minor), sum(credit_minor), count(late_since))
            FROM subscriptions GROUP BY status UNION ALL
            SELECT concat_ws(' ', 'ledger', type, cause, count(*), sum(amount_minor)) FROM ledger_entries GROUP BY type, cause UNION ALL
            SELECT concat_ws(' ', 'payments', status, count(*), sum(amount_minor), sum(refunded_minor))
            FROM subscription_payments GROUP BY status UNION ALL
            SELECT concat_ws(' ', kind, count(*)) FROM events WHERE kind ~ '^(subscription|payment|plan|user)' GROUP BY kind
            ORDER BY 1";
        let rows = client.query(sql, &[]).await.unwrap();
        let summary: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        summaries.push(summary);
        // A demo needs every status and plan, and renewals at the end of a month.
        for status in ["active", "on_trial", "past_due", "cancelled", "expired"] {
            let count = format!("SELECT count(*) FROM subscriptions WHERE status = '{status}'");
            assert!(service.count(&count).await > 0, "{status}");
        }
        for slug in ["free", "pro", "team"] {
            let subscribed = format!(
                "SELECT count(*) FROM subscriptions JOIN subscription_plans AS plan ON plan.id = plan_id WHERE slug = '{slug}'"
            );
            assert!(service.count(&subscribed).await > 20, "{slug}");
        }
        let refunds = "SELECT count(*) FROM subscription_payments WHERE status = 'refunded'";
        assert!(service.count(refunds).await > 5);
        let month_ends = "SELECT count(*) FROM subscriptions WHERE extract(day FROM anchor AT TIME ZONE 'UTC') = 31";
        assert!(service.count(month_ends).await > 5);
        let due = "SELECT count(*) FROM subscriptions WHERE status IN ('active', 'on_trial') AND renews_at <= now()";
        assert_eq!(service.count(due).await, 0, "nothing is overdue");
        let unbalanced = "SELECT count(*) FROM subscriptions WHERE credit_minor <>
            (SELECT coalesce(sum(amount_minor), 0) FROM ledger_entries WHERE subscription_id = subscriptions.id)";
        assert_eq!(
            service.count(unbalanced).await,
            0,
            "credit is the sum of the ledger"
        );
        let again = run_err(&service.variables, &["seed", "--demo"]);
        assert!(again.contains("requires a tenant without data"), "{again}");
    }
    assert_eq!(summaries[0], summaries[1]);
    println!("{}", summaries[0].join("\n"));
}
