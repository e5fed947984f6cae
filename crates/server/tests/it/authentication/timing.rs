//! Time tells nothing: whether an id is somebody's, or a session was ever there, cannot be measured.
//!
//! Two kinds of request are sent over one connection in a random order, and their times compared by Welch's t-test:
//! were they drawn from one distribution, |t| would pass 4.5 once in 150,000 times. The slowest twentieth is what the
//! machine did meanwhile, and is left out on both sides alike, as dudect does. `SAMPLES` says how many of
//! each kind; `just timing` takes 100,000.

use std::time::Instant;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use perennial::randomness::Randomness;

use crate::harness::{line::Line, service::Service};

fn samples() -> usize {
    let given = std::env::var("SAMPLES").ok();
    given.map_or(10_000, |samples| samples.parse().unwrap())
}

fn mean_and_variance(times: &[f64]) -> (f64, f64) {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, variance / count)
}

fn welch(times: &[Vec<f64>; 2]) -> f64 {
    // One bound for both.
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

/// Compares requests of two kinds, all of which must be answered alike; each is made anew.
async fn compare(what: &str, service: &Service, status: &str, make: [&dyn Fn() -> Vec<u8>; 2]) {
    let mut line = Line::to(&service.server.url).await;
    let mut times = [Vec::new(), Vec::new()];
    // The first ones warm up.
    for round in 0..samples() * 2 + 1_000 {
        let [random] = Randomness.bytes();
        let kind = usize::from(random & 1);
        let request = make[kind]();
        let begun = Instant::now();
        let answer = line.ask(&request).await;
        let time = begun.elapsed().as_nanos() as f64;
        assert!(answer.starts_with(status), "{answer}");
        if round >= 1_000 {
            times[kind].push(time);
        }
    }
    let t = welch(&times);
    let each = times[0].len().min(times[1].len());
    println!("{what}: t = {t:.2} over {each} of each");
    assert!(t.abs() < 4.5, "{what}: t = {t}");
}

/// Catalogue: 80.
#[tokio::test]
async fn time_does_not_tell_alone() {
    let service = Service::start().await;
    let (_, client) = service.make_client(&[]);
    let caller = service.anonymous().with("client-id", &client);
    let own = caller.sign_up("ada@example.com").await;
    let mut real = Vec::new();
    let mut sessions = Vec::new();
    for number in 0..50 {
        let other = caller.sign_up(&format!("user{number}@example.com")).await;
        real.push(other.user().to_owned());
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
    let of_real = || delete(pick(&real));
    // As many, made beforehand: what is done before a request must not differ either.
    let unreal: Vec<String> = real
        .iter()
        .map(|id| {
            let random: [u8; 10] = Randomness.bytes();
            let digits = random.map(|byte| format!("{byte:02x}")).concat();
            format!("{}{digits}", &id[..16])
        })
        .collect();
    let of_nobody = || delete(pick(&unreal));
    compare(
        "another's auth_id, real or not",
        &service,
        "HTTP/1.1 403",
        [&of_real, &of_nobody],
    )
    .await;

    // A refresh token of a session that is there, and of one that is not, neither of which we made.
    let refresh = |token: String| {
        let body = format!("{{\"refresh_token\":\"{token}\"}}");
        let length = body.len();
        format!(
            "POST /authentication/refresh-token HTTP/1.1\r\nhost: x\r\nclient-id: {client}\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    // With a proof of chance in both; of the unknown ones the session's id is by chance too.
    let forged = |from: usize| {
        let token = pick(&sessions);
        let mut bytes = BASE64
            .decode(token.strip_prefix("prn_rt_").unwrap())
            .unwrap();
        let random: [u8; 69] = Randomness.bytes();
        let proof = bytes.len() - 32;
        bytes[proof..].copy_from_slice(&random[..32]);
        bytes[1..from].copy_from_slice(&random[32..31 + from]);
        refresh(format!("prn_rt_{}", BASE64.encode(bytes)))
    };
    let (of_known, of_unknown) = (|| forged(1), || forged(17));
    let kinds: [&dyn Fn() -> Vec<u8>; 2] = [&of_known, &of_unknown];
    compare("a session, known or not", &service, "HTTP/1.1 401", kinds).await;
}
