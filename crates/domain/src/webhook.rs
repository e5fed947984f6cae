//! Webhook endpoints: their settings, the retry schedule, and when an endpoint is disabled.

use jiff::{SignedDuration, Timestamp};

use crate::{EventTypes, Href, SingleLine, WebhookEndpointId};

string_enum! {
    /// The order in which an endpoint receives events.
    pub enum DeliveryOrder: "a delivery order" {
        /// Any order. A failed event does not delay others.
        None = "none",
        /// The events of one record in order. A failed event delays later events of its record.
        Subject = "subject",
        /// All events in order. A failed event delays all later events.
        Strict = "strict",
    }
}

string_enum! {
    /// Whether an endpoint receives events.
    pub enum EndpointStatus: "a status of a webhook endpoint" {
        /// The endpoint receives events.
        Enabled = "enabled",
        /// The endpoint receives nothing. Its position in the event log is kept.
        Disabled = "disabled",
    }
}

string_enum! {
    /// Why an endpoint was disabled.
    pub enum DisabledReason: "a reason" {
        /// By a request.
        Request = "request",
        /// The endpoint responded with 410.
        Gone = "gone",
        /// All attempts failed for five days.
        Failures = "failures",
    }
}

/// The fields of an endpoint that clients set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookEndpointDetails {
    /// Where events are sent.
    pub url: Href,
    /// A note for operators.
    pub description: Option<SingleLine<200>>,
    /// The types to send.
    pub event_types: EventTypes,
    /// The order of events.
    pub order: DeliveryOrder,
    /// Whether the endpoint receives events.
    pub status: EndpointStatus,
}

/// A webhook endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookEndpoint {
    /// The endpoint's id.
    pub id: WebhookEndpointId,
    /// The fields that clients set.
    pub details: WebhookEndpointDetails,
    /// Why and when the endpoint was disabled. `None` if it is enabled.
    pub disabled: Option<(DisabledReason, Timestamp)>,
    /// When the first attempt failed after the last success. `None` if the last attempt succeeded.
    pub failing_since: Option<Timestamp>,
    /// When the endpoint was created.
    pub created_at: Timestamp,
    /// Time of the last change by a request, or of the automatic disabling.
    pub updated_at: Timestamp,
}

impl WebhookEndpoint {
    /// Creates an endpoint at `now`.
    pub fn create(details: WebhookEndpointDetails, id: WebhookEndpointId, now: Timestamp) -> Self {
        let mut endpoint = Self {
            id,
            details,
            disabled: None,
            failing_since: None,
            created_at: now,
            updated_at: now,
        };
        endpoint.note_status(DisabledReason::Request, now);
        endpoint
    }

    /// Returns the endpoint with these fields, updated at `now`, or `None` if nothing changes.
    pub fn update(&self, details: WebhookEndpointDetails, now: Timestamp) -> Option<Self> {
        if details == self.details {
            return None;
        }
        let mut next = Self {
            details,
            updated_at: now,
            ..self.clone()
        };
        next.note_status(DisabledReason::Request, now);
        Some(next)
    }

    /// Returns the endpoint disabled at `now` for a reason, or `None` if it is disabled already.
    pub fn disable(&self, reason: DisabledReason, now: Timestamp) -> Option<Self> {
        if self.disabled.is_some() {
            return None;
        }
        let mut next = self.clone();
        next.details.status = EndpointStatus::Disabled;
        next.updated_at = now;
        next.note_status(reason, now);
        Some(next)
    }

    /// Makes `disabled` follow from the status. Enabling starts a new failure streak.
    fn note_status(&mut self, reason: DisabledReason, now: Timestamp) {
        match (self.details.status, self.disabled) {
            (EndpointStatus::Enabled, Some(_)) => {
                self.disabled = None;
                self.failing_since = None;
            }
            (EndpointStatus::Disabled, None) => self.disabled = Some((reason, now)),
            (EndpointStatus::Enabled, None) | (EndpointStatus::Disabled, Some(_)) => {}
        }
    }
}

/// The pauses after the first failed attempt, the second one, and so on.
const RETRY_DELAYS: [SignedDuration; 9] = [
    SignedDuration::from_secs(5),
    SignedDuration::from_mins(5),
    SignedDuration::from_mins(30),
    SignedDuration::from_hours(2),
    SignedDuration::from_hours(5),
    SignedDuration::from_hours(10),
    SignedDuration::from_hours(14),
    SignedDuration::from_hours(20),
    SignedDuration::from_hours(24),
];
/// An endpoint is disabled when all attempts have failed for this long.
const MAX_FAILING_DURATION: SignedDuration = SignedDuration::from_hours(5 * 24);

/// Returns whether an event that has failed since `since` may be given up: in strict order it would be skipped, and while
/// the endpoint fails all the time, every event is kept.
pub fn can_be_given_up(order: DeliveryOrder, since: Timestamp, failing_since: Timestamp) -> bool {
    match order {
        DeliveryOrder::None | DeliveryOrder::Subject => failing_since > since,
        DeliveryOrder::Strict => false,
    }
}

