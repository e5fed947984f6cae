//! The lifeline of a subscription: spans of equal status and access in the past, now and in the future.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::SubscriptionStatus;
use serde::Serialize;
use utoipa::{ToSchema, openapi::Ref};

use super::{history::AccessState, situation::Situation};
use crate::http::{
    response::{display, timestamp, timestamp_or_null},
    schema::named,
};

/// How many spans of the future are returned.
const MAX_FUTURE: usize = 12;
/// Shorter spans are part of the next one: a request may make several changes.
const MIN_SPAN: SignedDuration = SignedDuration::from_secs(1);

/// A span of time with one status.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = TimelineSegment)]
pub struct Segment {
    /// Start of the span.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-12T09:30:00.000000Z")]
    pub from: Timestamp,
    /// End of the span, at which the next one starts; null if no end is known.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-11-19T09:30:00.000000Z")]
    pub to: Option<Timestamp>,
    #[serde(serialize_with = "display")]
    #[schema(schema_with = status)]
    pub status: SubscriptionStatus,
    /// Whether the user has access in this span.
    #[schema(example = true)]
    pub is_active: bool,
    /// Whether it is a forecast: what happens without a payment or a request.
    #[schema(example = false)]
    pub future: bool,
    /// Why the span starts; null for the past.
    #[schema(
        required,
        example = "Access ends on 2026-11-19 09:30 unless 19.99 USD is paid."
    )]
    pub sentence: Option<String>,
}

fn status() -> Ref {
    named::SUBSCRIPTION_STATUS.reference("The status in this span.")
}

/// A state from an instant on.
struct StateFrom {
    from: Timestamp,
    state: AccessState,
    is_forecast: bool,
    sentence: Option<String>,
}

impl Situation<'_> {
    /// Returns the spans, oldest first. The lifeline of a deleted subscription ends with its deletion.
    pub fn segments(&self, deleted_at: Option<Timestamp>) -> Vec<Segment> {
        let states = self.states(deleted_at.is_none());
        let ends = states.iter().skip(1).map(|next| Some(next.from));
        let ends = ends.chain([deleted_at]);
        let mut segments = Vec::new();
        for (state, to) in states.iter().zip(ends) {
            self.append(&mut segments, state, to);
        }
        let is_future = |segment: &Segment| segment.future;
        let past = segments
            .iter()
            .filter(|segment| !is_future(segment))
            .count();
        segments.truncate(past.saturating_add(MAX_FUTURE));
        // Only the span that contains now has the sentence about the status.
        let current = segments.iter_mut().rfind(|segment| !segment.future);
        if let Some(current) = current.filter(|_| deleted_at.is_none()) {
            current.sentence = Some(self.sentence());
        }
        segments
    }

    /// Lists the states from the oldest event on.
    fn states(&self, with_forecast: bool) -> Vec<StateFrom> {
        let recorded = self.history.states.iter();
        let mut states: Vec<StateFrom> = recorded
            .map(|(from, state)| StateFrom {
                from: *from,
                state: *state,
                is_forecast: false,
                sentence: None,
            })
            .collect();
        let current = AccessState::from(&self.current);
        let last = states.last().map(|last| last.state.status_at(self.now));
        if last != Some(current.status) {
            // Retention has removed the events.
            let from = self.current.updated_at.min(self.now);
            states.retain(|known| known.from < from);
            states.push(StateFrom {
                from,
                state: current,
                is_forecast: false,
                sentence: None,
            });
        }
        if with_forecast {
            let steps = self.forecast_steps().into_iter().zip(&self.forecast);
            states.extend(steps.map(|(step, transition)| StateFrom {
                from: transition.at,
                state: AccessState::from(&transition.after),
                is_forecast: true,
                sentence: Some(step.sentence),
            }));
        }
        states
    }

    /// Appends the spans of a state up to `to`. Its start and its end change access without an event.
    fn append(&self, segments: &mut Vec<Segment>, from: &StateFrom, to: Option<Timestamp>) {
        let state = &from.state;
        let is_inside = |cut: &Timestamp| *cut > from.from && to.is_none_or(|to| *cut < to);
        let mut cuts: Vec<Timestamp> = { [Some(state.starts_at), state.ends_at].into_iter() }
            .flatten()
            .filter(is_inside)
            .collect();
        cuts.sort_unstable();
        let starts = std::iter::once(from.from).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().map(Some).chain([to]);
        for (start, end) in starts.zip(ends) {
            let future = from.is_forecast || start > self.now;
            let segment = Segment {
                from: start,
                to: end,
                status: state.status_at(start),
                is_active: state.has_access(start),
                future,
                sentence: from.sentence.clone(),
            };
            push(segments, segment);
        }
    }
}

/// Appends a span, or extends the last one if nothing changes between them.
fn push(segments: &mut Vec<Segment>, mut segment: Segment) {
    if let Some(last) = segments.last_mut() {
        if last.status == segment.status && last.is_active == segment.is_active {
            last.to = segment.to;
            return;
        }
        let length = last.to.map(|to| to.duration_since(last.from));
        if length.is_some_and(|length| length < MIN_SPAN) {
            segment.from = last.from;
            segments.pop();
            return push(segments, segment);
        }
    }
    if segment.to.is_none_or(|to| to > segment.from) {
        segments.push(segment);
    }
}
