//! Plays a sequence against the domain and records what the auditor sees.

use jiff::{SignedDuration, Timestamp};
use perennial_auditor as audit;

use super::{
    super::{fixtures::*, *},
    scenario::*,
    translate::{entry, micros, probe, status, terms, to_terms},
};
use crate::{
    Lifecycle, Money, NewSubscription, Offer, PaymentStatus, Quantity, SubscriptionChanges,
    subscription::random::SplitMix64,
};

/// A sequence in progress.
pub(super) struct Recorder {
    pub(super) book: Book,
    pub(super) now: Timestamp,
    calls: Vec<audit::Call>,
    /// The subscription after each change, by time.
    states: Vec<(Timestamp, Subscription)>,
    trial_days: u16,
    /// The terms before the last change of plan or quantity.
    earlier_terms: Option<SubscriptionChanges>,
    dunning: Dunning,
    /// Whether a request is compared with a record to which nothing due was applied.
    pub(super) may_lag: bool,
    /// Decides when a worker applies due transitions between calls.
    pub(super) worker: Option<SplitMix64>,
}

pub(super) fn days_from(now: Timestamp, days: Days) -> Timestamp {
    now + SignedDuration::from_hours(24 * days)
}

impl Recorder {
    /// Creates the subscription. Returns `None` if the request is invalid.
    pub(super) fn create(scenario: &Scenario) -> Option<Self> {
        let creation = &scenario.creation;
        let now = creation.at;
        let date = |days: Option<Days>| days.map(|days| days_from(now, days));
        let new = NewSubscription {
            status: creation.status,
            quantity: Some(Quantity::try_from(creation.quantity).unwrap()),
            starts_at: date(creation.starts),
            renews_at: date(creation.renews),
            ends_at: date(creation.ends),
            ..new()
        };
        let managed = Lifecycle::Managed(scenario.dunning);
        let mut context = context(&creation.offer, now);
        context.lifecycle = match creation.switch_after {
            Some(_) => Lifecycle::Recorded,
            None => managed,
        };
        let created = Subscription::create(&new, &context).ok()?;
        let call = audit::Verb::Create {
            status: creation.status.map(status),
            starts_at: micros(new.starts_at),
            renews_at: micros(new.renews_at),
            ends_at: micros(new.ends_at),
            trial_days: creation.offer.trial_days,
            terms: terms(&created.after),
        };
        let mut recorder = Self {
            states: vec![(now, created.after.clone())],
            book: Book {
                sub: created.after,
                entries: created.entries,
                payments: Vec::new(),
                changed_at: now,
            },
            now,
            calls: Vec::new(),
            trial_days: creation.offer.trial_days,
            earlier_terms: None,
            dunning: scenario.dunning,
            may_lag: true,
            worker: None,
        };
        recorder.accept(call);
        if let Some(days) = creation.switch_after {
            recorder.now = days_from(now, days);
            recorder.enter(scenario.dunning);
        }
        Some(recorder)
    }

    /// Switches to recorded mode, or back to managed mode.
    fn switch(&mut self, by_external_id: bool) {
        self.book.run(self.now);
        let external_id = |id: Option<&str>| SubscriptionChanges {
            external_id: Some(id.map(|id| id.parse().unwrap())),
            ..SubscriptionChanges::default()
        };
        match (self.book.sub.lifecycle, self.book.sub.external_id.is_some()) {
            (_, true) => {
                let shown = self.shown();
                self.book.change(&external_id(None), self.now);
                self.accept(audit::Verb::EnterManaged { shown });
            }
            (Lifecycle::Managed(_), false) if by_external_id => {
                self.book.change(&external_id(Some("order-17")), self.now);
                self.accept(audit::Verb::LeaveManaged);
            }
            (Lifecycle::Managed(dunning), false) => {
                self.dunning = dunning;
                self.book.sub.lifecycle = Lifecycle::Recorded;
                self.book.changed_at = self.now;
                self.accept(audit::Verb::LeaveManaged);
            }
            (Lifecycle::Recorded, false) => self.enter(self.dunning),
        }
    }

    /// Switches the tenant to managed mode.
    fn enter(&mut self, dunning: Dunning) {
        let since = self.now;
        self.book.run(since);
        let shown = self.shown();
        self.book.sub.lifecycle = Lifecycle::Managed(Dunning { since, ..dunning });
        self.book.changed_at = since.max(self.book.sub.updated_at + TICK);
        self.book.run(since);
        self.accept(audit::Verb::EnterManaged { shown });
    }

