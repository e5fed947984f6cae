//! `GET /users`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{Email, Id, User, UserId};
use utoipa::{
    IntoParams,
    openapi::{
        path::{Parameter, ParameterIn},
        schema::{ObjectBuilder, Type},
    },
};

use super::{
    user_list_sql::{self, UserFilter, UserKey, UserOrder},
    view::UserView,
};
use crate::{
    app::App,
    auth::{Caller, UsersRead},
    db::{AgeKey, AgeOrder},
    http::{
        csv_list::ListFormat,
        filter_params::{external_ids, filter, time_range},
        openapi::{CursorParams, sort_order},
        pagination::{Page, PageRequest, SortKey},
        problem::{CommonResponses, Problem},
        query::{QueryParams, time_bounds},
        schema::{
            named,
            pattern::{self, anchored},
        },
    },
};

/// Values of `sort`; the first is the default.
const ORDERS: [(&str, UserOrder); 3] = [
    ("created_at", UserOrder::ByAge(AgeOrder::OldestFirst)),
    ("-created_at", UserOrder::ByAge(AgeOrder::NewestFirst)),
    ("email", UserOrder::ByEmail),
];
/// The only value of `sort` with a prefix.
const PREFIX_ORDERS: [(&str, UserOrder); 1] = [("email", UserOrder::ByEmail)];

const CREATED_AT: [&str; 4] = time_bounds!("created_at");

/// Filters and the order.
struct Filters;

impl IntoParams for Filters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let sort = "`created_at` (default), `-created_at` for newest first, or `email`. With `email_prefix`, the default \
                    is `email`, and no other order is allowed.";
        let email = "Only the user with this email address; case-insensitive.";
        let prefix = ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(254))
            .pattern(Some(anchored(&pattern::email_prefix())))
            .description(Some(
                "Only users whose email address starts with this; case-insensitive. The list is then sorted by email address.",
            ))
            .examples([serde_json::json!("ada@")])
            .build();
        let mut params = vec![
            filter("sort", sort_order(sort, &ORDERS.map(|(name, _)| name))),
            filter("email", named::EMAIL.reference(email)),
            filter("email_prefix", prefix),
            filter(
                "user_id",
                named::USER_ID_LIST.reference("Only these users."),
            ),
            external_ids(
                "external_user_id",
                "Only users with these ids in your system.",
                "customer-1042",
            ),
        ];
        params.extend(time_range(CREATED_AT));
        params
    }
}

/// List users
///
/// Results are paginated by cursor. With the access token of a user, only that user is listed.
#[utoipa::path(
    get,
    path = "/users",
    tag = "Users",
    operation_id = "listUsers",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(
        CursorParams,
        Filters,
    ),
    responses(
        (status = 200, description = "A page of users, or as CSV up to 10,000 rows. The header `Link` of CSV has the next page.",
            content((Page<UserView> = "application/json"), (String = "text/csv", example = json!("id,external_user_id,…,updated_at\r\nusr_0192f0c1a2b37c4d8e5f60718293a4b5,…\r\n")))),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<UsersRead>,
    format: ListFormat,
    mut params: QueryParams,
) -> Result<Response, Problem> {
    let email: Option<Email> = params.value("email");
    let mut ids: Option<Vec<UserId>> = params.any_of("user_id");
    if let Some(session) = caller.user_session() {
        let own = session.user.id;
        let is_listed = ids.is_none_or(|ids| ids.contains(&own));
        ids = Some(is_listed.then_some(own).into_iter().collect());
    }
    let filter = UserFilter {
        ids,
        email: email.map(|email| email.normalized().to_owned()),
        email_prefix: params.value("email_prefix"),
        external_ids: params.any_of("external_user_id"),
        created_at: params.time_range(CREATED_AT),
    };
    let request = match filter.email_prefix {
        Some(_) => PageRequest::parse_as(&mut params, &PREFIX_ORDERS, &format),
        None => PageRequest::parse_as(&mut params, &ORDERS, &format),
    };
    params.finish()?;

    let tenant = caller.tenant().id;
    // A cursor is valid only for the same tenant, user and filter.
    let page = request.verify(&app.cursor_key, &[&"GET /users", &tenant, &filter])?;
    let mut connection = app.database_for(caller.tenant())?.connection().await?;
    let start = (page.order, page.after.clone());
    let users =
        user_list_sql::list(&mut connection, tenant, &filter, start, page.row_limit()).await?;
    let order = page.order;
    let page: Page<UserView> = page.finish(users, |user: &User| match (order, &user.email) {
        (UserOrder::ByEmail, Some(email)) => UserKey::Email(email.normalized().to_owned()),
        _ => UserKey::Age(AgeKey {
            created_at: user.created_at,
            id: user.id.uuid(),
        }),
    });
    Ok(format.respond(page))
}

impl SortKey for UserKey {
    fn encode(&self) -> String {
        match self {
            Self::Age(key) => key.encode(),
            // An address has no spaces, and the key of an age has one.
            Self::Email(key) => key.clone(),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        if text.contains(' ') {
            AgeKey::decode(text).map(Self::Age)
        } else {
            Some(Self::Email(text.to_owned()))
        }
    }
}
