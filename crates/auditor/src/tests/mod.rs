//! Hand-written histories, lawful ones and one for each known error of a billing engine.

mod engine;
mod errors;
mod lawful;
mod mutants;
mod prices;
mod random;
mod stated;
mod switches;
mod terms;

use crate::calendar::DAY;
use crate::{
    Call, Cycle, Dunning, Entry, EntryKind, History, LAWS, Probe, Shown, Status, Terms, Verb,
    Violation,
};

/// 2026-01-01T00:00:00Z, in days since the Unix epoch.
const NEW_YEAR: i64 = 20_454;

const BASIC: Terms = Terms {
    plan: 1,
    quantity: 1,
    price: 3_100,
    cycle: Cycle::Monthly,
};
const DOUBLE: Terms = Terms {
    plan: 1,
    quantity: 2,
    price: 3_100,
    cycle: Cycle::Monthly,
};

/// Returns midnight, `days` days after the start of 2026; February starts at 31, March at 59.
fn day(days: i64) -> i64 {
    (NEW_YEAR + days) * DAY
}

/// Returns the bounds of a period between two days of 2026.
#[expect(clippy::unnecessary_wraps, reason = "the type of the field")]
fn period(start: i64, end: i64) -> Option<(i64, Option<i64>)> {
    Some((day(start), Some(day(end))))
}

/// A history under construction; `terms`, `ends_at` and `suspended` apply to what follows.
struct Recorder {
    history: History,
    terms: Terms,
    starts_at: i64,
    ends_at: Option<i64>,
    suspended: bool,
}

impl Recorder {
    /// Starts a history with grace of 7 days and expiry after 30.
    fn new(terms: Terms) -> Self {
        let dunning = Dunning {
            unpaid_after_days: 7,
            expired_after_days: 30,
        };
        let history = History {
            dunning,
            calls: vec![],
            entries: vec![],
            probes: vec![],
        };
        Self {
            history,
            terms,
            starts_at: day(0),
            ends_at: None,
            suspended: false,
        }
    }

    /// Starts a history with a pending subscription of the first day of 2026.
    fn pending(terms: Terms) -> Self {
        let mut recorder = Self::new(terms);
        recorder.create(None, None, None, 0);
        recorder
    }

    /// Starts a history whose first period is paid on the first day of 2026.
    fn paid(terms: Terms, amount: i64) -> Self {
        let mut recorder = Self::pending(terms);
        recorder.pay(day(0), 1, amount);
        recorder.entry(day(0), EntryKind::Period, -terms.amount(), period(0, 31));
        recorder
    }

    fn call(&mut self, at: i64, verb: Verb) {
        self.history.calls.push(Call {
            at,
            verb,
            is_same_request: false,
        });
    }

    fn create(
        &mut self,
        status: Option<Status>,
        starts_at: Option<i64>,
        renews_at: Option<i64>,
        trial_days: u16,
    ) {
        let (ends_at, terms) = (self.ends_at, self.terms);
        self.starts_at = starts_at.unwrap_or(day(0));
        let verb = Verb::Create {
            status,
            starts_at,
            renews_at,
            ends_at,
            trial_days,
            terms,
        };
        self.call(day(0), verb);
    }

    fn set_status(&mut self, at: i64, status: Status) {
        self.call(
            at,
            Verb::SetStatus {
                status,
                ends_at: None,
            },
        );
    }

    fn change(&mut self, at: i64, terms: Terms) {
        self.terms = terms;
        self.change_with_trial(at, terms, 0);
    }

    /// Records a change; `terms` of later entries and probes stay the old ones.
    fn change_with_trial(&mut self, at: i64, terms: Terms, trial_days: u16) {
        self.call(at, Verb::ChangeTerms { terms, trial_days });
    }

    fn refund(&mut self, at: i64, payment: u128, refunded_total: i64) {
        self.call(
            at,
            Verb::Refund {
                payment,
                refunded_total,
            },
        );
    }

    fn pay(&mut self, at: i64, payment: u128, amount: i64) {
        self.call(at, Verb::Pay { payment, amount });
        self.money(at, EntryKind::Payment, payment, amount);
    }