    /// Returns the record as it is before the switch to managed mode.
    fn shown(&self) -> audit::Shown {
        let sub = &self.book.sub;
        let in_trial = sub.status == SubscriptionStatus::OnTrial;
        let trial_end = sub.trial.map_or(self.now, |trial| trial.ends_at);
        let trial_end = in_trial.then_some(trial_end);
        // The record of a lifetime does not show when an unpaid one was due.
        let is_unpaid = sub.managed_since.is_some() && sub.is_unpaid_lifetime(self.now);
        let due = is_unpaid.then_some(sub.anchor.max(sub.starts_at));
        audit::Shown {
            status: status(sub.status_at(self.now)),
            terms: terms(sub),
            starts_at: sub.starts_at.as_microsecond(),
            renews_at: micros(sub.renews_at.or(trial_end).or(due)),
            ends_at: micros(sub.ends_at),
            late_since: micros(sub.late_since),
        }
    }

    pub(super) fn accept(&mut self, verb: audit::Verb) {
        // Calls of one instant take effect one after another.
        let changed_at = self.book.changed_at;
        let at = changed_at.as_microsecond();
        self.calls.push(audit::Call {
            at,
            verb,
            is_same_request: false,
        });
        self.states.push((changed_at, self.book.sub.clone()));
    }

    pub(super) fn play(&mut self, when: When, action: Action) {
        let mut current = self.book.clone();
        let last = self.now;
        self.now = match when {
            When::After(duration) => self.now + duration,
            When::Renewal(offset) => {
                let renewal = current.run(self.now).renews_at;
                let at = renewal.map(|at| at + SignedDuration::from_micros(offset));
                at.unwrap_or(self.now).max(self.now)
            }
        };
        self.work(last);
        match action {
            Action::Pay(amount) => self.pay(amount),
            Action::Refund(index, tenths) => self.refund(index, tenths),
            Action::Dispute(index) => self.payment_status(index, PaymentStatus::Disputed),
            Action::WinDispute(index) => self.payment_status(index, PaymentStatus::Completed),
            Action::LoseDispute(index) => self.payment_status(index, PaymentStatus::Refunded),
            Action::PayDisputed(amount) => self.pay_disputed(amount),
            Action::Switch(by_external_id) => self.switch(by_external_id),
            _ => {
                if !self.may_lag {
                    // A request is compared with the response, which the worker has brought up to date.
                    self.book.run(self.now);
                }
                self.update(action);
            }
        }
    }

    /// Runs the worker every few hours or days between two calls.
    fn work(&mut self, last: Timestamp) {
        let Some(worker) = &mut self.worker else {
            return;
        };
        let mut at = last;
        while at < self.now {
            self.book.run(at);
            at += SignedDuration::from_mins(worker.between(1, 3 * 1_440));
        }
    }

    /// Returns the request body of a call that changes the subscription.
    pub(super) fn changes(&self, action: Action) -> SubscriptionChanges {
        let now = self.now;
        let date = |days: Option<Days>| days.map(|days| days_from(now, days));
        let none = SubscriptionChanges::default();
        match action {
            Action::Status(to, renews, ends) => SubscriptionChanges {
                offer: (to == SubscriptionStatus::OnTrial).then(|| self.present_offer()),
                renews_at: date(renews).map(Some),
                ends_at: date(ends).map(Some),
                ..to_status(to)
            },
            Action::Plan(offer) => SubscriptionChanges {
                had_trial: had_trial(&offer),
                ..to_plan(offer)
            },
            Action::Quantity(quantity) => to_quantity(quantity),
            Action::PlanAndStatus(offer, to) => SubscriptionChanges {
                status: Some(to),
                had_trial: had_trial(&offer),
                ..to_plan(offer)
            },
            Action::Price(billing_cycle, price) => SubscriptionChanges {
                billing_cycle: Some(billing_cycle),
                price: Some(Some(
                    Money::from_minor_units(price, usd()).unwrap().to_decimal(),
                )),
                ..none
            },
            Action::FreeUntil(days) => to_free_time(days_from(now, days)),
            Action::Back => self.earlier_terms.clone().unwrap_or_default(),
            Action::Start(days) => SubscriptionChanges {
                starts_at: Some(days_from(now, days)),
                ..none
            },
            Action::End(days) => SubscriptionChanges {
                ends_at: Some(date(days)),
                ..none
            },
            Action::Suspend(suspend) => SubscriptionChanges {
                is_active: Some(!suspend),
                ..none
            },
            _ => none,
        }
    }

