//! All routes: merges the features' routers and the reference, and puts around them what every request passes.

use std::sync::Arc;

use axum::{Router, extract::Request, response::Response};
use utoipa::openapi::{
    InfoBuilder, OpenApi, OpenApiBuilder, ServerBuilder,
    security::{
        ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
    },
    tag::TagBuilder,
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    authentication,
    callers::Gate,
    entitlements,
    http::{
        common,
        envelope::{self, Arrival, Envelope},
        paths::Paths,
        peer::Sender,
        problem::{Code, Problem},
        reference,
        serve::Answers,
    },
    subscription_payments, subscription_plans, subscriptions, users,
};

/// The features, without what surrounds them.
fn features(public_url: &str) -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(description(public_url))
        .merge(authentication::router())
        .merge(subscription_plans::router())
        .merge(subscriptions::router())
        .merge(subscription_payments::router())
        .merge(entitlements::router())
        .merge(users::router())
}

/// The OpenAPI document of an instance at this address.
pub fn openapi(public_url: &str) -> OpenApi {
    let mut document = features(public_url).split_for_parts().1;
    common::describe(&mut document);
    document
}

/// Everything that the interface's listener serves: the routes, and around them what every request passes. That is
/// put together by hand, because a layer of the framework around each route costs more than most routes do.
#[derive(Clone)]
pub struct Interface(Arc<Parts>);

struct Parts {
    envelope: Envelope,
    gate: Arc<Gate>,
    router: Router,
    paths: Paths,
}

impl Interface {
    /// The interface of this app.
    pub fn new(app: &Arc<App>) -> anyhow::Result<Self> {
        let document = openapi(&app.public_url);
        Ok(Self(Arc::new(Parts {
            envelope: Envelope {
                public_url: app.public_url.clone(),
                traced: app.traced,
            },
            gate: app.gate.clone(),
            router: router(app, &document)?,
            paths: Paths::new(document.paths.paths.keys()),
        })))
    }
}

impl Answers for Interface {
    async fn answer(&self, request: Box<Request>, sender: Sender) -> Response {
        let Parts {
            envelope,
            gate,
            router,
            paths,
        } = &*self.0;
        let route = paths.of(request.uri().path());
        // Bounded within the gate, so that a page may read what it is told then.
        let passed = |request, arrival: Arrival| {
            let deadline = arrival.deadline();
            // Boxed, because it is large, and would be moved into each of the next ones.
            let routed = move |request| {
                envelope::bounded(deadline, Box::pin(router.answer(request, sender)))
            };
            gate.pass(request, arrival, routed)
        };
        envelope::wrap(envelope, route, request, sender, passed).await
    }
}

/// The routes alone.
pub fn router(app: &Arc<App>, document: &OpenApi) -> anyhow::Result<Router> {
    let features = features(&app.public_url).split_for_parts().0;
    Ok(features
        .with_state(app.clone())
        .merge(reference::router(document, &app.public_url)?)
        .fallback(async || {
            Problem::new(
                Code::NotFound,
                "no endpoint has this path; all are listed at /docs",
            )
        }))
}

/// The areas of the interface.
const TAGS: [(&str, &str); 6] = [
    ("Authentication", "Signing in and staying signed in."),
    (
        "Subscription plans",
        "What a tenant offers, and at what price.",
    ),
    (
        "Subscriptions",
        "Which user has which plan, and whether that gives access.",
    ),
    ("Subscription payments", "What was paid for a subscription."),
    ("Entitlements", "What a user may do now, in one question."),
    ("Users", "The people who sign in."),
];

/// What the document says of the service as a whole.
fn description(public_url: &str) -> OpenApi {
    let text = "The sign-ins, plans, subscriptions and payment records of a SaaS product.\n\n\
        Every request names its client in the header `client-id`. A *secret* client is a server and may do \
        what its scopes name; a *publishable* one lives in a browser or an app. With a user's access token in the \
        header `Authorization` it calls on behalf of that user, and sees what is that user's.\n\n\
        Money is exact: amounts are JSON numbers at the currency's own decimals and are never rounded. \
        Timestamps are RFC 3339 in UTC. Errors are RFC 9457 problem documents whose `code` is listed at \
        [/docs/errors](/docs/errors). Guides, concepts and runbooks are at [/docs/contents](/docs/contents). Every answer carries `X-Request-Id` and `API-Version`.";
    let mut document = OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Perennial")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(text))
                .build(),
        )
        .servers(Some([ServerBuilder::new().url(public_url).build()]))
        .tags(Some(TAGS.map(|(name, about)| {
            let tag = TagBuilder::new().name(name);
            tag.description(Some(about)).build()
        })))
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
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some(
            "The access token that sign-in, sign-up and refresh-token answer.",
        ));
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
    document
}
