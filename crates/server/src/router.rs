//! All routes: merges the features' routers, adds what every request passes, and the reference.

use std::sync::Arc;

use axum::{Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::{
    InfoBuilder, OpenApi, OpenApiBuilder, ServerBuilder,
    security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    tag::TagBuilder,
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    callers::Gate,
    http::{
        common,
        envelope::{self, Envelope},
        problem::{Code, Problem},
        reference,
    },
    subscription_plans,
};

/// The features, without what surrounds them.
fn features(public_url: &str) -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(description(public_url)).merge(subscription_plans::router())
}

/// The OpenAPI document of an instance at this address.
pub fn openapi(public_url: &str) -> OpenApi {
    let mut document = features(public_url).split_for_parts().1;
    common::describe(&mut document);
    document
}

/// Everything that the interface's listener serves.
pub fn router(app: &Arc<App>) -> anyhow::Result<Router> {
    let features = features(&app.public_url).split_for_parts().0;
    let document = openapi(&app.public_url);
    Ok(features
        .with_state(app.clone())
        .merge(reference::router(&document)?)
        .fallback(async || {
            Problem::new(
                Code::NotFound,
                "no endpoint has this path; all are listed at /docs",
            )
        })
        .layer(middleware::from_fn_with_state(app.gate.clone(), Gate::pass))
        .layer(CatchPanicLayer::custom(|_| {
            use axum::response::IntoResponse;
            Problem::internal(&"a handler panicked").into_response()
        }))
        .layer(middleware::from_fn_with_state(
            Envelope {
                public_url: app.public_url.clone(),
                traced: app.traced,
            },
            envelope::wrap,
        )))
}

/// What the document says of the service as a whole.
fn description(public_url: &str) -> OpenApi {
    let text = "The plans of a SaaS product; sign-ins, subscriptions and payments are to come.\n\n\
        Every request names its client in the header `client-id`. A *secret* client is a server and may do \
        what its scopes name; a *publishable* one lives in a browser or an app.\n\n\
        Money is exact: amounts are JSON numbers at the currency's own decimals and are never rounded. \
        Timestamps are RFC 3339 in UTC. Errors are RFC 9457 problem documents whose `code` is listed at \
        [/docs/errors](/docs/errors). Every answer carries `X-Request-Id` and `API-Version`.";
    let mut document = OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Perennial")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(text))
                .build(),
        )
        .servers(Some([ServerBuilder::new().url(public_url).build()]))
        .tags(Some([TagBuilder::new()
            .name("Subscription plans")
            .description(Some("What a tenant offers, and at what price."))
            .build()]))
        .security(Some([SecurityRequirement::new(
            "client-id",
            Vec::<String>::new(),
        )]))
        .build();
    let header = "The id of the calling client, made with `perennial client create`.";
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(
        "client-id",
        header,
    )));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("client-id", scheme);
    document
}
