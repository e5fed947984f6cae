//! The scenarios of stolen tokens, concurrent tabs and lost responses, and their table for the guide.

use Detection::{After, NoThief, Undetected};
use Holder::{SecondTab, Thief, User};
use Outcome::{Accepted, Lost, Refused};
use Step::{CopyAccessToken, CopyTokens, LogOut, Refresh, RefreshAsOtherClient, Use, Wait};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// An event of the session, with its reason.
pub const REPEATED: &str = "session.refresh_repeated";
pub const REUSED: &str = "session.revoked (refresh_token_reused)";
pub const LOGGED_OUT: &str = "session.revoked (logout)";

/// A device or program that has tokens of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    User,
    /// Another tab of the user's browser, with the same tokens at first.
    SecondTab,
    /// Another device, at another address.
    Thief,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    /// Accepted by the service, but the response does not arrive.
    Lost,
    Refused,
}

#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Time passes, in seconds.
    Wait(i64),
    /// The holder gets a copy of the user's tokens.
    CopyTokens(Holder),
    CopyAccessToken(Holder),
    /// The holder sends its refresh token.
    Refresh(Holder, Outcome),
    /// The holder sends its refresh token with another `client-id`.
    RefreshAsOtherClient(Holder, Outcome),
    /// The holder sends its access token.
    Use(Holder, Outcome),
    /// The user logs out.
    LogOut,
}

/// When the service notices a thief: the first event, counted from the thief's first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    NoThief,
    /// In seconds.
    After(i64),
    /// There is nothing to notice, for this reason.
    Undetected(&'static str),
}

pub struct Scenario {
    pub name: &'static str,
    pub steps: &'static [Step],
    /// Whether the session is active at the end.
    pub stays_signed_in: bool,
    pub events: &'static [&'static str],
    pub detection: Detection,
}

/// Returns a scenario in which the session stays active.
const fn kept(
    name: &'static str,
    steps: &'static [Step],
    events: &'static [&'static str],
    detection: Detection,
) -> Scenario {
    Scenario {
        name,
        steps,
        stays_signed_in: true,
        events,
        detection,
    }
}

/// Returns a scenario in which the session ends.
const fn ended(
    name: &'static str,
    steps: &'static [Step],
    events: &'static [&'static str],
    detection: Detection,
) -> Scenario {
    Scenario {
        stays_signed_in: false,
        ..kept(name, steps, events, detection)
    }
}

