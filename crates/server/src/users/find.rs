//! `GET /users?email=`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{AccountEmail, User};

use super::{table, view::UserView};
use crate::{
    app::App,
    auth::{Caller, UsersRead},
    http::{
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
    params(("email" = String, Query, description = "The email address of the user; case-insensitive.", example = "ada@example.com",
        format = "email", max_length = 254,
        pattern = "^[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@[A-Za-z0-9]{1,20}(\\.[A-Za-z0-9]{1,20}){1,2}$")),
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