    fn credit(&self) -> i64 {
        self.history.entries.iter().map(|entry| entry.amount).sum()
    }

    fn money(&mut self, at: i64, kind: EntryKind, payment: u128, amount: i64) {
        self.entry(at, kind, amount, None);
        self.history.entries.last_mut().unwrap().payment = Some(payment);
    }

    fn entry(&mut self, at: i64, kind: EntryKind, amount: i64, period: Option<(i64, Option<i64>)>) {
        let credit_after = self.credit() + amount;
        let Terms { plan, quantity, .. } = self.terms;
        let payment = None;
        let entry = Entry {
            at,
            kind,
            amount,
            credit_after,
            payment,
            period,
            plan,
            quantity,
        };
        self.history.entries.push(entry);
    }

    fn probe(&mut self, at: i64, status: Status, access: bool, renews_at: Option<i64>) {
        let credit = self.credit();
        self.history.probes.push(Probe {
            at,
            access,
            status,
            suspended: self.suspended,
            credit,
            starts_at: self.starts_at,
            renews_at,
            ends_at: self.ends_at,
            terms: self.terms,
        });
    }

    /// Records a read with the access that a covered subscription has.
    fn active(&mut self, at: i64, renews_at: i64) {
        self.probe(at, Status::Active, true, Some(renews_at));
    }

    #[track_caller]
    fn assert_lawful(&self) {
        self.history.check_value().unwrap();
        self.assert_money_and_access();
    }

    /// Checks the laws that hold for every verb, and that they refuse every mutant.
    #[track_caller]
    fn assert_money_and_access(&self) {
        self.history.check_money().unwrap();
        self.history.check_access().unwrap();
        self.history.check_price().unwrap();
        mutants::assert_refused(&self.history);
    }

    #[track_caller]
    fn assert_money_broken(&self, what: &str) {
        assert_broken(self.history.check_money(), "money", what);
    }

    #[track_caller]
    fn assert_access_broken(&self, what: &str) {
        assert_broken(self.history.check_access(), "access", what);
    }

    #[track_caller]
    fn assert_price_broken(&self, what: &str) {
        assert_broken(self.history.check_price(), "price", what);
    }

    #[track_caller]
    fn assert_value_broken(&self) {
        assert_broken(self.history.check_value(), "value", "access is worth");
    }
}

#[track_caller]
fn assert_broken(result: Result<(), Violation>, law: &str, what: &str) {
    let violation = result.unwrap_err();
    assert_eq!(violation.law, law, "{violation}");
    assert!(violation.what.contains(what), "{violation}");
}

#[test]
fn every_verb_is_judged_by_a_named_list_of_laws() {
    let exceptions: [(&str, &[&str]); 4] = [
        (
            "money",
            &[
                "Create",
                "SetStatus",
                "ChangeTerms",
                "SetPrice",
                "FreeUntil",
                "SetStart",
                "SetEnd",
                "Suspend",
                "Unsuspend",
            ],
        ),
        ("access", &[]),
        // Verbs of servers give time or take money back. The others act through probes.
        (
            "value",
            &[
                "Create",
                "PayDisputed",
                "Refund",
                "Dispute",
                "WinDispute",
                "LoseDispute",
                "SetStatus",
                "SetPrice",
                "FreeUntil",
                "SetStart",
                "SetEnd",
                "Suspend",
                "Unsuspend",
                "LeaveManaged",
                "EnterManaged",
            ],
        ),
        (
            "price",
            &[
                "Create",
                "Pay",
                "PayDisputed",
                "Refund",
                "Dispute",
                "WinDispute",
                "LoseDispute",
                "SetStatus",
                "SetPrice",
                "FreeUntil",
                "SetStart",
                "SetEnd",
                "Suspend",
                "Unsuspend",
            ],
        ),
    ];
    assert_eq!(LAWS.len(), exceptions.len());
    for (law, (name, excepted)) in LAWS.iter().zip(exceptions) {
        assert_eq!(law.name, name);
        let mut named: Vec<&str> = law.judged.iter().chain(excepted).copied().collect();
        let mut kinds = Verb::KINDS.to_vec();
        named.sort_unstable();
        kinds.sort_unstable();
        assert_eq!(named, kinds, "law {name}");
    }
}
