//! Every order in which up to six notifications can arrive.

use super::{
    history::{Expected, History},
    provider::{Object, Provider},
    random_deliveries::drain,
    steps::Step,
    world::{LEASE, Report, World},
};
use crate::{FetchLease, FetchedDecision};

const MAX_NOTIFICATIONS: usize = 6;

/// Histories with one or two notifications per step.
const HISTORIES: [&[Step]; 9] = [
    &[Step::StartTrial, Step::Renew, Step::Cancel],
    &[Step::StartTrial, Step::Cancel, Step::End, Step::Touch],
    &[
        Step::StartPending,
        Step::Renew,
        Step::RefundPart,
        Step::RefundAll,
    ],
    &[
        Step::StartActive,
        Step::Dispute,
        Step::WinDispute,
        Step::Pause,
        Step::Resume,
    ],
    &[
        Step::StartActive,
        Step::Dispute,
        Step::LoseDispute,
        Step::End,
    ],
    &[Step::StartActive, Step::FailRenewal, Step::GiveUp],
    &[Step::StartPending, Step::Renew, Step::Upgrade],
    &[Step::StartActive, Step::FailRenewal, Step::Recover],
    &[
        Step::StartPending,
        Step::Touch,
        Step::Renew,
        Step::Cancel,
        Step::UndoCancel,
    ],
];

/// When workers fetch and apply.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// Immediately.
    Prompt,
    /// After everything has arrived.
    Late,
    /// A response is applied after the next delivery.
    Overlapping,
    /// A response is applied at the end, after the lease has expired.
    Stalled,
    /// Workers die with their response.
    Killed,
}

#[derive(Clone)]
struct Node {
    provider: Provider,
    world: World,
    next_step: usize,
    pending: Vec<Object>,
    responses: Vec<(FetchLease, Report)>,
}

struct Search<'a> {
    history: &'a History,
    expected: &'a Expected,
    pace: Pace,
    orders: usize,
}

impl Search<'_> {
    /// Visits every order of the remaining steps and deliveries.
    fn visit(&mut self, node: &Node) {
        let is_done = node.next_step == self.history.steps.len();
        if is_done && node.pending.is_empty() {
            self.orders += 1;
            self.check(node.clone());
            return;
        }
        if !is_done {
            let mut node = node.clone();
            let changed = self.history.take(node.next_step, &mut node.provider);
            node.pending.extend(changed);
            node.next_step += 1;
            node.world.now = node.world.now.max(node.provider.now);
            self.visit(&node);
        }
        for index in 0..node.pending.len() {
            let mut node = node.clone();
            let object = node.pending.remove(index);
            node.world.hint(object);
            self.deliver(&mut node, object);
            self.visit(&node);
        }
    }

    fn deliver(&self, node: &mut Node, object: Object) {
        match self.pace {
            Pace::Prompt => drain(&mut node.world, &node.provider),
            Pace::Late => {}
            Pace::Overlapping => {
                self.apply_overlapping(node);
                if let Some(lease) = node.world.claim(object) {
                    let report = Report::read(&node.provider, object);
                    node.responses.push((lease, report));
                }
            }
            Pace::Stalled | Pace::Killed => {
                node.world.now += LEASE;
                if let Some(lease) = node.world.claim(object) {
                    let report = Report::read(&node.provider, object);
                    node.responses.push((lease, report));
                }
            }
        }
    }

    fn apply_overlapping(&self, node: &mut Node) {
        if let Pace::Overlapping = self.pace {
            for (lease, report) in std::mem::take(&mut node.responses) {
                let decision = node.world.apply_fetched(lease, report);
                assert_eq!(decision, FetchedDecision::Apply);
            }
        }
    }

    fn check(&self, mut node: Node) {
        self.apply_overlapping(&mut node);
        drain(&mut node.world, &node.provider);
        if let Pace::Stalled = self.pace {
            for (lease, report) in node.responses {
                let decision = node.world.apply_fetched(lease, report);
                assert_eq!(decision, FetchedDecision::Fenced);
            }
        }
        let (pace, steps) = (self.pace, &self.history.steps);
        self.expected
            .check(&node.world, format_args!("{pace:?}: {steps:?}"));
    }
}

/// Returns the history up to the step with the last of six notifications.
fn shortened(steps: &[Step]) -> History {
    let history = History::daily(steps);
    let mut provider = history.provider();
    let mut count = 0;
    let fits = |index: &usize| {
        count += history.take(*index, &mut provider).len();
        count <= MAX_NOTIFICATIONS
    };
    let length = (0..steps.len()).take_while(fits).count();
    assert!(length > 2, "{steps:?}");
    History::daily(&steps[..length])
}

#[test]
fn every_order_of_notifications_gives_the_same_records() {
    let mut orders = 0;
    for steps in HISTORIES {
        let history = shortened(steps);
        let expected = history.apply_in_order();
        for pace in [
            Pace::Prompt,
            Pace::Late,
            Pace::Overlapping,
            Pace::Stalled,
            Pace::Killed,
        ] {
            let provider = history.provider();
            let mut search = Search {
                history: &history,
                expected: &expected,
                pace,
                orders: 0,
            };
            search.visit(&Node {
                world: World::new(provider.now),
                provider,
                next_step: 0,
                pending: Vec::new(),
                responses: Vec::new(),
            });
            orders += search.orders;
        }
    }
    println!("{orders} orders");
    assert!(orders > 10_000, "{orders}");
}

/// Calls `visit` with every order of `items`.
fn permute<T: Clone>(items: &mut Vec<T>, fixed: usize, visit: &mut impl FnMut(&[T])) {
    if fixed == items.len() {
        return visit(items);
    }
    for index in fixed..items.len() {
        items.swap(fixed, index);
        permute(items, fixed + 1, visit);
        items.swap(fixed, index);
    }
}

#[test]
fn every_order_of_payloads_gives_the_same_records() {
    for steps in HISTORIES {
        let history = shortened(steps);
        let expected = history.apply_in_order();
        let mut provider = history.provider();
        let mut payloads = Vec::new();
        for index in 0..history.steps.len() {
            for object in history.take(index, &mut provider) {
                payloads.push(Report::read(&provider, object));
            }
        }
        permute(&mut payloads, 0, &mut |payloads| {
            let mut world = World::new(provider.now);
            for payload in payloads {
                world.apply_payload(payload.clone());
            }
            expected.check(&world, format_args!("{steps:?}"));
        });
    }
}
