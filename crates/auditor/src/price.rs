//! The price law: a change costs at most the difference for the time that is left, and changes that
//! cancel out give nothing away.
//!
//! Judges each call by the states before and after it. Amounts come from the entries, the value of
//! covered time (Σ cost × left) from the auditor's own stretches.

use std::cmp::Ordering;

use crate::access::allowed_statuses;
use crate::coverage::{Mode, Stage, State};
use crate::fraction::Fraction;
use crate::{Call, Cycle, Dunning, SLACK, Shown, Terms, Verb, Violation};

pub(crate) const LAW: &str = "price";

/// A call, and the states around it.
pub(crate) struct Step {
    pub(crate) call: Call,
    /// Microseconds by which the change may be later than the call.
    pub(crate) fuzz: i64,
    pub(crate) before: State,
    pub(crate) after: State,
    /// Whether the call has posted entries.
    pub(crate) has_posted: bool,
}

fn fail(at: i64, what: impl Into<String>) -> Violation {
    Violation {
        law: LAW,
        at,
        what: what.into(),
    }
}

fn overflow(at: i64) -> Violation {
    fail(at, "the amounts overflow")
}

/// Checks a call, and together with the call before it.
pub(crate) fn check_step(
    step: &Step,
    last: Option<&Step>,
    dunning: Dunning,
) -> Result<(), Violation> {
    let at = step.call.at;
    // Nothing else happened between the two calls.
    let last = last.filter(|last| {
        let state = match last.call.verb {
            Verb::LeaveManaged => &last.before,
            _ => &last.after,
        };
        let due = state.next_due(dunning);
        due.is_none_or(|(due, _)| due > at)
    });
    match (step.call.verb, last) {
        (Verb::ChangeTerms { terms, .. }, last) => {
            if step.before.stage == Stage::Unmanaged {
                return Ok(());
            }
            check_charge(step, terms)?;
            check_value(step)?;
            last.map_or(Ok(()), |last| check_undo(last, step))
        }
        (Verb::EnterManaged { shown }, Some(last))
            if last.call.verb == Verb::LeaveManaged && is_same(&last.before, &shown, at) =>
        {
            check_identity(last, step)
        }
        _ => Ok(()),
    }
}

/// Bounds of what a change charges.
struct Bounds {
    least: i128,
    most: i128,
}

/// Checks what a change charges against the difference for the time that is left.
fn check_charge(step: &Step, terms: Terms) -> Result<(), Violation> {
    let at = step.call.at;
    let bounds = bounds(&step.before, terms, at, step.fuzz).ok_or_else(|| overflow(at))?;
    let charged = i128::from(step.before.credit - step.after.credit);
    if (bounds.least..=bounds.most).contains(&charged) {
        return Ok(());
    }
    let Bounds { least, most } = bounds;
    let what = format!("a change charges {charged}, the time left is worth {least} to {most}");
    Err(fail(at, what))
}

/// Returns the bounds of what a change to `terms` may charge; `None` on overflow.
fn bounds(before: &State, terms: Terms, at: i64, fuzz: i64) -> Option<Bounds> {
    let (old, new) = (before.terms.amount(), terms.amount());
    let up_to = |most: i64| Bounds {
        least: i128::MIN,
        most: i128::from(most),
    };
    if before.stage == Stage::Pending {
        return Some(up_to(new));
    }
    if (before.terms.plan, before.terms.quantity) == (terms.plan, terms.quantity) {
        // A new price alone may pay an open period and the next one.
        return Some(up_to(if before.open.is_some() { 2 * new } else { 0 }));
    }
    if before.stage == Stage::Running && before.open.is_some() {
        return late_bounds(before, terms, at, fuzz);
    }
    let Some(cover) = before.cover_in_force(at).filter(|cover| !cover.is_empty()) else {
        return Some(up_to(0));
    };
    if cover.is_trial {
        return Some(up_to(new));
    }
    let now = at.max(before.starts_at);
    let is_same_cycle = cover
        .in_force(at)
        .all(|stretch| stretch.cycle == terms.cycle);
    if !is_same_cycle {
        return Some(up_to(new));
    }
    // A price set for the next period does not change what the stretch was bought for.
    let most = cover
        .in_force(at)
        .try_fold(Fraction::ZERO, |sum, stretch| {
            let difference = (new - old.min(stretch.amount())).max(0);
            let share = stretch.share(difference, now);
            sum.checked_add(share.unwrap_or(Fraction::from(difference)))
        })?;
    Some(Bounds {
        least: i128::MIN,
        most: most.ceil(),
    })
}

