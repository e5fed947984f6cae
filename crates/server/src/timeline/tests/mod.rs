//! Every status in every situation, in words. Review the snapshot as a support person: what, since when, what next, what fixes it.

mod book;
mod cases;
mod running_cases;

use std::fmt::Write as _;

use jiff::Timestamp;
use perennial_domain::{SubscriptionStatus, Transition};

use self::{
    book::Book,
    cases::{Case, cases},
};
use super::{Situation, StatusHistory, fixes::Fix, plain_text::date};

/// Returns the sentence, the next steps, the fixes and the lifeline as lines.
fn render(case: &Case) -> String {
    let history = case.book.history();
    let situation = Situation::new(&case.book.sub, &history, case.now);
    let mut text = format!(
        "# {}, on {}\n{}\n",
        case.name,
        date(case.now),
        situation.sentence()
    );
    for step in situation.next_steps() {
        let at = step.at.map_or("at some time".to_owned(), date);
        writeln!(text, "  next: {at} {}: {}", step.status, step.sentence).unwrap();
    }
    for fix in situation.fixes() {
        let amount = fix
            .amount
            .map_or(String::new(), |amount| format!(" {amount}"));
        writeln!(text, "  fix: {}{amount}: {}", fix.action, fix.sentence).unwrap();
        if let Some(request) = fix.request.filter(|_| fix.action != "record_payment") {
            let path = request.path.replace(&case.book.sub.id.to_string(), "sub_…");
            let body = request
                .body
                .map_or(String::new(), |body| body.get().to_owned());
            let request = format!("       {} {path} {body}", request.method);
            writeln!(text, "{}", request.trim_end()).unwrap();
        }
    }
    let segments = situation.segments(None);
    let segments = segments.iter().map(|segment| {
        let access = if segment.is_active {
            ""
        } else {
            " (no access)"
        };
        let future = if segment.future { "+" } else { "" };
        format!(
            "{future}{} {}{access}",
            &date(segment.from)[..10],
            segment.status
        )
    });
    let line: Vec<String> = segments.collect();
    writeln!(text, "  line: {}", line.join(" | ")).unwrap();
    text
}

#[test]
fn every_status_is_explained() {
    let cases = cases();
    let texts: Vec<String> = cases.iter().map(render).collect();
    insta::assert_snapshot!(texts.join("\n"));
    for status in SubscriptionStatus::ALL {
        for prefix in ["managed", "recorded", "provider"] {
            let covers = |case: &&Case| case.name.starts_with(prefix) && case.status() == status;
            assert!(cases.iter().any(|case| covers(&case)), "{prefix} {status}");
        }
    }
}

/// Returns the fix with this action.
fn fix(fixes: &[Fix], action: &str) -> Option<Fix> {
    fixes.iter().find(|fix| fix.action == action).cloned()
}

/// The domain accepts each fix, and its effect is the one that the sentence promises.
#[test]
fn fixes_have_the_promised_effect() {
    for case in cases() {
        let history = case.book.history();
        let situation = Situation::new(&case.book.sub, &history, case.now);
        let (status, fixes) = (case.status(), situation.fixes());
        let is_overdue = !case.book.sub.due_transitions(case.now).is_empty();
        let mut book = Book {
            changes: Vec::new(),
            ..case.book
        };
        let payment = fix(&fixes, "record_payment");
        if let Some(amount) = payment
            .and_then(|fix| fix.amount)
            .filter(|_| book.is_managed())
        {
            book.pay(amount.minor_units(), case.now);
            let paid = &book.sub;
            match status {
                SubscriptionStatus::Pending if paid.starts_at > case.now => {
                    let next = paid.next_transition(Timestamp::MAX).unwrap();
                    assert_eq!(next.transition, Transition::Started, "{}", case.name);
                }
                SubscriptionStatus::Pending
                | SubscriptionStatus::PastDue
                | SubscriptionStatus::Unpaid => {
                    assert_eq!(paid.status, SubscriptionStatus::Active, "{}", case.name);
                }
                SubscriptionStatus::OnTrial | SubscriptionStatus::Active if is_overdue => {
                    assert_eq!(paid.status, SubscriptionStatus::Active, "{}", case.name);
                }
                SubscriptionStatus::OnTrial
                | SubscriptionStatus::Active
                | SubscriptionStatus::Cancelled => {
                    let next = paid.next_transition(Timestamp::MAX).unwrap();
                    let is_kept =
                        next.transition == Transition::Renewed || Some(next.at) == paid.ends_at;
                    assert!(is_kept, "{}: {:?}", case.name, next.transition);
                }
                SubscriptionStatus::Paused => assert_eq!(paid.late_since, None, "{}", case.name),
                SubscriptionStatus::Expired => {}
            }
        }
        for action in ["resume", "undo_cancellation", "reopen", "set_status"] {
            let fix = fix(&fixes, action);
            let body = fix
                .and_then(|fix| fix.request)
                .and_then(|request| request.body);
            let Some(body) = body else { continue };
            let lifts = body.get().contains("is_active");
            book.activate(lifts, case.now);
            let is_running = matches!(
                book.sub.status,
                SubscriptionStatus::Active | SubscriptionStatus::OnTrial
            );
            assert!(is_running, "{}: {action}: {}", case.name, book.sub.status);
            assert!(!(book.sub.suspended && lifts), "{}", case.name);
        }
        if status == SubscriptionStatus::Expired {
            continue;
        }
        if fix(&fixes, "lift_suspension").is_some() && status.gives_access() {
            book.lift(case.now);
            assert!(!book.sub.suspended, "{}", case.name);
        }
    }
}

#[test]
fn subscription_without_events_is_explained() {
    for case in cases() {
        let history = StatusHistory::default();
        let situation = Situation::new(&case.book.sub, &history, case.now);
        assert!(situation.sentence().ends_with('.'), "{}", case.name);
        assert!(!situation.next_steps().is_empty(), "{}", case.name);
        let segments = situation.segments(None);
        let current = segments.iter().rfind(|segment| !segment.future).unwrap();
        assert_eq!(current.status, case.status(), "{}", case.name);
    }
}

/// Spans follow each other without gaps, and exactly one contains now.
#[test]
fn lifeline_has_no_gaps() {
    for case in cases() {
        let history = case.book.history();
        let situation = Situation::new(&case.book.sub, &history, case.now);
        let segments = situation.segments(None);
        for pair in segments.windows(2) {
            assert_eq!(pair[0].to, Some(pair[1].from), "{}", case.name);
            assert!(pair[0].from < pair[1].from, "{}", case.name);
        }
        let is_shown = segments.iter().rfind(|segment| !segment.future).unwrap();
        assert_eq!(is_shown.status, case.status(), "{}", case.name);
        assert_eq!(
            is_shown.is_active,
            case.book.sub.has_access(case.now),
            "{}",
            case.name
        );
        assert_eq!(segments.last().unwrap().to, None, "{}", case.name);
    }
}