#[rustfmt::skip]
pub const SCENARIOS: &[Scenario] = &[
    kept("Two tabs", &[
        CopyTokens(SecondTab), Refresh(User, Accepted), Use(User, Accepted),
        Wait(10), Refresh(SecondTab, Accepted), Use(SecondTab, Accepted),
        Wait(15 * MINUTE), Refresh(SecondTab, Accepted), Refresh(User, Accepted), Use(User, Accepted),
    ], &[], NoThief),
    kept("Lost response, retry after 10 s", &[
        Refresh(User, Lost), Wait(10), Refresh(User, Accepted), Use(User, Accepted),
    ], &[], NoThief),
    kept("Lost response, retry after 9 min", &[
        Refresh(User, Lost), Wait(9 * MINUTE), Refresh(User, Accepted), Use(User, Accepted),
    ], &[REPEATED], NoThief),
    kept("Lost response, two tabs retry after 5 min", &[
        CopyTokens(SecondTab), Refresh(User, Lost),
        Wait(5 * MINUTE), Refresh(User, Accepted), Use(User, Accepted),
        Wait(10), Refresh(SecondTab, Accepted), Use(SecondTab, Accepted),
    ], &[REPEATED], NoThief),
    ended("Lost response, lost again after 5 min", &[
        Refresh(User, Lost), Wait(5 * MINUTE), Refresh(User, Lost),
        Wait(MINUTE), Refresh(User, Refused),
    ], &[REPEATED, REUSED], NoThief),
    ended("Lost response, retry after 11 min", &[
        Refresh(User, Lost), Wait(11 * MINUTE), Refresh(User, Refused),
    ], &[REUSED], NoThief),
    kept("Laptop asleep for 8 h with an unspent token", &[
        Wait(8 * HOUR), Refresh(User, Accepted), Use(User, Accepted),
    ], &[], NoThief),
    ended("Laptop asleep for 8 h, thief refreshes meanwhile", &[
        CopyTokens(Thief), Wait(4 * HOUR), Refresh(Thief, Accepted), Use(Thief, Accepted),
        Wait(4 * HOUR), Refresh(User, Refused), Use(Thief, Refused), Refresh(Thief, Refused),
    ], &[REUSED], After(4 * HOUR)),
    ended("Thief first, user 5 min later", &[
        CopyTokens(Thief), Refresh(Thief, Accepted), Use(Thief, Accepted),
        Wait(5 * MINUTE), Refresh(User, Refused), Use(Thief, Refused),
    ], &[REUSED], After(5 * MINUTE)),
    ended("Thief first, user 31 s later", &[
        CopyTokens(Thief), Refresh(Thief, Accepted), Use(Thief, Accepted),
        Wait(31), Refresh(User, Refused), Use(Thief, Refused),
    ], &[REUSED], After(31)),
    ended("Thief first, user 20 s later", &[
        CopyTokens(Thief), Refresh(Thief, Accepted), Use(Thief, Accepted),
        Wait(20), Refresh(User, Accepted), Use(User, Accepted),
        Wait(14 * MINUTE + 40), Refresh(User, Accepted), Use(User, Accepted),
        Wait(MINUTE), Refresh(Thief, Refused), Use(User, Refused),
    ], &[REUSED], After(16 * MINUTE)),
    ended("Thief first but does not use the new tokens, user 9 min later", &[
        CopyTokens(Thief), Refresh(Thief, Accepted),
        Wait(9 * MINUTE), Refresh(User, Accepted), Use(User, Accepted),
        Wait(6 * MINUTE), Refresh(User, Accepted), Use(User, Accepted),
        Wait(MINUTE), Refresh(Thief, Refused), Use(User, Refused),
    ], &[REPEATED, REUSED], After(9 * MINUTE)),
    ended("Thief first but does not use the new tokens, user 11 min later", &[
        CopyTokens(Thief), Refresh(Thief, Accepted),
        Wait(11 * MINUTE), Refresh(User, Refused), Use(Thief, Refused),
    ], &[REUSED], After(11 * MINUTE)),
    ended("Thief two steps ahead", &[
        CopyTokens(Thief), Refresh(Thief, Accepted), Refresh(Thief, Accepted),
        Wait(5), Refresh(User, Refused), Use(Thief, Refused),
    ], &[REUSED], After(5)),
    ended("User first, thief 5 min later", &[
        CopyTokens(Thief), Refresh(User, Accepted), Use(User, Accepted),
        Wait(5 * MINUTE), Refresh(Thief, Refused), Use(User, Refused),
    ], &[REUSED], After(0)),
    ended("User first but does not use the new tokens, thief 9 min later", &[
        CopyTokens(Thief), Refresh(User, Accepted),
        Wait(9 * MINUTE), Refresh(Thief, Accepted),
        Wait(6 * MINUTE), Refresh(User, Accepted), Use(User, Accepted),
        Wait(MINUTE), Refresh(Thief, Refused), Use(User, Refused),
    ], &[REPEATED, REUSED], After(0)),
    ended("User first, thief 20 s later", &[
        CopyTokens(Thief), Refresh(User, Accepted), Use(User, Accepted),
        Wait(20), Refresh(Thief, Accepted), Use(Thief, Accepted),
        Wait(15 * MINUTE), Refresh(User, Accepted), Use(User, Accepted),
        Wait(MINUTE), Refresh(Thief, Refused), Use(User, Refused),
    ], &[REUSED], After(16 * MINUTE)),
    ended("Thief with a token from two refreshes ago", &[
        CopyTokens(Thief), Refresh(User, Accepted), Refresh(User, Accepted),
        Wait(1), Refresh(Thief, Refused), Use(User, Refused),
    ], &[REUSED], After(0)),
    kept("Thief with the access token only", &[
        CopyAccessToken(Thief), Use(Thief, Accepted), Wait(14 * MINUTE), Use(Thief, Accepted),
        Refresh(User, Accepted), Wait(2 * MINUTE), Use(Thief, Refused), Use(User, Accepted),
    ], &[], Undetected("no; the token expires 15 min after it was issued")),
    kept("Thief with another `client-id`", &[
        CopyTokens(Thief), RefreshAsOtherClient(Thief, Refused), Refresh(User, Accepted),
        Wait(MINUTE), RefreshAsOtherClient(Thief, Refused), Use(User, Accepted),
    ], &[], Undetected("refused, counted and logged")),
    ended("Thief after logout", &[
        CopyTokens(Thief), LogOut, Use(Thief, Refused), Refresh(Thief, Refused),
    ], &[LOGGED_OUT], Undetected("refused, counted and logged")),
];

