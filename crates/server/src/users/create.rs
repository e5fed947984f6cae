//! `POST /users`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{EventKind, User};
use serde_json::json;

use super::{
    email_in_use, table,
    view::{READ_ONLY, UserView},
};
use crate::{
    app::App,
    auth::{Caller, UsersWrite},
    events,
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::{BodyFields, text},
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        request_schema::{RequestField, request_body},
        schema::named,
    },
};

const FIELDS: &[RequestField] = &[RequestField::required("email", || {
    named::EMAIL
        .reference("The user's email address; case-insensitive.")
        .into()
})];

request_body!(
    CreateUser,
    create_schema(FIELDS, READ_ONLY),
    "The user to create.",
    {"email": "ada@example.com"}
);

/// Create a user in advance
///
/// Creates an account for a user who has not signed up yet. The account is linked to the first identity that signs up
/// with this email address, if the identity provider has verified it.
#[utoipa::path(
    post,
    path = "/users",
    tag = "Users",
    operation_id = "createUser",
    params(IdempotencyKeyParam),
    request_body(content = CreateUser, description = "The user to create."),
    responses(
        (status = 201, description = "The created user.", body = UserView),
        (status = 409, description = "Another user has this email address (`email_in_use`), or a request with the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller<UsersWrite>,
    idempotency_key: IdempotencyKey,
    mut fields: BodyFields,
) -> Result<Response, Problem> {
    let tenant = caller.tenant();
    let fingerprint = fields.fingerprint();
    fields.read_only(READ_ONLY);
    let email = fields.required("email", text);
    let email = fields.finish(|| email)?;
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = match idempotency_key
        .begin(&mut connection, &caller.idempotency_scope(), fingerprint)
        .await?
    {
        IdempotencyOutcome::Replayed(response) => return Ok(response),
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let now = app.clock.now();
    let user = User {
        id: app.ids.generate(now),
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
