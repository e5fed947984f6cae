//! `POST /users`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{EventKind, User};
use serde_json::json;
use utoipa::ToSchema;

use super::{
    email_in_use, table,
    view::{READ_ONLY, UserView, email_in},
};
use crate::{
    app::App,
    callers::{Caller, UsersWrite},
    events,
    http::{
        idempotency::{Begun, Once},
        json::{Fields, text},
        problem::{AnyEndpoint, Problem, ProblemBody, WithBody},
    },
};

/// What is said of a user who is made ahead of time.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateUser, example = json!({"email": "ada@example.com"}))]
#[expect(dead_code, reason = "describes the body; `create` reads it")]
pub struct CreateUser {
    #[schema(schema_with = email_in)]
    email: String,
}

/// Make a user ahead of time
///
/// An account for somebody who has not signed up yet. Whoever signs up first with this e-mail address, verified by
/// an identity provider, gets it.
#[utoipa::path(
    post,
    path = "/users",
    tag = "Users",
    operation_id = "createUser",
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11",
        description = "Names this request: sent again with the same key within 24 hours, it gets the same answer \
                       (with `Idempotency-Replayed: true`) and is not done twice.")),
    request_body(content = CreateUser, description = "What is said of the user."),
    responses(
        (status = 201, description = "The user.", body = UserView,
            headers(("Location" = String, description = "The path of the user."),
                ("ETag" = String, description = "What the user looks like."),
                ("Idempotency-Replayed" = String, description = "`true` if this is the answer to an earlier request with the same key."))),
        (status = 409, description = "Another user has this e-mail address (`email_in_use`), or a request with the same key is still running (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        WithBody,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<UsersWrite>,
    once: Once,
    mut fields: Fields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    fields.read_only(READ_ONLY);
    let email = fields.required("email", text);
    let email = fields.finish(|| email)?;
    let mut connection = app.engine_of(tenant)?.connection().await?;
    let tx = match once
        .begin(&mut connection, &caller.scope(), fingerprint)
        .await?
    {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(tx) => tx,
    };
    let now = app.clock.now();
    let user = User {
        id: app.ids.next(now),
        email,
        created_at: now,
    };
    if !table::insert(&tx, tenant.id, &user).await? {
        return Err(email_in_use());
    }
    let data = json!({"id": user.id.to_string()});
    let event = caller.event(app.ids, now, EventKind::UserCreated, user.id, &data);
    events::record(&tx, &event).await?;
    tx.created(format!("/users/{}", user.id), &UserView::from(&user))
        .await
}
