//! `POST /users`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{EventKind, User};

use super::{
    body::{CreateUser, parse_create},
    duplicate, table,
    view::{UserEvent, UserView},
};
use crate::{
    app::App,
    auth::{Caller, UsersWrite},
    events,
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
    },
};

/// Create a user in advance
///
/// Creates an account for a user who has not signed up yet. Required: `email`, `external_user_id` or both. The account is
/// linked to the first identity that signs up with the email address, if the identity provider has verified it.
#[utoipa::path(
    post,
    path = "/users",
    tag = "Users",
    operation_id = "createUser",
    params(IdempotencyKeyParam),
    request_body(content = CreateUser, description = "The user to create."),
    responses(
        (status = 201, description = "The created user.", body = UserView),
        (status = 409, description = "Another user has this email address (`email_in_use`) or external id (`duplicate_external_id`), or a request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<UsersWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    // Invalid bodies are rejected before a connection is taken from the pool.
    let new = parse_create(fields)?;
    let database = app.database_for(tenant)?;
    let mut connection = database.connection().await?;
    let tx = match idempotency_key
        .begin(&mut connection, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => return Ok(response),
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let created = async {
        let now = app.clock.now();
        let id = app.ids.generate(now);
        let user = User::create(new, id, now).map_err(Problem::from_field_errors)?;
        if !table::insert(&tx, tenant.id, &user).await? {
            return Err(duplicate(database, tenant.id, &user).await?);
        }
        let data = UserEvent::created(&user);
        let event = caller.event(app.ids, now, EventKind::UserCreated, user.id, &data);
        events::record(&tx, &event).await?;
        Ok((format!("/users/{}", user.id), UserView::from(&user)))
    };
    let created = created.await;
    tx.respond(created).await
}
