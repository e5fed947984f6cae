//! `GET /users?email=`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::{Email, User};

use super::{table, view::UserView};
use crate::{
    app::App,
    callers::{Caller, UsersRead},
    http::{
        page::Page,
        params::Params,
        problem::{AnyEndpoint, Problem},
    },
};

/// Find a user
///
/// By its e-mail address, in any case: a page with that user, or an empty one.
#[utoipa::path(
    get,
    path = "/users",
    tag = "Users",
    operation_id = "findUser",
    params(("email" = String, Query, description = "The user's e-mail address, in any case.", example = "ada@example.com",
        format = "email", max_length = 254,
        pattern = "^[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@[A-Za-z0-9]{1,20}(\\.[A-Za-z0-9]{1,20}){1,2}$")),
    responses(
        (status = 200, description = "The user, if there is one.", body = Page<UserView>),
        AnyEndpoint,
    ),
)]
pub async fn find(
    State(app): State<Arc<App>>,
    caller: Caller<UsersRead>,
    mut params: Params,
) -> Result<Page<UserView>, Problem> {
    let email: Option<Email> = params.required("email");
    params.finish()?;
    let engine = app.engine_of(caller.tenant())?;
    let found = match email {
        Some(email) => table::find_by_email(engine, caller.tenant().id, &email).await?,
        None => None,
    };
    let visible = |user: &User| caller.user().is_none_or(|own| own.user.id == user.id);
    let found = found.filter(visible);
    Ok(Page {
        data: found.iter().map(UserView::from).collect(),
        has_more: false,
        next_cursor: None,
    })
}
