//! Invalid amounts and integers.

use super::target::{Target, plan_with};

/// Malformed input: 25, 26, 27, 28, 29.
#[tokio::test]
async fn invalid_amounts_are_rejected() {
    let target = Target::start_in_process().await;
    for negative in ["-0.01", "-1", "-1e9", "\"-1\""] {
        target
            .assert_rejects_field("price", negative, "out_of_range")
            .await;
    }
    for huge in [
        "1e400",
        "1E1000000000",
        "1e99999999999999999999",
        "\"1e400\"",
        "12345678901234567.89",
        "10000000000.01",
        "1000000000000000000000000000000",
    ] {
        target
            .assert_rejects_field("price", huge, "out_of_range")
            .await;
    }
    // Amounts are never rounded.
    for tiny in ["0.005", "19.999", "1e-3", "1e-400", "\"0.001\""] {
        target
            .assert_rejects_field("price", tiny, "amount_scale_invalid")
            .await;
    }
    for (currency, price) in [
        ("JPY", "0.5"),
        ("JPY", "100.1"),
        ("KWD", "0.0005"),
        ("KWD", "1.2345"),
    ] {
        let body =
            plan_with("price", price).replacen('{', &format!(r#"{{"currency":"{currency}","#), 1);
        target
            .assert_rejects_plan(body, (422, "amount_scale_invalid"))
            .await;
    }
    for invalid in [
        "NaN",
        "Infinity",
        "-Infinity",
        "+1",
        ".5",
        "1.",
        "0x10",
        "1_000",
        "1,5",
        "007",
        "--1",
        "1e",
    ] {
        target
            .assert_rejects_plan(plan_with("price", invalid), (400, "malformed_json"))
            .await;
        if invalid == "007" {
            continue;
        }
        target
            .assert_rejects_field("price", &format!("\"{invalid}\""), "invalid_format")
            .await;
    }
    target.assert_unchanged().await;

    let digits =
        async |raw: &str| target.create_with_field("price", raw).await["price"].to_string();
    for (sent, shown) in [
        ("0", "0.0"),
        ("-0", "0.0"),
        ("-0.00", "0.0"),
        ("0.10", "0.1"),
        ("1e2", "100.0"),
        ("9999999999.99", "9999999999.99"),
        ("19.9900", "19.99"),
    ] {
        assert_eq!(digits(sent).await, shown, "{sent}");
    }
}

/// Malformed input: 30, 31.
#[tokio::test]
async fn invalid_integers_are_rejected() {
    let target = Target::start_in_process().await;
    for field in ["node_quota", "tier"] {
        for huge in [
            "2147483648",
            "9007199254740993",
            "9223372036854775808",
            "18446744073709551616",
            "1e400",
            "-2147483649",
            "-2",
            "1e1000000000",
        ] {
            target
                .assert_rejects_field(field, huge, "out_of_range")
                .await;
        }
        for other in ["1.5", "1e-1", "\"1\"", "true", "[1]"] {
            target
                .assert_rejects_field(field, other, "wrong_type")
                .await;
        }
        for invalid in ["007", "1.", "+1", "0x1", "1e"] {
            target
                .assert_rejects_plan(plan_with(field, invalid), (400, "malformed_json"))
                .await;
        }
    }
    target.assert_unchanged().await;
    // Different notations of the same number.
    for (sent, shown) in [
        ("1.0", 1),
        ("1e2", 100),
        ("10e-1", 1),
        ("-0", 0),
        ("100.000", 100),
    ] {
        assert_eq!(
            target.create_with_field("tier", sent).await["tier"],
            shown,
            "{sent}"
        );
    }
    assert_eq!(
        target.create_with_field("node_quota", "2147483647").await["node_quota"],
        i32::MAX
    );
}
