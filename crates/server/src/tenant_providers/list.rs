//! `GET /identity-providers`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::Id;

use super::view::IdentityProviderView;
use crate::{
    app::App,
    auth::{Caller, IdentityProvidersRead},
    db::AgeKey,
    http::{
        openapi::{CreatedAtSortParam, CursorParams},
        pagination::{BY_AGE, Page, PageRequest},
        problem::{CommonResponses, Problem},
        query::QueryParams,
    },
    identity_providers::table::{self, StoredProvider},
};

/// List identity providers
///
/// Returns the providers whose tokens the tenant accepts, without client secrets.
#[utoipa::path(
    get,
    path = "/identity-providers",
    tag = "Identity providers",
    operation_id = "listIdentityProviders",
    params(
        CursorParams,
        CreatedAtSortParam,
    ),
    responses(
        (status = 200, description = "A page of providers.", body = Page<IdentityProviderView>),
        CommonResponses,
    ),
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller<IdentityProvidersRead>,
    mut params: QueryParams,
) -> Result<Page<IdentityProviderView>, Problem> {
    let request = PageRequest::parse(&mut params, &BY_AGE);
    params.finish()?;
    let tenant = caller.tenant().id;
    let page = request.verify(&app.cursor_key, &[&"GET /identity-providers", &tenant])?;
    let home = app.db.home()?.connection().await?;
    let start = (page.order, page.after);
    let providers = table::page(&home, tenant, start, page.row_limit()).await?;
    Ok(page.finish(providers, |stored: &StoredProvider| AgeKey {
        created_at: stored.created_at,
        id: stored.id.uuid(),
    }))
}
