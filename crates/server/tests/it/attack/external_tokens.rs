//! Forged and misused tokens of identity providers, sent to the sign-in endpoint.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, crypto::sign, jwk::Jwk};
use serde_json::{Value, json};

use super::{AttackReport, outcome};
use crate::{
    harness::{
        identity_provider::{FakeIssuer, IssuerBehavior, TOKEN_HEADER},
        process::run_ok,
        service::Service,
    },
    malformed_input::target::state,
};

const EMAIL: &str = "a@example.com";

/// An ES256 key that an issuer publishes beside its own.
struct EcKey {
    key: EncodingKey,
    jwk: Value,
}

impl EcKey {
    fn generate() -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EncodingKey::from_ec_der(der.as_ref());
        let mut jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some("ec".to_owned());
        let jwk = serde_json::to_value(jwk).unwrap();
        Self { key, jwk }
    }

    /// Returns a token with a signature that `change` has changed.
    fn token(&self, claims: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> String {
        let header = r#"{"alg":"ES256","typ":"at+jwt","kid":"ec"}"#;
        let message = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        let signature = sign(message.as_bytes(), &self.key, Algorithm::ES256).unwrap();
        let signature = change(BASE64.decode(signature).unwrap());
        format!("{message}.{}", BASE64.encode(signature))
    }
}

/// Encodes a signature as DER, as X.509 does, instead of as two numbers of 32 bytes.
fn to_der(signature: &[u8]) -> Vec<u8> {
    let mut numbers = Vec::new();
    for number in signature.chunks(32) {
        // A leading zero keeps the number positive.
        numbers.extend([2, 33, 0]);
        numbers.extend(number);
    }
    [&[0x30, numbers.len() as u8], numbers.as_slice()].concat()
}

/// The order of the curve P-256.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6,
    0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// Malformed input: 68, 69, 70, 71, 72, 73, 75.
