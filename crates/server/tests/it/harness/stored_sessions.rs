//! Sessions that SQL has inserted, and access tokens for them. Much faster than signing in.

use jiff::Timestamp;
use perennial::app::App;
use perennial_domain::{ClientId, Id, Session, SessionId, SessionLifetimes, TenantId, UserId};
use secrecy::ExposeSecret;
use tokio_postgres::Client;
use uuid::Uuid;

/// Inserts sessions of this issuer, 100 per user.
pub async fn insert_sessions(database: &Client, sessions: i64, issuer: &str) {
    let sql = format!(
        "SET session_replication_role = replica;
         INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at)
         SELECT tenant_id, md5('user' || n)::uuid, n || '@example.com', n || '@example.com', now() - interval '9 days', now()
         FROM tenants, generate_series(0, {sessions} / 100 - 1) AS n ON CONFLICT DO NOTHING;
         INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, user_agent, salt, generation,
            confirmed_generation, refreshed_at, created_at, last_used_at, expires_at, number, refresh_key_id)
         SELECT tenant_id, gen_random_uuid(), md5('user' || n % ({sessions} / 100))::uuid, gen_random_uuid(),
            '{issuer}', '203.0.113.7', 'a phone', decode(md5(n::text), 'hex'), 0, 0, now(), now(), now(),
            now() + interval '14 days', nextval('session_numbers'), 0
         FROM tenants, generate_series(1, {sessions}) AS n;
         SET session_replication_role = origin;
         ANALYZE users, sessions"
    );
    database.batch_execute(&sql).await.unwrap();
}

/// Returns access tokens for active sessions of the issuer.
pub async fn issue_access_tokens(
    app: &App,
    database: &Client,
    issuer: &str,
    number: i64,
) -> Vec<String> {
    let sql = "SELECT tenant_id, id, user_id, generation FROM sessions WHERE issuer = $1 AND ended_at IS NULL LIMIT $2";
    let rows = database.query(sql, &[&issuer, &number]).await.unwrap();
    let now = Timestamp::now();
    let mut tokens = Vec::new();
    for row in rows {
        let [tenant, session, user] = [0, 1, 2].map(|column| row.get::<_, Uuid>(column));
        let mut session = Session::new(
            SessionId::new(session),
            UserId::new(user),
            ClientId::new(Uuid::nil()),
            issuer.to_owned(),
            [203, 0, 113, 7].into(),
            &SessionLifetimes::DEFAULT,
            now,
        );
        session.generation = row.get::<_, i32>(3) as u32;
        let access_tokens = &app.authenticator.tokens;
        let token = access_tokens.issue(app.ids, TenantId::new(tenant), &session, now);
        tokens.push(token.await.unwrap().token.expose_secret().to_owned());
    }
    tokens
}
