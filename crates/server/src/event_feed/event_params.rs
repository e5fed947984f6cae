//! The parameters of `GET /events`, and their schemas in the OpenAPI document.

use std::time::Duration;

use perennial_domain::{
    EventTypes, Id, PaymentAccountId, PaymentId, PlanId, Rule, SessionId, SubscriptionId, TenantId,
    UserId, ValidationError, WebhookEndpointId,
};
use serde_json::json;
use utoipa::{
    IntoParams,
    openapi::{
        path::{Parameter, ParameterIn},
        schema::{Object, ObjectBuilder, Type},
    },
};
use uuid::Uuid;

use super::event_cursor::{EventCursor, EventOrder};
use crate::{
    app::App,
    events::log::EventFilter,
    http::{
        filter_params::filter,
        middleware::MAX_LONG_POLL_WAIT,
        openapi::{CursorParams, sort_order},
        pagination::limit_param,
        problem::Problem,
        query::QueryParams,
        schema::{
            named,
            pattern::{anchored, id},
        },
    },
};

/// The value of `after` for new events only.
const NOW: &str = "now";
/// Values of `sort`; the first is the default.
const ORDERS: [(&str, EventOrder); 2] = [
    ("position", EventOrder::Log),
    ("-position", EventOrder::NewestFirst),
];
/// The prefixes of the records that events are about.
const SUBJECT_PREFIXES: [&str; 7] = [
    PaymentAccountId::PREFIX,
    PaymentId::PREFIX,
    PlanId::PREFIX,
    SessionId::PREFIX,
    SubscriptionId::PREFIX,
    UserId::PREFIX,
    WebhookEndpointId::PREFIX,
];

/// Where to start reading.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// At the oldest event that is kept.
    Oldest,
    /// After the newest event.
    Newest,
    After(EventCursor),
}

/// The parsed query of a request.
pub(super) struct EventQuery {
    pub filter: EventFilter,
    /// The maximum number of events on a page.
    pub limit: i64,
    /// How long to wait for an event if there is none.
    pub wait: Duration,
    pub order: EventOrder,
    after: Option<String>,
}

impl EventQuery {
    pub(super) fn parse(mut params: QueryParams, is_stream: bool) -> Result<Self, Problem> {
        let types = params.any_of("types");
        let subject: Option<SubjectId> = params.value("subject_id");
        let limit = limit_param(&mut params);
        let wait = params.value("wait").unwrap_or(0);
        let max_wait = MAX_LONG_POLL_WAIT.as_secs();
        if wait > max_wait {
            params.push_error("wait", &format!("must be from 0 to {max_wait} seconds"));
        }
        let order = params.order(&ORDERS);
        if order == EventOrder::NewestFirst && (is_stream || wait > 0) {
            let message =
                "must be \"position\" for a stream and with wait: new events follow the others";
            params.push_error("sort", message);
        }
        let after = params.text("after");
        params.finish()?;
        Ok(Self {
            filter: EventFilter {
                types: EventTypes::new(types.unwrap_or_default()),
                subject: subject.map(|SubjectId(uuid)| uuid),
            },
            limit,
            wait: Duration::from_secs(wait),
            order,
            after,
        })
    }

    /// Returns where to start: after the header `Last-Event-ID` of a stream that reconnects, else after the parameter
    /// `after`.
    pub(super) fn start(
        &self,
        last_event_id: Option<&str>,
        app: &App,
        tenant: TenantId,
    ) -> Result<Start, Problem> {
        match last_event_id.or(self.after.as_deref()) {
            None => Ok(Start::Oldest),
            Some(NOW) => Ok(Start::Newest),
            Some(cursor) => {
                EventCursor::from_text(cursor, app, tenant, self.order).map(Start::After)
            }
        }
    }
}

/// The id of any record that events are about.
struct SubjectId(Uuid);

impl std::str::FromStr for SubjectId {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        let prefix = text.rsplit_once('_').map(|(prefix, _)| prefix);
        let uuid = match prefix {
            Some(PaymentAccountId::PREFIX) => text.parse().map(PaymentAccountId::uuid),
            Some(PaymentId::PREFIX) => text.parse().map(PaymentId::uuid),
            // A UUID without a prefix is accepted for any record.
            None | Some(PlanId::PREFIX) => text.parse().map(PlanId::uuid),
            Some(SessionId::PREFIX) => text.parse().map(SessionId::uuid),
            Some(SubscriptionId::PREFIX) => text.parse().map(SubscriptionId::uuid),
            Some(UserId::PREFIX) => text.parse().map(UserId::uuid),
            Some(WebhookEndpointId::PREFIX) => text.parse().map(WebhookEndpointId::uuid),
            Some(_) => Err(invalid_subject()),
        };
        uuid.map(Self).map_err(|_| invalid_subject())
    }
}

fn invalid_subject() -> ValidationError {
    let prefixes = SUBJECT_PREFIXES.map(|prefix| format!("{prefix}_"));
    let message = format!(
        "must be a UUID, or one of the prefixes {} and 32 hexadecimal digits",
        prefixes.join(", ")
    );
    ValidationError::new(Rule::InvalidId, message)
}

/// Describes the parameters.
pub(super) struct EventParams;

impl IntoParams for EventParams {
    fn into_params(place: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let after = "Continue after this cursor: the `next_cursor` of an earlier page of the same order, with any filters, or `now` \
                     for new events only. By default, the list starts with the oldest event.";
        let sort = "`position` (default) or `-position`, which starts with the newest event and is not for streams or `wait`.";
        let types = "Only events of these types.";
        let subject = "Only events about this record.";
        let wait = "How long to wait for an event if there is none, in seconds.";
        let wait = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(MAX_LONG_POLL_WAIT.as_secs()))
            .description(Some(wait))
            .examples([json!(25)])
            .build();
        let subject_pattern = id(&format!("({})", SUBJECT_PREFIXES.join("|")));
        let mut params = vec![
            filter("after", text("[A-Za-z0-9_-]+", after, NOW)),
            filter("sort", sort_order(sort, &ORDERS.map(|(name, _)| name))),
            filter("types", named::EVENT_TYPE_PATTERN_LIST.reference(types)),
            filter(
                "subject_id",
                text(
                    &subject_pattern,
                    subject,
                    "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
                ),
            ),
            filter("wait", wait),
        ];
        let shared = CursorParams::into_params(place);
        params.extend(shared.into_iter().filter(|shared| shared.name == "limit"));
        params
    }
}

fn text(pattern: &str, description: &str, example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(anchored(pattern)))
        .description(Some(description))
        .examples([json!(example)])
        .build()
}