#[tokio::test]
async fn forged_external_tokens_do_not_sign_in() {
    let issuer = FakeIssuer::start().await;
    let ec = EcKey::generate();
    let mut keys = issuer.keys.clone();
    keys["keys"].as_array_mut().unwrap().push(ec.jwk.clone());
    issuer.set_behavior(IssuerBehavior::Keys(keys));
    let stranger = FakeIssuer::start().await;
    let service = Service::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    for (tenant, issuer) in [("default", &issuer), ("other", &stranger)] {
        let provider = ["--issuer", &*issuer.issuer, "--audience", "product"];
        let add = ["provider", "add", "--tenant", tenant];
        run_ok(&service.variables, &[&add[..], &provider].concat());
    }
    let server = service.api(&["--tenant", "default"]);
    let good = issuer.token_with("x", None);
    let signed_up = server.authenticate("sign-up", &good, EMAIL).await;
    assert_eq!(signed_up.status, 201, "{}", signed_up.text);
    let claims =
        String::from_utf8(BASE64.decode(good.split('.').nth(1).unwrap()).unwrap()).unwrap();
    let genuine = ec.token(&claims, |signature| signature);
    let signed_in = server.authenticate("sign-in", &genuine, EMAIL).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    let before = state(&service.database).await;

    let parts: Vec<&str> = good.split('.').collect();
    let (header, payload, signature) = (parts[0], parts[1], parts[2]);
    let unsigned = |header: Value| format!("{}.{payload}", BASE64.encode(header.to_string()));
    let mut attacks: Vec<(String, String)> = Vec::new();
    let mut attack = |name: &str, token: String| attacks.push((name.to_owned(), token));

    // The algorithm.
    for alg in [
        "none", "None", "nOnE", "", "HS256", "HS512", "RS256", "PS256", "ES256", "ES512", "EdDSA2",
        "XX",
    ] {
        let message = unsigned(json!({"alg": alg, "kid": "own"}));
        attack(&format!("alg {alg:?}, no signature"), format!("{message}."));
        attack(
            &format!("alg {alg:?}, signature kept"),
            format!("{message}.{signature}"),
        );
    }
    let public = issuer.keys["keys"][0]["x"].as_str().unwrap().to_owned();
    for (form, secret) in [
        ("encoded", public.clone().into_bytes()),
        ("raw", BASE64.decode(&public).unwrap()),
        ("JWK", issuer.keys["keys"][0].to_string().into_bytes()),
        ("empty", Vec::new()),
    ] {
        let message = unsigned(json!({"alg": "HS256", "kid": "own"}));
        let key = EncodingKey::from_secret(&secret);
        let mac = sign(message.as_bytes(), &key, Algorithm::HS256).unwrap();
        attack(
            &format!("HS256 with the public key ({form})"),
            format!("{message}.{mac}"),
        );
    }
    let without_alg = unsigned(json!({"kid": "own"}));
    attack("no alg", format!("{without_alg}.{signature}"));
    let other_key = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "ec"}).to_string();
    attack(
        "kid of a key for another algorithm",
        issuer.sign(&other_key, &claims),
    );

    // The key.
    for kid in [
        "../../../dev/null",
        "../../etc/passwd",
        "/proc/self/environ",
        "own' UNION SELECT 'x' --",
        "' OR 1=1 --",
        "http://127.0.0.1:1/keys",
        "own\u{0}",
        "own ",
        "OWN",
        "",
    ] {
        let header = json!({"alg": "EdDSA", "kid": kid}).to_string();
        attack(&format!("kid {kid:?}"), issuer.sign(&header, &claims));
    }
    let their_jwk = &stranger.keys["keys"][0];
    for (field, value) in [
        ("jwk", their_jwk.clone()),
        ("jku", json!(format!("{}/jwks", stranger.issuer))),
        ("x5u", json!(format!("{}/jwks", stranger.issuer))),
        ("x5c", json!(["MIIB"])),
    ] {
        let mut header = json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "own"});
        header[field] = value;
        attack(
            &format!("{field} in the header"),
            stranger.sign(&header.to_string(), &claims),
        );
    }
    attack(
        "signed with another issuer's key",
        stranger.sign(TOKEN_HEADER, &claims),
    );
    attack(
        "crit",
        issuer.sign(r#"{"alg":"EdDSA","kid":"own","crit":["exp"]}"#, &claims),
    );
    attack(
        "b64 false",
        issuer.sign(
            r#"{"alg":"EdDSA","kid":"own","b64":false,"crit":["b64"]}"#,
            &claims,
        ),
    );

    // Other kinds of tokens with a valid signature.
    for typ in [
        "logout+jwt",
        "secevent+jwt",
        "dpop+jwt",
        "application/logout+jwt",
    ] {
        let header = json!({"alg": "EdDSA", "typ": typ, "kid": "own"}).to_string();
        attack(&format!("typ {typ}"), issuer.sign(&header, &claims));
    }
    let untyped = r#"{"alg":"EdDSA","typ":"JWT","kid":"own"}"#;
    for (name, extra) in [
        ("ID token (nonce)", r#""nonce":"n""#),
        ("ID token (at_hash)", r#""at_hash":"h""#),
        ("ID token (token_use)", r#""token_use":"id""#),
        ("refresh token (typ claim)", r#""typ":"Refresh""#),
        (
            "security event (events)",
            r#""events":{"http://schemas.openid.net/event/backchannel-logout":{}}"#,
        ),
        ("bound token (cnf)", r#""cnf":{"jkt":"x"}"#),
    ] {
        attack(
            name,
            issuer.sign(untyped, &claims.replacen('{', &format!("{{{extra},"), 1)),
        );
    }

    // The claims.
    let now = Timestamp::now().as_second();
    for (claim, values) in [
        (
            "exp",
            vec![
                "0",
                "-1",
                r#""9999999999""#,
                "null",
                "true",
                "[9999999999]",
                "-1e300",
            ],
        ),
        ("nbf", vec!["9999999999", "1e300", r#""0""#]),
        (
            "iss",
            vec![
                "null",
                r#""""#,
                "[]",
                r#"["x"]"#,
                "1",
                r#""http://127.0.0.1:1""#,
            ],
        ),
        (
            "aud",
            vec![
                "null",
                r#""""#,
                "[]",
                "1",
                r#""Product""#,
                r#"["x"]"#,
                r#"["x","y"]"#,
                r#"{"product":1}"#,
            ],
        ),
        (
            "sub",
            vec!["null", r#""""#, "1", "[]", r#"["u1"]"#, r#""u\u0000""#],
        ),
    ] {
        if claim != "nbf" {
            attack(&format!("no {claim}"), issuer.token_with(claim, None));
        }
        for value in values {
            attack(
                &format!("{claim} {value}"),
                issuer.token_with(claim, Some(value)),
            );
        }
    }
    let long = json!("x".repeat(256)).to_string();
    attack(
        "sub of 256 characters",
        issuer.token_with("sub", Some(&long)),
    );
    let ago = (now - 61).to_string();
    attack(
        "expired 61 seconds ago",
        issuer.token_with("exp", Some(&ago)),
    );
    for (name, other) in [
        ("iss with a slash", format!("{}/", issuer.issuer)),
        ("iss in capitals", issuer.issuer.to_uppercase()),
        (
            "iss of the other tenant's provider",
            stranger.issuer.clone(),
        ),
    ] {
        attack(
            name,
            issuer.token_with("iss", Some(&json!(other).to_string())),
        );
    }
    attack(
        "token of the other tenant's provider",
        stranger.token_with("x", None),
    );
    for twice in [
        r#"{"sub":"u2","#,
        r#"{"iss":"x","#,
        r#"{"aud":"product","#,
        r#"{"aud":"x","#,
        r#"{"exp":1,"#,
    ] {
        attack(
            &format!("duplicate claim: {twice}…"),
            issuer.sign(TOKEN_HEADER, &claims.replacen('{', twice, 1)),
        );
    }

    // The signature and the form.
    attack("ECDSA r = s = 0", ec.token(&claims, |_| vec![0; 64]));
    attack(
        "ECDSA r = s = 1",
        ec.token(&claims, |_| {
            let one = [[0; 31].as_slice(), &[1]].concat();
            [one.clone(), one].concat()
        }),
    );
    attack(
        "ECDSA r = s = order of the curve",
        ec.token(&claims, |_| [ORDER, ORDER].concat()),
    );
    attack(
        "ECDSA signature as DER",
        ec.token(&claims, |signature| to_der(&signature)),
    );
    attack(
        "ECDSA signature with a trailing byte",
        ec.token(&claims, |signature| [signature, vec![0]].concat()),
    );
    attack(
        "ECDSA signature without its last byte",
        ec.token(&claims, |signature| signature[..63].to_vec()),
    );
    attack(
        "ECDSA r and s swapped",
        ec.token(&claims, |signature| {
            [&signature[32..], &signature[..32]].concat()
        }),
    );
    for length in [1, 64, 96] {
        let zeros = BASE64.encode(vec![0_u8; length]);
        attack(
            &format!("EdDSA signature of {length} zeros"),
            format!("{header}.{payload}.{zeros}"),
        );
    }
    attack("signature removed", format!("{header}.{payload}."));
    attack("two parts", format!("{header}.{payload}"));
    attack("four parts", format!("{good}.{signature}"));
    attack(
        "five parts (JWE)",
        format!(
            "{}.a.b.c.d",
            BASE64.encode(r#"{"alg":"dir","enc":"A256GCM","kid":"own"}"#)
        ),
    );
    for other in ["", ".", "..", "...", "a.b.c", "Bearer x"] {
        attack(&format!("{other:?}"), other.to_owned());
    }
    attack("first character removed", good[1..].to_owned());
    attack("trailing dot", format!("{good}."));
    attack("trailing space", format!("{good} "));
    attack("two parts more", format!("{good}.x.y"));
    attack(
        "20,000 characters more",
        format!("{good}{}", "A".repeat(20_000)),
    );
    attack("leading dot", format!(".{good}"));
    attack("double dots", good.replace('.', ".."));
    attack("padding", format!("{good}=="));
    attack(
        "JSON serialization",
        json!({"payload": payload, "protected": header, "signature": signature}).to_string(),
    );
    attack(
        "nested token",
        issuer.sign(
            r#"{"alg":"EdDSA","cty":"JWT","kid":"own"}"#,
            &json!(good).to_string(),
        ),
    );
    attack(
        "our own access token",
        signed_up.json()["access_token"]
            .as_str()
            .unwrap()
            .to_owned(),
    );
    attack(
        "our own refresh token",
        signed_up.json()["refresh_token"]
            .as_str()
            .unwrap()
            .to_owned(),
    );

    let mut report = AttackReport::new("Tokens of identity providers");
    for (name, token) in &attacks {
        let response = server.authenticate("sign-in", token, EMAIL).await;
        // What is no token at all is a field error.
        let expected = if token.is_empty() {
            "422 blank"
        } else if token.len() > 16_384 {
            "422 too_long"
        } else if token.contains(' ') {
            "422 invalid_format"
        } else {
            "401 invalid_token"
        };
        report.expect(name, &[expected], &outcome(&response));
    }
    // Each bit of the signature, and one bit of each eighth other character.
    let bytes = BASE64.decode(signature).unwrap();
    let mut accepted = 0;
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let token = format!("{header}.{payload}.{}", BASE64.encode(flipped));
        accepted += usize::from(server.authenticate("sign-in", &token, EMAIL).await.status != 401);
    }
    report.expect(
        "each bit of the signature flipped (512)",
        &["0 accepted"],
        &format!("{accepted} accepted"),
    );
    let mut accepted = 0;
    for position in (0..header.len() + 1 + payload.len()).step_by(8) {
        let mut flipped = good.clone().into_bytes();
        flipped[position] ^= if flipped[position] == b'A' { 3 } else { 1 };
        let token = String::from_utf8(flipped).unwrap();
        accepted += usize::from(server.authenticate("sign-in", &token, EMAIL).await.status < 400);
    }
    report.expect(
        "each eighth character altered",
        &["0 accepted"],
        &format!("{accepted} accepted"),
    );
    let bound = issuer.token_with("email_verified", Some("false"));
    let response = server.authenticate("sign-in", &bound, EMAIL).await;
    report.expect(
        "unverified email address",
        &["403 email_unverified"],
        &outcome(&response),
    );
    let response = server.authenticate("sign-in", &good, "b@example.com").await;
    report.expect(
        "another user's email address",
        &["403 email_mismatch"],
        &outcome(&response),
    );

    report.finish(138);
    assert_eq!(state(&service.database).await, before);
}
