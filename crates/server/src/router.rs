//! All routes of the API and the middleware around them.

use std::sync::Arc;

use axum::{Router, extract::Request, http::Method, response::Response};
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
    auth::{ClientMiddleware, staff},
    authentication, clients,
    config::{ConsoleAccess, DocsAccess},
    console,
    docs_site::{self, SiteConfig},
    entitlements, event_feed, health,
    http::{
        self,
        allowed_hosts::AllowedHosts,
        client_ip::RemoteAddr,
        middleware::{self, RequestContext, RequestMiddleware},
        problem::{Code, Problem},
        route_templates::RouteTemplates,
        serve::RequestHandler,
    },
    payment_accounts, reports, sandbox, subscription_payments, subscription_plans, subscriptions,
    tenant_providers, timeline, user_export, users, webhooks,
};

/// Returns the routes of all features and their OpenAPI document.
fn features(public_url: &str) -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(base_document(public_url))
        .merge(authentication::router())
        .merge(subscription_plans::router())
        .merge(subscriptions::router())
        .merge(subscription_payments::router())
        .merge(entitlements::router())
        .merge(users::router())
        .merge(timeline::router())
        .merge(event_feed::router())
        .merge(webhooks::router())
        .merge(payment_accounts::router())
        .merge(user_export::router())
        .merge(reports::router())
        .merge(clients::router())
        .merge(tenant_providers::router())
        .merge(health::router())
        .merge(sandbox::router())
        .merge(console::router())
}

/// Returns the OpenAPI document of an instance with this URL.
pub fn openapi(public_url: &str) -> OpenApi {
    let mut document = features(public_url).split_for_parts().1;
    webhooks::add_webhooks(&mut document);
    http::openapi::complete(&mut document);
    document
}

/// The routes and their middleware.
///
/// Hot path: the middleware is called directly, because axum's layers around each route cost more than
/// most routes (measured, with per-thread histograms and the cached session response: session check
/// from 0.47 to 0.53 of the bare route's rate).
#[derive(Clone)]
pub struct ApiService(Arc<ApiServiceInner>);

struct ApiServiceInner {
    request_middleware: RequestMiddleware,
    client_middleware: Arc<ClientMiddleware>,
    router: Router,
    templates: RouteTemplates,
}

impl ApiService {
    /// Returns the service of the API's listener. It also serves the console, unless that is turned off or has a
    /// separate listener.
    pub fn new(app: &Arc<App>) -> anyhow::Result<Self> {
        let serves_console =
            app.console.access == ConsoleAccess::On && app.console.own_listener().is_none();
        Self::on_listener(app, &app.allowed_hosts, serves_console)
    }

    /// Returns the service of the console's own listener, if it has one. It also serves the API, which the console uses.
    pub fn of_console(app: &Arc<App>) -> anyhow::Result<Option<Self>> {
        let hosts = app.console_hosts.as_ref();
        hosts
            .map(|hosts| Self::on_listener(app, hosts, true))
            .transpose()
    }

    fn on_listener(
        app: &Arc<App>,
        allowed_hosts: &AllowedHosts,
        serves_console: bool,
    ) -> anyhow::Result<Self> {
        payment_accounts::register_metrics();
        let document = openapi(&app.public_url);
        Ok(Self(Arc::new(ApiServiceInner {
            request_middleware: RequestMiddleware {
                public_url: app.public_url.clone(),
                traced: app.traced,
                allowed_hosts: allowed_hosts.clone(),
                serves_console,
            },
            client_middleware: app.client_middleware.clone(),
            router: router(app, &document, serves_console)?,
            templates: RouteTemplates::new(document.paths.paths.keys())?,
        })))
    }
}

impl ApiService {
    /// Handles a request that has a signature instead of a client.
    async fn handle_signed(&self, request: Box<Request>, remote_addr: RemoteAddr) -> Response {
        let ApiServiceInner {
            request_middleware,
            client_middleware,
            router,
            ..
        } = &*self.0;
        let next = |request, context: RequestContext| {
            let deadline = context.deadline();
            let route = move |request| {
                middleware::respond_within(deadline, Box::pin(router.handle(request, remote_addr)))
            };
            client_middleware.handle_signed(request, context, route)
        };
        let route = payment_accounts::RECEIVE_PATH;
        request_middleware
            .run(route, request, remote_addr, next)
            .await
    }
}

