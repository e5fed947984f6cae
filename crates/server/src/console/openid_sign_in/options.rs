//! `GET /console/sign-in`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use super::PROVIDER_ID;
use crate::{
    app::App,
    auth::staff::Visitor,
    http::{
        problem::{Problem, PublicResponses},
        query::QueryParams,
        response::NoStore,
    },
};

/// How staff members can sign in.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInOptions {
    /// The identity providers to choose from. Without one, staff members sign in with links.
    identity_providers: Vec<SignInProvider>,
}

/// An identity provider of staff members.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInProvider {
    /// For the path `/console/sign-in/{provider}`.
    #[schema(example = "openid")]
    id: &'static str,
    /// The host of the provider.
    #[schema(example = "login.example.com")]
    name: String,
}

/// List sign-in options of the console
///
/// Returns what the sign-in page offers.
#[utoipa::path(
    get,
    path = "/console/sign-in",
    tag = "Console",
    operation_id = "listSignInOptions",
    security(()),
    responses(
        (status = 200, description = "The options.", body = SignInOptions),
        PublicResponses,
    ),
)]
pub async fn options(
    State(app): State<Arc<App>>,
    _: Visitor,
    params: QueryParams,
) -> Result<NoStore<SignInOptions>, Problem> {
    params.finish()?;
    let provider = app.console.sign_in.as_ref().map(|config| SignInProvider {
        id: PROVIDER_ID,
        name: Url::parse(&config.issuer)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_else(|| config.issuer.clone()),
    });
    let identity_providers = provider.into_iter().collect();
    Ok(NoStore(
        StatusCode::OK,
        SignInOptions { identity_providers },
    ))
}
