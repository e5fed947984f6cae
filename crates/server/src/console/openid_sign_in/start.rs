//! `GET /console/sign-in/{provider}`

use std::sync::Arc;

use axum::extract::State;
use perennial_domain::SingleLine;

use super::{
    PROVIDER_ID, PendingSignIn, Redirect, SIGN_IN_TTL, code_flow_client, error_page, redirect,
    redirect_uri,
};
use crate::{
    app::App,
    auth::staff::Visitor,
    http::{
        path_param::PathParam,
        problem::{Code, Problem, ProblemBody, PublicResponses},
    },
    identity_providers::CodeFlowSecrets,
};

/// Sign in to the console with an identity provider
///
/// Redirects the browser to the provider, which redirects to `/console/callback`.
#[utoipa::path(
    get,
    path = "/console/sign-in/{provider}",
    tag = "Console",
    operation_id = "startConsoleSignIn",
    security(()),
    params(("provider" = String, Path, description = "An id of `GET /console/sign-in`.", example = "openid")),
    responses(
        (status = 303, description = "To the provider, or to the console if the provider is unavailable."),
        (status = 404, description = "There is no such provider (`not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        PublicResponses,
    ),
)]
pub async fn start(
    State(app): State<Arc<App>>,
    _: Visitor,
    PathParam(provider): PathParam<SingleLine<255>>,
) -> Result<Redirect, Problem> {
    let config = app.console.sign_in.as_ref();
    let config = config
        .filter(|_| provider.is_ok_and(|id| id.as_str() == PROVIDER_ID))
        .ok_or_else(|| {
            let detail = "there is no such identity provider; see GET /console/sign-in";
            Problem::new(Code::NotFound, detail)
        })?;
    let redirect_uri = redirect_uri(&app);
    let secrets = CodeFlowSecrets::generate();
    let client = code_flow_client(config, &redirect_uri);
    let verifier = &app.identity_verifier;
    let url = verifier.authorization_url(&client, &config.scopes, &secrets);
    let url = match url.await {
        Ok(url) => url,
        Err(error) => {
            tracing::warn!(%error, "a staff member cannot sign in");
            return redirect(&error_page("provider_unavailable"), &[]);
        }
    };
    let pending = PendingSignIn {
        secrets,
        expires_at: app.clock.now().as_second() + SIGN_IN_TTL.as_secs(),
    };
    redirect(url.as_str(), &[pending.to_cookie(&app)?])
}
