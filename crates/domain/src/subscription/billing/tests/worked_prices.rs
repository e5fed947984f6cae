//! The worked examples of `docs/explanation/prices-and-changes.md`.

use super::*;

const PAGE: &str = "../../docs/explanation/prices-and-changes.md";

fn amount(minor: i64) -> String {
    let sign = if minor < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", minor.abs() / 100, minor.abs() % 100)
}

/// Subscriptions to a plan of 10.00 a month, each with the instant of its change.
fn situations() -> Vec<(&'static str, Book, Timestamp)> {
    let offer = monthly(1_000);
    let paid = Book::paid(&offer);
    let mut late = paid.clone();
    late.run(noon(33));
    let trial = Book::pending(&with_trial(offer));
    let mut free = paid.clone();
    free.run(noon(31));
    free.change(&to_free_time(noon(45)), noon(31));
    vec![
        ("paid, 21 of 31 days left", paid, noon(10)),
        ("late, 26 of 28 days left", late, noon(33)),
        ("in a trial", trial, noon(5)),
        ("in free time, 7 days left", free, noon(38)),
    ]
}

fn changes() -> Vec<(&'static str, SubscriptionChanges)> {
    let plan = |price, cycle| to_plan(plan(9, price, cycle));
    vec![
        ("plan of 30.00 a month", plan(3_000, BillingCycle::Monthly)),
        ("plan of 4.00 a month", plan(400, BillingCycle::Monthly)),
        ("5 seats", to_quantity(5)),
        ("plan of 100.00 a year", plan(10_000, BillingCycle::Yearly)),
    ]
}

#[test]
fn worked_examples_match_their_page() {
    let mut table = "| while | to | posted | `amount_due` |\n|---|---|---|---|\n".to_owned();
    for (situation, book, now) in situations() {
        for (change, changes) in changes() {
            let row = match book.sub.preview(&changes, now) {
                Ok(preview) => {
                    let entries = preview.entries.iter();
                    let own = entries.filter(|entry| entry.entry_type != EntryType::Payment);
                    let posted: Vec<String> = own
                        .map(|entry| format!("`{}` {}", entry.entry_type, amount(entry.amount)))
                        .collect();
                    let posted = match posted.as_slice() {
                        [] => "nothing".to_owned(),
                        posted => posted.join(", "),
                    };
                    format!("{posted} | {}", amount(preview.amount_due))
                }
                Err(SubscriptionUpdateError::FreeTimeNotPossible(_)) => "409 | ".to_owned(),
                Err(error) => panic!("{situation}, {change}: {error:?}"),
            };
            table += &format!("| {situation} | {change} | {row} |\n");
        }
    }
    let page = std::fs::read_to_string(PAGE).unwrap();
    assert!(page.contains(&table), "{PAGE} should have\n{table}");
}