/// Returns the bounds of a change while a period is open: the used part counts at the old amount.
fn late_bounds(before: &State, terms: Terms, at: i64, fuzz: i64) -> Option<Bounds> {
    let (old, new) = (before.terms.amount(), terms.amount());
    let open = before.open.as_ref()?;
    let whole = i128::from(old) + i128::from(new);
    let Some(end) = open.end else {
        return Some(Bounds {
            least: i128::from(old) - 1,
            most: whole,
        });
    };
    let length = i128::from(end - open.start);
    let part = |amount: i64, time: i64| {
        Fraction::new(i128::from(amount) * i128::from(time.max(0)), length)
    };
    let used = |now: i64| part(old, now.min(end) - open.start);
    let least = used(at)?.floor() - 1;
    let is_in_place = end > at && before.terms.cycle == terms.cycle;
    let most = if is_in_place {
        let sum = |now: i64| used(now)?.checked_add(part(new, end - now)?);
        sum(at)?.ceil().max(sum(at + fuzz)?.ceil())
    } else if end <= at && before.mode == Mode::Paused {
        i128::from(old)
    } else {
        whole
    };
    Some(Bounds { least, most })
}

/// Returns by how much a call raised the value of credit and covered time.
fn rise(from: &State, to: &State, at: i64) -> Option<Fraction> {
    to.value(at)?.checked_sub(from.value(at)?)
}

/// Checks that a change never raises credit and the value of covered time.
///
/// Without changes that value only falls, so no sequence of changes raises it either.
fn check_value(step: &Step) -> Result<(), Violation> {
    let at = step.call.at;
    let early = rise(&step.before, &step.after, at).ok_or_else(|| overflow(at))?;
    let late = rise(&step.before, &step.after, at + step.fuzz).ok_or_else(|| overflow(at))?;
    let is_risen = |rise: Fraction| rise.cmp_integer(0) == Ordering::Greater;
    if is_risen(early) && is_risen(late) {
        let what = format!("a change raises the value by up to {}", early.ceil());
        return Err(fail(at, what));
    }
    Ok(())
}

/// Checks that a change and its undo at one instant cost at most a minor unit each.
fn check_undo(first: &Step, second: &Step) -> Result<(), Violation> {
    let at = second.call.at;
    let Verb::ChangeTerms { terms, .. } = second.call.verb else {
        return Ok(());
    };
    let (old, between) = (&first.before, first.after.terms);
    let is_pair = matches!(first.call.verb, Verb::ChangeTerms { .. })
        && first.call.at + SLACK >= at
        && old.terms == terms;
    let is_lifetime = [terms, between]
        .iter()
        .any(|terms| terms.cycle == Cycle::Lifetime);
    let is_trial = old.cover_in_force(at).is_some_and(|cover| cover.is_trial);
    if !is_pair || is_lifetime || is_trial || old.open.is_some() {
        return Ok(());
    }
    let (start, end) = (first.call.at, at + second.fuzz);
    let fall = rise(&second.after, old, end);
    // Between the two instants a few microseconds were used.
    let used = first.after.value(start).and_then(|value| {
        let rest = first.after.value(end)?;
        value.checked_sub(rest)
    });
    let fall = fall.and_then(|fall| fall.checked_sub(used?));
    let fall = fall.ok_or_else(|| overflow(at))?;
    if fall.cmp_integer(2) == Ordering::Greater {
        let what = format!("a change and its undo cost {}", fall.ceil());
        return Err(fail(at, what));
    }
    Ok(())
}

/// Returns whether a record still shows the state that managed mode left.
fn is_same(left: &State, shown: &Shown, at: i64) -> bool {
    let is_renewal_same = left.renews_at().is_none_or(|end| end == shown.renews_at);
    let is_end_same = !left.is_end_known || left.ends_at == shown.ends_at;
    left.terms == shown.terms
        && is_renewal_same
        && is_end_same
        && allowed_statuses(left, at).contains(&shown.status)
}

/// Checks that leaving and entering managed mode changes nothing.
fn check_identity(left: &Step, entered: &Step) -> Result<(), Violation> {
    let at = entered.call.at;
    if entered.has_posted {
        return Err(fail(at, "a switch there and back posts an entry"));
    }
    let rise = rise(&left.before, &entered.after, at).ok_or_else(|| overflow(at))?;
    if rise != Fraction::ZERO {
        let what = format!("a switch there and back adds {} in value", rise.ceil());
        return Err(fail(at, what));
    }
    Ok(())
}
