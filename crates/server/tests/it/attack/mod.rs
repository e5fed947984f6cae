//! Attacks on a running service: other tenants' records, forged tokens of identity providers, forged
//! tokens of our own, and HTTP tricks over raw sockets.
//!
//! Each test prints a table of its attacks and fails if one succeeds or changes a row. `just prove attack`
//! shows the tables.

mod cross_tenant;
mod external_tokens;
mod http;
mod own_tokens;

use crate::harness::api::ApiResponse;

/// The attacks of one test and their outcomes.
struct AttackReport {
    title: &'static str,
    rows: Vec<AttackOutcome>,
}

struct AttackOutcome {
    attack: String,
    expected: String,
    got: String,
    is_repelled: bool,
}

impl AttackReport {
    const fn new(title: &'static str) -> Self {
        let rows = Vec::new();
        Self { title, rows }
    }

    /// Records an attack that is repelled with one of these outcomes.
    fn expect(&mut self, attack: impl Into<String>, expected: &[&str], got: &str) {
        self.rows.push(AttackOutcome {
            attack: attack.into(),
            expected: expected.join(" or "),
            got: got.to_owned(),
            is_repelled: expected.contains(&got),
        });
    }

    /// Prints the table. Fails if there are fewer attacks than `min`, or if one succeeded.
    fn finish(self, min: usize) {
        let Self { title, rows } = self;
        let width = |column: fn(&AttackOutcome) -> &str, name: &str| {
            let cells = rows.iter().map(|row| column(row).chars().count());
            cells.max().unwrap_or_default().max(name.len())
        };
        let attack_width = width(|row| &row.attack, "attack");
        let expected_width = width(|row| &row.expected, "expected");
        println!("\n{title}");
        println!(
            "  {:attack_width$}  {:expected_width$}  got",
            "attack", "expected"
        );
        for row in &rows {
            let mark = if row.is_repelled { ' ' } else { '✘' };
            let AttackOutcome {
                attack,
                expected,
                got,
                ..
            } = row;
            println!("{mark} {attack:attack_width$}  {expected:expected_width$}  {got}");
        }
        let succeeded: Vec<&str> = rows
            .iter()
            .filter(|row| !row.is_repelled)
            .map(|row| row.attack.as_str())
            .collect();
        let count = rows.len();
        println!(
            "{title}: {count} attacks, {} repelled",
            count - succeeded.len()
        );
        assert!(succeeded.is_empty(), "not repelled: {succeeded:#?}");
        assert!(count >= min, "only {count} attacks");
    }
}

/// Returns the status and the problem's code, such as `404 plan_not_found`.
fn outcome(response: &ApiResponse) -> String {
    match response.status {
        400.. => format!("{} {}", response.status, response.problem()),
        status => status.to_string(),
    }
}
