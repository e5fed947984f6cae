//! Stolen tokens: what each scenario does to the session, its events, and when it is detected.

mod scenarios;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use scenarios::{Detection, Holder, Outcome, SCENARIOS, Scenario, Step};
use tokio_postgres::Client;

use crate::harness::{
    api::{ApiClient, ApiResponse},
    auth::SessionTokens,
    generated_file,
    service::{InProcessService, Service},
};

/// What all scenarios share.
struct Stage {
    service: InProcessService,
    database: Client,
    api: ApiClient,
    other_client: ApiClient,
}

impl Stage {
    async fn start() -> Self {
        let service = Service::start_in_process_with_fixed_clock().await;
        Self {
            database: service.database.connect().await,
            api: service.api(&[]),
            other_client: service.api(&[]),
            service,
        }
    }
}

/// A session and the tokens that each holder has.
struct Playback<'a> {
    stage: &'a Stage,
    session: String,
    access: BTreeMap<Holder, String>,
    refresh: BTreeMap<Holder, String>,
    started_at: Timestamp,
    /// Seconds since the start.
    now: i64,
}

impl<'a> Playback<'a> {
    async fn start(stage: &'a Stage, email: &str) -> Self {
        let started_at = Timestamp::now();
        let clock = &stage.service.server.app.clock;
        clock.set(started_at.as_microsecond());
        let tokens = stage.api.sign_up(email).await;
        let mut playback = Self {
            stage,
            session: tokens.session().to_owned(),
            access: BTreeMap::new(),
            refresh: BTreeMap::new(),
            started_at,
            now: 0,
        };
        playback.store(Holder::User, &tokens);
        playback
    }

    fn store(&mut self, holder: Holder, tokens: &SessionTokens) {
        self.access.insert(holder, tokens.access().to_owned());
        self.refresh.insert(holder, tokens.refresh().to_owned());
    }

    /// Lets time pass, for the service and for the database.
    async fn wait(&mut self, seconds: i64) {
        self.now += seconds;
        let now = self.started_at + SignedDuration::from_secs(self.now);
        let clock = &self.stage.service.server.app.clock;
        clock.set(now.as_microsecond());
        let sql = format!(
            "UPDATE sessions SET refreshed_at = refreshed_at - interval '{seconds} seconds' WHERE {}",
            self.is_session("id")
        );
        let updated = self.stage.database.execute(&sql, &[]).await;
        assert_eq!(updated.unwrap(), 1);
    }

    fn is_session(&self, column: &str) -> String {
        let digits = self.session.strip_prefix("ses_").unwrap();
        format!("{column} = '{digits}'::uuid")
    }