    fn update(&mut self, action: Action) {
        let now = self.now;
        let before = self.book.sub.as_of(now);
        let changes = self.changes(action);
        let mut after = self.book.clone();
        if after.update(&changes, now).is_ok() && after.sub.price().is_none() {
            // Without a price, the service could not manage it again.
            return;
        }
        if self.book.update(&changes, now) == Ok(true) {
            let offer = changes.offer.filter(|offer| offer.plan != before.plan.id);
            if let Some(offer) = offer {
                self.trial_days = if changes.had_trial {
                    0
                } else {
                    offer.trial_days
                };
            }
            if terms(&before) != terms(&self.book.sub) {
                self.earlier_terms = Some(to_terms(&before));
            }
            let first = self.calls.len();
            for verb in self.verbs(&changes.differing_from(&before, now), &before) {
                self.accept(verb);
            }
            for call in self.calls.iter_mut().skip(first + 1) {
                call.is_same_request = true;
            }
        }
    }

    /// Returns what a request asks for. Fields equal to the response are left out.
    fn verbs(&self, differing: &SubscriptionChanges, before: &Subscription) -> Vec<audit::Verb> {
        let terms = terms(&self.book.sub);
        let is_other_plan = differing
            .offer
            .is_some_and(|offer| offer.plan != before.plan.id);
        let is_price = differing.price.is_some() || differing.billing_cycle.is_some();
        let ends_at = differing.ends_at;
        let mut verbs = Vec::new();
        if let Some(start) = differing.starts_at {
            let starts_at = start.as_microsecond();
            verbs.push(audit::Verb::SetStart { starts_at });
        }
        if is_other_plan || differing.quantity.is_some() {
            let offer = differing.offer.filter(|_| !differing.had_trial);
            let trial_days = offer.map_or(0, |offer| offer.trial_days);
            verbs.push(audit::Verb::ChangeTerms { terms, trial_days });
        } else if is_price {
            verbs.push(audit::Verb::SetPrice { terms });
        }
        if let Some(until) = differing.free_until.flatten() {
            let until = until.as_microsecond();
            verbs.push(audit::Verb::FreeUntil { until });
        }
        if let Some(to) = differing.status {
            verbs.push(audit::Verb::SetStatus {
                status: status(to),
                ends_at: micros(ends_at.flatten()),
            });
        } else {
            let ends_at = ends_at.map(micros);
            verbs.extend(ends_at.map(|ends_at| audit::Verb::SetEnd { ends_at }));
        }
        verbs.extend(differing.is_active.map(|is_active| {
            if is_active {
                audit::Verb::Unsuspend
            } else {
                audit::Verb::Suspend
            }
        }));
        verbs
    }

    /// Returns the offer of the present plan, with its trial.
    fn present_offer(&self) -> Offer {
        let plan = self.book.sub.plan;
        Offer {
            plan: plan.id,
            slug: plan.slug,
            price: plan.price,
            billing_cycle: plan.billing_cycle,
            trial_days: self.trial_days,
            is_active: true,
        }
    }

    /// Applies everything due by the end and returns the history, with probes around every instant
    /// that occurs and at random ones.
    fn finish(mut self, scenario: &Scenario, dunning: Dunning) -> audit::History {
        let end = self.now + scenario.rest;
        self.book.run(end);
        let mut history = audit::History {
            dunning: audit::Dunning {
                unpaid_after_days: i64::from(dunning.unpaid_after),
                expired_after_days: i64::from(dunning.expired_after),
            },
            calls: self.calls,
            entries: self.book.entries.iter().map(entry).collect(),
            probes: Vec::new(),
        };
        let (first, last) = (scenario.creation.at.as_microsecond(), end.as_microsecond());
        let mut instants: Vec<i64> = history.instants();
        instants = instants
            .into_iter()
            .flat_map(|at| [at - 1, at, at + 1])
            .collect();
        let rng = &mut SplitMix64(!scenario.seed);
        instants.extend((0..20).map(|_| rng.between(first, last)));
        instants.retain(|at| (first..=last).contains(at));
        instants.sort_unstable();
        instants.dedup();
        let mut states = self.states.into_iter().peekable();
        let mut current = None;
        for at in instants {
            let at = Timestamp::from_microsecond(at).unwrap();
            while let Some((_, state)) = states.next_if(|(time, _)| *time <= at) {
                current = Some(state);
            }
            let sub = current.as_mut().unwrap();
            if let Some(step) = sub.due_transitions(at).pop() {
                *sub = step.after;
            }
            history.probes.push(probe(sub, at));
        }
        history
    }
}

/// Plays a sequence. Returns `None` if the subscription could not be created.
pub(super) fn record(scenario: &Scenario) -> Option<audit::History> {
    let mut recorder = Recorder::create(scenario)?;
    for (when, action) in &scenario.calls {
        recorder.play(*when, *action);
    }
    Some(recorder.finish(scenario, scenario.dunning))
}