impl RequestHandler for ApiService {
    async fn handle(&self, request: Box<Request>, remote_addr: RemoteAddr) -> Response {
        let ApiServiceInner {
            request_middleware,
            client_middleware,
            router,
            templates,
        } = &*self.0;
        let route = templates.find(request.uri().path());
        if route == payment_accounts::RECEIVE_PATH && request.method() == Method::POST {
            return Box::pin(self.handle_signed(request, remote_addr)).await;
        }
        // The timeout is inside the client middleware, so that a 503 has CORS headers too.
        let next = |request, context: RequestContext| {
            let deadline = match route {
                event_feed::PATH | sandbox::CLOCK_PATH | sandbox::DEMO_DATA_PATH => {
                    context.long_poll_deadline()
                }
                _ => context.deadline(),
            };
            // Hot path: boxed, because each enclosing future would copy it (measured, with the other
            // boxed futures: session check -7,000 instructions).
            let route = move |request| {
                middleware::respond_within(deadline, Box::pin(router.handle(request, remote_addr)))
            };
            client_middleware.handle(request, context, route)
        };
        request_middleware
            .run(route, request, remote_addr, next)
            .await
    }
}

/// Returns the routes without the middleware.
pub fn router(app: &Arc<App>, document: &OpenApi, serves_console: bool) -> anyhow::Result<Router> {
    let features = features(&app.public_url).split_for_parts().0;
    let mut router = features.with_state(app.clone());
    if serves_console {
        router = router.merge(console::web_app_router());
    }
    let site = SiteConfig {
        mode: app.mode,
        public_url: &app.public_url,
        explorer_client_id: app.explorer_client_id.as_ref(),
        console_url: (serves_console && cfg!(feature = "console")).then_some(&app.console.url),
    };
    let (router, detail) = match app.docs {
        DocsAccess::Public => (
            router.merge(docs_site::router(document, site)?),
            "no endpoint has this path; see /docs for all endpoints",
        ),
        DocsAccess::Off => (router, "no endpoint has this path"),
    };
    Ok(router.fallback(async move || Problem::new(Code::NotFound, detail)))
}

const TAGS: [(&str, &str); 15] = [
    ("Authentication", "Sign-in, sessions and access tokens."),
    ("Users", "The tenant's end users."),
    (
        "Subscription plans",
        "The plans that a tenant offers, with their prices.",
    ),
    (
        "Subscriptions",
        "The plan of each user, its status and whether it gives access.",
    ),
    ("Subscription payments", "Payments for subscriptions."),
    (
        "Entitlements",
        "Everything a user has access to, in one request.",
    ),
    ("Events", "Every change, in order."),
    ("Webhooks", "Events as signed HTTP requests."),
    (
        "Payment accounts",
        "Accounts with payment providers, and their notifications.",
    ),
    (
        "Reports",
        "Recurring revenue, churn, trials, cohorts and payments.",
    ),
    ("Clients", "API keys, and what they may do."),
    (
        "Identity providers",
        "The providers whose tokens users sign in with.",
    ),
    ("Health", "Checks of the service and its data."),
    ("Sandbox", "The simulated clock and demo data of a sandbox."),
    (
        "Console",
        "Staff members, and their sessions in the console.",
    ),
];

/// Returns the document without operations: description, tags and security schemes.
fn base_document(public_url: &str) -> OpenApi {
    let text = "Authentication, plans, subscriptions and payment records for a SaaS product.\n\n\
        Every request sends a client id (an API key) in the header `client-id`. A *secret* client is used by a server \
        and limited by its scopes; a *publishable* client is used by a browser or an app. With a user's access token in \
        the header `Authorization`, the request is made on behalf of that user and returns only that user's data.\n\n\
        Amounts are exact JSON numbers with the currency's decimal places; they are never rounded. Timestamps are \
        RFC 3339 in UTC. Errors are RFC 9457 problem documents; [/docs/errors](/docs/errors) lists every `code`. \
        [/docs/contents](/docs/contents) has guides, explanations and runbooks. Every response has the headers \
        `X-Request-Id` and `API-Version`.";
    let mut document = OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Perennial")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(text))
                .build(),
        )
        .servers(Some([ServerBuilder::new().url(public_url).build()]))
        .tags(Some(TAGS.map(|(name, description)| {
            let tag = TagBuilder::new().name(name);
            tag.description(Some(description)).build()
        })))
        .security(Some([SecurityRequirement::new(
            "client-id",
            Vec::<String>::new(),
        )]))
        .build();
    let description = "The client id. Create one with `perennial client create`.";
    let scheme = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(
        "client-id",
        description,
    )));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("client-id", scheme);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some(
            "The access token from sign-in, sign-up or refresh-token.",
        ));
    let description = "The session of a staff member in the console, from `POST /console/session`. It replaces the client id on \
                       every endpoint, within the scopes of the member's role.";
    let scheme = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(
        staff::cookie::NAME,
        description,
    )));
    components.add_security_scheme("console-session", scheme);
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
    document
}