    /// Returns the session's events, oldest first, each with its reason.
    async fn events(&self) -> Vec<String> {
        let sql = format!(
            "SELECT kind || coalesce(' (' || (data->>'reason') || ')', '') FROM events
             WHERE {} AND kind <> 'session.created' ORDER BY at, id",
            self.is_session("subject_id")
        );
        let rows = self.stage.database.query(&sql, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn is_active(&self) -> bool {
        let sql = format!(
            "SELECT FROM sessions WHERE ended_at IS NULL AND {}",
            self.is_session("id")
        );
        let row = self.stage.database.query_opt(&sql, &[]).await;
        row.unwrap().is_some()
    }

    /// Returns an API client at the holder's address.
    fn at(holder: Holder, api: &ApiClient) -> ApiClient {
        let address = match holder {
            Holder::User | Holder::SecondTab => "203.0.113.7",
            Holder::Thief => "198.51.100.9",
        };
        api.with("x-forwarded-for", address)
    }

    async fn run(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Wait(seconds) => self.wait(seconds).await,
            Step::CopyTokens(holder) => {
                let refresh = self.refresh[&Holder::User].clone();
                self.refresh.insert(holder, refresh);
                let access = self.access[&Holder::User].clone();
                self.access.insert(holder, access);
            }
            Step::CopyAccessToken(holder) => {
                let access = self.access[&Holder::User].clone();
                self.access.insert(holder, access);
            }
            Step::Refresh(holder, outcome) => {
                let api = Self::at(holder, &self.stage.api);
                let response = api.refresh(&self.refresh[&holder]).await;
                check(&response, outcome, "invalid_grant")?;
                if outcome == Outcome::Accepted {
                    self.store(holder, &SessionTokens::from_response(&response));
                }
            }
            Step::RefreshAsOtherClient(holder, outcome) => {
                let api = Self::at(holder, &self.stage.other_client);
                let response = api.refresh(&self.refresh[&holder]).await;
                check(&response, outcome, "invalid_grant")?;
            }
            Step::Use(holder, outcome) => {
                let api = Self::at(holder, &self.stage.api);
                let response = api.check(&self.access[&holder]).await;
                check(&response, outcome, "invalid_token")?;
            }
            Step::LogOut => {
                let api = self.stage.api.with_bearer(&self.access[&Holder::User]);
                let path = "/authentication/tokens/logout";
                let response = api.send(reqwest::Method::POST, path, None).await;
                check(&response, Outcome::Accepted, "")?;
            }
        }
        Ok(())
    }
}

fn check(response: &ApiResponse, outcome: Outcome, code: &str) -> Result<(), String> {
    let as_expected = match outcome {
        Outcome::Accepted | Outcome::Lost => response.status == 200,
        Outcome::Refused => response.status == 401 && response.problem() == code,
    };
    let difference = || format!("not {outcome:?}: {} {}", response.status, response.text);
    as_expected.then_some(()).ok_or_else(difference)
}

/// Plays a scenario. The error is its first difference from the table.
async fn play(stage: &Stage, number: usize, scenario: &Scenario) -> Result<(), String> {
    let email = format!("user{number}@example.com");
    let mut playback = Playback::start(stage, &email).await;
    let (mut theft, mut detection) = (None, None);
    for step in scenario.steps {
        if let Step::Refresh(Holder::Thief, _) | Step::Use(Holder::Thief, _) = step {
            theft.get_or_insert(playback.now);
        }
        let played = playback.run(*step).await;
        played.map_err(|difference| format!("{} s, {step:?}: {difference}", playback.now))?;
        let detected = { playback.events().await }
            .iter()
            .any(|event| event != scenarios::LOGGED_OUT);
        if detected && detection.is_none() {
            detection = Some(playback.now);
        }
    }
    let expected = match scenario.detection {
        Detection::After(seconds) => Some(seconds),
        Detection::NoThief | Detection::Undetected(_) => None,
    };
    let measured = theft.and_then(|theft| Some(detection? - theft));
    if measured != expected {
        return Err(format!("detected after {measured:?} s, not {expected:?}"));
    }
    let events = playback.events().await;
    if events != scenario.events {
        return Err(format!("events {events:?}, not {:?}", scenario.events));
    }
    let is_active = playback.is_active().await;
    let difference = || format!("the session is active: {is_active}");
    (is_active == scenario.stays_signed_in)
        .then_some(())
        .ok_or_else(difference)
}

#[tokio::test]
async fn token_theft_scenarios_match_their_table() {
    let stage = Stage::start().await;
    let mut differences = String::new();
    for (number, scenario) in SCENARIOS.iter().enumerate() {
        if let Err(difference) = play(&stage, number, scenario).await {
            differences += &format!("{}: {difference}\n", scenario.name);
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

/// `just reference` writes the table.
#[test]
fn guide_lists_every_token_theft_scenario() {
    let path = "docs/how-to/sessions-and-tokens.md";
    let page = generated_file::read(path);
    let heading = "| scenario | requests |";
    let start = page.find(heading).unwrap_or(page.len());
    let end = page[start..]
        .find("\n\n")
        .map_or(page.len(), |end| start + end + 1);
    let table = scenarios::table();
    generated_file::assert_current(path, &[&page[..start], &table, &page[end..]].concat());
}