/// Returns the pause after this many failed attempts of one event, or `None` if the event is given up.
pub fn retry_delay(failed_attempts: u32, can_be_given_up: bool) -> Option<SignedDuration> {
    let index = usize::try_from(failed_attempts).unwrap_or(usize::MAX);
    let scheduled = RETRY_DELAYS.get(index.saturating_sub(1)).copied();
    if can_be_given_up {
        scheduled
    } else {
        scheduled.or(RETRY_DELAYS.last().copied())
    }
}

/// Returns whether an endpoint that has failed since `failing_since` must be disabled at `now`.
pub fn is_failing_too_long(failing_since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(failing_since) >= MAX_FAILING_DURATION
}

/// What the response to a webhook request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMeaning {
    /// The event was received.
    Delivered,
    /// The attempt failed. It is repeated later.
    Failed {
        /// Whether the endpoint is overloaded and needs fewer requests at a time.
        is_overloaded: bool,
    },
    /// The endpoint does not want any more events.
    Gone,
}

/// Returns the meaning of an HTTP status. Redirects are not followed, so they are failures.
pub fn response_meaning(status: u16) -> ResponseMeaning {
    match status {
        200..=299 => ResponseMeaning::Delivered,
        410 => ResponseMeaning::Gone,
        429 | 500..=599 => ResponseMeaning::Failed {
            is_overloaded: true,
        },
        _ => ResponseMeaning::Failed {
            is_overloaded: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn endpoint(status: EndpointStatus) -> WebhookEndpoint {
        let details = WebhookEndpointDetails {
            url: "https://a.example/hook".parse().unwrap(),
            description: None,
            event_types: EventTypes::default(),
            order: DeliveryOrder::None,
            status,
        };
        let id = "whe_01920000000070008000000000000001".parse().unwrap();
        WebhookEndpoint::create(details, id, at(1))
    }

    #[test]
    fn event_is_given_up_after_ten_attempts_if_it_can_be() {
        let delays = |can_be| (1..=11).map(move |failed| retry_delay(failed, can_be));
        let hours = |delay: Option<SignedDuration>| delay.map(|delay| delay.as_secs());
        let scheduled: Vec<_> = delays(true).map(hours).collect();
        let expected = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
        let mut expected: Vec<_> = expected.into_iter().map(Some).collect();
        expected.extend([None, None]);
        assert_eq!(scheduled, expected);
        let last = delays(false).next_back().flatten();
        assert_eq!(last, Some(SignedDuration::from_hours(24)));
    }

    #[test]
    fn event_is_kept_while_its_endpoint_fails_all_the_time() {
        let can_be = |order, since| can_be_given_up(order, at(since), at(5));
        for order in [DeliveryOrder::None, DeliveryOrder::Subject] {
            // Other events were delivered between 4 and 5.
            assert!(can_be(order, 4));
            assert!(!can_be(order, 5) && !can_be(order, 6));
        }
        assert!(!can_be(DeliveryOrder::Strict, 4));
    }

    #[test]
    fn endpoint_is_disabled_after_five_days_of_failures() {
        let days = |days: i64| at(1 + days * 86_400);
        assert!(!is_failing_too_long(at(2), days(5)));
        assert!(is_failing_too_long(at(1), days(5)));
    }

    #[test]
    fn response_status_determines_the_meaning() {
        let meanings = [200, 204, 301, 400, 404, 410, 429, 500, 503].map(response_meaning);
        let failed = |is_overloaded| ResponseMeaning::Failed { is_overloaded };
        let expected = [
            ResponseMeaning::Delivered,
            ResponseMeaning::Delivered,
            failed(false),
            failed(false),
            failed(false),
            ResponseMeaning::Gone,
            failed(true),
            failed(true),
            failed(true),
        ];
        assert_eq!(meanings, expected);
    }

    #[test]
    fn enabling_clears_the_reason_and_the_failure_streak() {
        let mut enabled = endpoint(EndpointStatus::Enabled);
        enabled.failing_since = Some(at(2));
        let disabled = enabled.disable(DisabledReason::Failures, at(9)).unwrap();
        assert_eq!(disabled.disabled, Some((DisabledReason::Failures, at(9))));
        assert_eq!(disabled.failing_since, Some(at(2)));
        assert_eq!(disabled.disable(DisabledReason::Gone, at(10)), None);
        let details = WebhookEndpointDetails {
            status: EndpointStatus::Enabled,
            ..disabled.details.clone()
        };
        let again = disabled.update(details, at(11)).unwrap();
        assert_eq!((again.disabled, again.failing_since), (None, None));
        assert_eq!(again.updated_at, at(11));
    }

    #[test]
    fn endpoint_can_be_created_disabled() {
        let created = endpoint(EndpointStatus::Disabled);
        assert_eq!(created.disabled, Some((DisabledReason::Request, at(1))));
    }
}
