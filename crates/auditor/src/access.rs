//! The access law: what a read may and must show in a reconstructed state.

use crate::coverage::{Mode, Stage, State};
use crate::replay::fail;
use crate::{Probe, SLACK, Status, Violation};

/// Checks one read against the state at its instant.
pub(crate) fn check_probe(state: &State, probe: &Probe) -> Result<(), Violation> {
    if state.stage == Stage::Unmanaged {
        return Ok(());
    }
    let at = probe.at;
    if probe.credit != state.credit {
        let what = format!(
            "credit is {}, the ledger gives {}",
            probe.credit, state.credit
        );
        return Err(fail(at, what));
    }
    if probe.terms != state.terms {
        let what = format!(
            "terms are {:?}, the calls give {:?}",
            probe.terms, state.terms
        );
        return Err(fail(at, what));
    }
    if probe.suspended != state.is_suspended {
        return Err(fail(at, format!("suspended is {}", probe.suspended)));
    }
    // The start of a call may have moved on by a few microseconds.
    let starts_at = state.starts_at..=state.starts_at + SLACK;
    if !starts_at.contains(&probe.starts_at) {
        let what = format!(
            "starts_at is {}, the calls give {}",
            probe.starts_at, state.starts_at
        );
        return Err(fail(at, what));
    }
    check_status(state, probe)?;
    check_dates(state, probe)?;
    check_access(state, probe)
}

/// Returns the statuses that a state allows at an instant.
pub(crate) fn allowed_statuses(state: &State, at: i64) -> Vec<Status> {
    match (state.stage, state.mode) {
        (Stage::Unmanaged, _) => Vec::new(),
        (Stage::Ended, _) => vec![Status::Expired],
        (_, Mode::Paused) => vec![Status::Paused],
        (_, Mode::Cancelled) => vec![Status::Cancelled],
        (Stage::Pending, Mode::Normal) => vec![Status::Pending],
        (Stage::Running, Mode::Normal) => running_statuses(state, at),
    }
}

fn running_statuses(state: &State, at: i64) -> Vec<Status> {
    if let Some(late) = &state.late {
        return match at < late.grace_until {
            _ if late.fuzz > 0 => vec![Status::PastDue, Status::Unpaid],
            true => vec![Status::PastDue],
            false => vec![Status::Unpaid],
        };
    }
    match &state.cover {
        Some(cover) if cover.is_trial => vec![Status::OnTrial],
        _ => vec![Status::Active],
    }
}

fn check_status(state: &State, probe: &Probe) -> Result<(), Violation> {
    let allowed = allowed_statuses(state, probe.at);
    if allowed.contains(&probe.status) {
        return Ok(());
    }
    let what = format!(
        "status is {:?}, the history allows {allowed:?}",
        probe.status
    );
    Err(fail(probe.at, what))
}

/// Checks `renews_at` against covered time and `ends_at` against the calls.
fn check_dates(state: &State, probe: &Probe) -> Result<(), Violation> {
    if state.stage != Stage::Running {
        return Ok(());
    }
    if let Some(renews_at) = state.renews_at() {
        let is_close = match (renews_at, probe.renews_at) {
            (Some(derived), Some(shown)) => (derived..=derived + state.fuzz).contains(&shown),
            (derived, shown) => derived == shown,
        };
        if !is_close {
            let shown = probe.renews_at;
            let what = format!("renews_at is {shown:?}, covered time ends at {renews_at:?}");
            return Err(fail(probe.at, what));
        }
    }
    if state.is_end_known && probe.ends_at != state.ends_at {
        let what = format!(
            "ends_at is {:?}, the calls give {:?}",
            probe.ends_at, state.ends_at
        );
        return Err(fail(probe.at, what));
    }
    Ok(())
}

fn check_access(state: &State, probe: &Probe) -> Result<(), Violation> {
    let at = probe.at;
    let refusal = refusal(state, probe);
    if probe.access {
        return match refusal {
            Some(why) => Err(fail(at, format!("access while {why}"))),
            None => Ok(()),
        };
    }
    let is_covered = state.cover_at(at).is_some() && state.late.is_none() && state.credit >= 0;
    if refusal.is_none() && is_covered {
        return Err(fail(at, "no access inside covered time"));
    }
    Ok(())
}

/// Returns why a state gives no access; `None` if it gives or may give access.
fn refusal(state: &State, probe: &Probe) -> Option<&'static str> {
    let at = probe.at;
    match (state.stage, state.mode) {
        (Stage::Pending, _) => return Some("pending"),
        (Stage::Ended, _) => return Some("ended"),
        (_, Mode::Paused) => return Some("paused"),
        _ => {}
    }
    if state.is_suspended {
        return Some("suspended");
    }
    if at < state.starts_at {
        return Some("not started");
    }
    if state.ends_at.is_some_and(|end| at >= end) || probe.ends_at.is_some_and(|end| at >= end) {
        return Some("past ends_at");
    }
    if matches!(
        probe.status,
        Status::Pending | Status::Paused | Status::Unpaid | Status::Expired
    ) {
        return Some("the status shown excludes access");
    }
    if state.amount() == 0 {
        return None;
    }
    if let Some(late) = &state.late {
        return (at >= late.grace_until + late.fuzz).then_some("late, after the grace");
    }
    match state.cover_at(at) {
        None => Some("nothing is covered"),
        Some(_) if state.credit < 0 => Some("credit is negative"),
        Some(_) => None,
    }
}
