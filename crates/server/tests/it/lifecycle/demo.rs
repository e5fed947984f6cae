//! `perennial seed --demo`: made-up people to look at.

use crate::harness::{
    process::{run_err, run_ok},
    service::Service,
};

#[tokio::test]
async fn the_demo_is_the_same_each_time() {
    let mut shapes = Vec::new();
    for _ in 0..2 {
        let service = Service::start().await;
        let said = run_ok(&service.variables, &["seed", "--demo"]);
        assert!(said.contains("240 subscribers"), "{said}");
        let client = service.database.connect().await;
        let sql = "SELECT concat_ws(' ', status, count(*), sum(price_minor), sum(prepaid), count(late_since))
            FROM subscriptions GROUP BY status UNION ALL
            SELECT concat_ws(' ', 'payments', status, count(*), sum(amount_minor), sum(refunded_minor))
            FROM subscription_payments GROUP BY status UNION ALL
            SELECT concat_ws(' ', kind, count(*)) FROM events WHERE kind ~ '^(subscription|payment|plan|user)' GROUP BY kind
            ORDER BY 1";
        let rows = client.query(sql, &[]).await.unwrap();
        let shape: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        shapes.push(shape);
        // What a demo needs: some of everything, in each of its plans, at the ends of months too.
        for status in ["active", "on_trial", "past_due", "cancelled", "expired"] {
            let count = format!("SELECT count(*) FROM subscriptions WHERE status = '{status}'");
            assert!(service.count(&count).await > 0, "{status}");
        }
        for slug in ["free", "pro", "team"] {
            let taken = format!(
                "SELECT count(*) FROM subscriptions JOIN subscription_plans AS plan ON plan.id = plan_id WHERE slug = '{slug}'"
            );
            assert!(service.count(&taken).await > 20, "{slug}");
        }
        let refunds = "SELECT count(*) FROM subscription_payments WHERE status = 'refunded'";
        assert!(service.count(refunds).await > 5);
        let month_ends = "SELECT count(*) FROM subscriptions WHERE extract(day FROM anchor AT TIME ZONE 'UTC') = 31";
        assert!(service.count(month_ends).await > 5);
        let due = "SELECT count(*) FROM subscriptions WHERE status IN ('active', 'on_trial') AND renews_at <= now()";
        assert_eq!(service.count(due).await, 0, "everything has happened");
        let again = run_err(&service.variables, &["seed", "--demo"]);
        assert!(again.contains("for an empty tenant"), "{again}");
    }
    assert_eq!(shapes[0], shapes[1]);
    println!("{}", shapes[0].join("\n"));
}