/// Returns the scenarios as a Markdown table.
pub fn table() -> String {
    let mut table =
        "| scenario | requests | session | events | detected after |\n|---|---|---|---|---|\n"
            .to_owned();
    for scenario in SCENARIOS {
        let session = if scenario.stays_signed_in {
            "continues"
        } else {
            "ends"
        };
        let events: Vec<String> = { scenario.events.iter() }
            .map(|event| match event.split_once(" (") {
                Some((kind, reason)) => format!("`{kind}` (`{}`)", reason.trim_end_matches(')')),
                None => format!("`{event}`"),
            })
            .collect();
        let detected = match scenario.detection {
            NoThief => "–".to_owned(),
            After(0) => "at once".to_owned(),
            After(seconds) => duration(seconds),
            Undetected(reason) => reason.to_owned(),
        };
        table += &format!(
            "| {} | {} | {session} | {} | {detected} |\n",
            scenario.name,
            requests(scenario.steps),
            if events.is_empty() {
                "–".to_owned()
            } else {
                events.join(", ")
            },
        );
    }
    table
}

/// Describes the requests of a scenario with their times.
fn requests(steps: &[Step]) -> String {
    let mut text = String::new();
    let mut now = 0;
    let (mut shown_time, mut shown_holder) = (None, None);
    for step in steps {
        let (holder, verb, outcome) = match *step {
            Wait(seconds) => {
                now += seconds;
                continue;
            }
            CopyTokens(_) | CopyAccessToken(_) => continue,
            Refresh(holder, outcome) | RefreshAsOtherClient(holder, outcome) => {
                (holder, "refreshes", outcome)
            }
            Use(holder, outcome) => (holder, "calls the API", outcome),
            LogOut => (User, "logs out", Accepted),
        };
        if shown_time != Some(now) {
            let separator = if text.is_empty() { "" } else { "; " };
            text += &format!("{separator}{}: ", duration(now));
        } else if shown_holder == Some(holder) {
            text += " and ";
        } else {
            text += ", ";
        }
        if (shown_time, shown_holder) != (Some(now), Some(holder)) {
            text += match holder {
                User => "user ",
                SecondTab => "second tab ",
                Thief => "thief ",
            };
        }
        (shown_time, shown_holder) = (Some(now), Some(holder));
        text += verb;
        text += match outcome {
            Accepted => "",
            Lost => " (response lost)",
            Refused => " (401)",
        };
    }
    text
}

/// Formats seconds, as in `14 min 40 s`.
fn duration(seconds: i64) -> String {
    let parts = [
        (seconds / HOUR, "h"),
        (seconds % HOUR / MINUTE, "min"),
        (seconds % MINUTE, "s"),
    ];
    let parts: Vec<String> = { parts.iter() }
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    if parts.is_empty() {
        "0 s".to_owned()
    } else {
        parts.join(" ")
    }
}
