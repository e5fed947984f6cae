//! `GET /users?email=`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{AccountEmail, User};

use super::{table, view::UserView};
use crate::{
    app::App,
    auth::{Caller, UsersRead},
    http::{
        openapi::UserEmailQuery,
        pagination::Page,
        problem::{CommonResponses, Problem},
        query::QueryParams,
    },
};

/// Find a user by email address
///
/// Returns a page with the matching user, or an empty page.
#[utoipa::path(
    get,
    path = "/users",
    tag = "Users",
    operation_id = "findUser",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(UserEmailQuery),
    responses(
        (status = 200, description = "The user, if any.", body = Page<UserView>),
        CommonResponses,
    ),
)]
pub async fn find(
    State(app): State<Arc<App>>,
    caller: Caller<UsersRead>,
    mut params: QueryParams,
) -> Result<Page<UserView>, Problem> {
    let email: Option<AccountEmail> = params.required("email");
    params.finish()?;
    let database = app.database_for(caller.tenant())?;
    let user = match email {
        Some(AccountEmail(email)) => {
            table::find_by_email(database, caller.tenant().id, &email).await?
        }
        None => None,
    };
    let is_visible = |user: &User| {
        caller
            .user_session()
            .is_none_or(|session| session.user.id == user.id)
    };
    let user = user.filter(is_visible);
    Ok(Page {
        data: user.iter().map(UserView::from).collect(),
        has_more: false,
        next_cursor: None,
    })
}
