//! Response times do not reveal whether an account or a session exists.
//!
//! Requests of two kinds are sent over one connection in random order. Welch's t-test compares their
//! times: for equal distributions, |t| exceeds 4.5 once in 150,000 runs. The slowest 5% of both kinds are
//! dropped as noise, as dudect does. `SAMPLES` sets the number of requests of each kind; `just prove timing-attack`
//! uses 100,000.

use std::time::Instant;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use perennial::randomness::Randomness;

use crate::harness::{env_number, raw_connection::RawConnection, service::Service};

fn samples() -> usize {
    env_number("SAMPLES").unwrap_or(5_000)
}

fn mean_and_variance(times: &[f64]) -> (f64, f64) {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, variance / count)
}

fn welch(times: &[Vec<f64>; 2]) -> f64 {
    // One bound for both kinds.
    let mut all: Vec<f64> = times.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let bound = all[all.len() * 19 / 20];
    let [one, other] = [0, 1].map(|kind: usize| {
        let kept: Vec<f64> = times[kind]
            .iter()
            .copied()
            .filter(|time| *time <= bound)
            .collect();
        mean_and_variance(&kept)
    });
    (one.0 - other.0) / (one.1 + other.1).sqrt()
}

/// Compares two kinds of requests that must have the same response.
async fn compare(what: &str, service: &Service, status: &str, create: [&dyn Fn() -> Vec<u8>; 2]) {
    let mut connection = RawConnection::open(&service.server.url).await;
    let mut times = [Vec::new(), Vec::new()];
    // The first 1,000 requests are a warm-up.
    for round in 0..samples() * 2 + 1_000 {
        let [random] = Randomness.bytes();
        let kind = usize::from(random & 1);
        let request = create[kind]();
        let started = Instant::now();
        let response = connection.send(&request).await;
        let time = started.elapsed().as_nanos() as f64;
        assert!(response.starts_with(status), "{response}");
        if round >= 1_000 {
            times[kind].push(time);
        }
    }
    let t = welch(&times);
    let each = times[0].len().min(times[1].len());
    println!("{what}: t = {t:.2} over {each} of each");
    assert!(t.abs() < 4.5, "{what}: t = {t}");
}

/// Malformed input: 80.
#[tokio::test]
async fn response_time_reveals_no_account_or_session() {
    let service = Service::start().await;
    let (_, client) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &client);
    let own = api.sign_up("ada@example.com").await;
    let mut users = Vec::new();
    let mut sessions = Vec::new();
    for number in 0..50 {
        let other = api.sign_up(&format!("user{number}@example.com")).await;
        users.push(other.user().to_owned());
        sessions.push(other.refresh().to_owned());
    }
    let pick = |from: &[String]| {
        let [random] = Randomness.bytes();
        from[usize::from(random) % from.len()].clone()
    };
    let delete = |id: String| {
        let path = format!("/authentication/delete-my-account/{id}");
        let bearer = own.access();
        format!("DELETE {path} HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\nauthorization: Bearer {bearer}\r\n\r\n")
            .into_bytes()
    };
    let existing = || delete(pick(&users));
    // Generated beforehand, because the work before a request must not differ either.
    let unknown: Vec<String> = users
        .iter()
        .map(|id| {
            let random: [u8; 10] = Randomness.bytes();
            format!("{}{}", &id[..16], hex::encode(random))
        })
        .collect();
    let missing = || delete(pick(&unknown));
    compare(
        "auth_id of an existing or missing user",
        &service,
        "HTTP/1.1 403",
        [&existing, &missing],
    )
    .await;

    // Forged refresh tokens for an existing and for a missing session.
    let refresh = |token: String| {
        let body = format!("{{\"refresh_token\":\"{token}\"}}");
        let length = body.len();
        format!(
            "POST /authentication/refresh-token HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    // All have a random signature; the missing session has a random id as well. A token of an unknown
    // master key is looked up in the database, because it may be one of a replaced key.
    let forged = |is_missing: bool, is_of_unknown_key: bool| {
        let token = pick(&sessions);
        let mut bytes = BASE64
            .decode(token.strip_prefix("prn_rt_").unwrap())
            .unwrap();
        let random: [u8; 48] = Randomness.bytes();
        // The token ends with the session (16 bytes), the generation (4), the salt (16) and the signature.
        let signature = bytes.len() - 32;
        let session = signature - 36;
        bytes[signature..].copy_from_slice(&random[..32]);
        let id = if is_missing {
            &random[32..]
        } else {
            &bytes[session..session + 16].to_vec()
        };
        bytes[session..session + 16].copy_from_slice(id);
        // The token starts with a version and the id of the master key (4).
        bytes[1] ^= u8::from(is_of_unknown_key);
        refresh(format!("prn_rt_{}", BASE64.encode(bytes)))
    };
    for (what, is_of_unknown_key) in [
        ("refresh token of an existing or missing session", false),
        ("refresh token of an unknown master key", true),
    ] {
        let existing = || forged(false, is_of_unknown_key);
        let missing = || forged(true, is_of_unknown_key);
        compare(what, &service, "HTTP/1.1 401", [&existing, &missing]).await;
    }
}
