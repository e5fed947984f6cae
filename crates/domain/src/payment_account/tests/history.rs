//! Histories of a payment provider, and the records that follow them when everything arrives in order.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Arguments,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    provider::{Object, Provider},
    steps::Step,
    world::{ChangeEvent, Report, World},
};
use crate::{FactFields, subscription::random::SplitMix64};

/// Steps of a payment provider, each with the seconds since the one before.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) reports_prices: bool,
    pub(super) has_versions: bool,
    pub(super) steps: Vec<(i64, Step)>,
}

/// Records and facts after a history in order.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) world: World,
    /// The different facts of each object, in order.
    pub(super) facts: BTreeMap<Object, Vec<FactFields>>,
    pub(super) ends_at: Timestamp,
}

impl History {
    /// Returns a random history. Steps can happen in the same second if `has_ties`.
    pub(super) fn random(random: &mut SplitMix64, has_versions: bool, has_ties: bool) -> Self {
        let reports_prices = random.one_in(2);
        let mut provider = Provider::new(reports_prices, has_versions);
        let mut steps = Vec::new();
        for _ in 0..random.between(2, 12) {
            let gap = match random.below(4) {
                0 if has_ties => 0,
                0 | 1 => random.between(1, 90),
                2 => random.between(1, 20) * 86_400,
                _ => random.between(20, 45) * 86_400,
            };
            provider.now += SignedDuration::from_secs(gap);
            let step = provider.random_step(random);
            provider.take(step);
            steps.push((gap, step));
        }
        Self {
            reports_prices,
            has_versions,
            steps,
        }
    }

    /// Returns the history of these steps, a day apart.
    pub(super) fn daily(steps: &[Step]) -> Self {
        Self {
            reports_prices: true,
            has_versions: true,
            steps: steps.iter().map(|step| (86_400, *step)).collect(),
        }
    }

    pub(super) fn provider(&self) -> Provider {
        Provider::new(self.reports_prices, self.has_versions)
    }

    /// Applies every change immediately, and in order.
    pub(super) fn apply_in_order(&self) -> Expected {
        let mut provider = self.provider();
        let mut world = World::new(provider.now);
        let mut facts: BTreeMap<Object, Vec<FactFields>> = BTreeMap::new();
        for index in 0..self.steps.len() {
            let changed = self.take(index, &mut provider);
            world.now = provider.now;
            for object in changed {
                let report = Report::read(&provider, object);
                let known = facts.entry(object).or_default();
                if known.last() != Some(&report.fields()) {
                    known.push(report.fields());
                }
                world.apply_in_order(report);
            }
        }
        Expected {
            world,
            facts,
            ends_at: provider.now,
        }
    }

    /// Lets the payment provider take a step. Returns the objects that changed, the subscription first.
    pub(super) fn take(&self, index: usize, provider: &mut Provider) -> BTreeSet<Object> {
        let (gap, step) = self.steps[index];
        provider.now += SignedDuration::from_secs(gap);
        provider.take(step).into_iter().collect()
    }
}

impl Expected {
    /// Checks the records, and that each event is a change that happened, in order and once.
    pub(super) fn check(&self, world: &World, context: Arguments<'_>) {
        let now = world.now.max(self.ends_at);
        assert_eq!(world.records(now), self.world.records(now), "{context}");
        for (object, facts) in &self.facts {
            let events = world.events.iter().filter(|event| event.object == *object);
            let events: Vec<&FactFields> = events.map(|event| &event.fields).collect();
            assert!(
                events.windows(2).all(|pair| pair[0] != pair[1]),
                "{context}: {object:?} has an event without a change"
            );
            let mut history = facts.iter();
            for event in &events {
                assert!(
                    history.any(|fact| fact == *event),
                    "{context}: {object:?} went back to {event:?}"
                );
            }
            let is_recorded = |event: &ChangeEvent| event.object == *object;
            let expects_event = self.world.events.iter().any(is_recorded);
            assert_eq!(!events.is_empty(), expects_event, "{context}: {object:?}");
        }
    }
}
