//! Random deliveries: late, repeated, lost and in any order, with workers that stall and are killed.

use jiff::SignedDuration;

use super::{
    history::{Expected, History},
    provider::{Object, Provider},
    world::{LEASE, Report, World},
};
use crate::{
    FetchLease, FetchedDecision,
    subscription::random::{SplitMix64, cases},
};

const CASES: u64 = 2_000;

/// What a worker is doing.
#[derive(Debug, Clone)]
enum Worker {
    Idle,
    Leased(Object, FetchLease),
    Fetched(FetchLease, Box<Report>),
}

/// How often something happened, to show that the cases cover it.
#[derive(Debug, Default)]
struct Coverage {
    steps: usize,
    lost: usize,
    repeated: usize,
    killed: usize,
    fenced: usize,
    outdated: usize,
    events: usize,
}

struct Run<'a> {
    history: &'a History,
    provider: Provider,
    world: World,
    random: SplitMix64,
    pending: Vec<Object>,
    workers: [Worker; 3],
    /// A page of a list, read by the reconcile task.
    listed: Vec<Report>,
    is_suspended: bool,
    /// Whether notifications can be lost. Then the records need a last reconcile.
    has_losses: bool,
    coverage: &'a mut Coverage,
}

impl Run<'_> {
    /// Runs the history with random deliveries, then reconciles if notifications were lost.
    fn finish(mut self) -> World {
        let mut next_step = 0;
        while next_step < self.history.steps.len() || !self.pending.is_empty() {
            match self.random.below(12) {
                0 if next_step < self.history.steps.len() => {
                    self.take_step(next_step);
                    next_step += 1;
                }
                0..=3 => self.deliver(),
                4..=9 => self.work(),
                10 => {
                    let seconds = self.random.between(0, 90);
                    self.world.now += SignedDuration::from_secs(seconds);
                    self.world.expire_due();
                }
                _ if self.random.one_in(4) => self.suspend(),
                _ => self.reconcile(),
            }
        }
        for report in std::mem::take(&mut self.listed) {
            self.world.apply_listed(report);
        }
        if self.has_losses {
            self.list();
        }
        for report in std::mem::take(&mut self.listed) {
            self.world.apply_listed(report);
        }
        drain(&mut self.world, &self.provider);
        // Workers that stalled come back.
        for worker in self.workers {
            if let Worker::Fetched(lease, report) = worker {
                let decision = self.world.apply_fetched(lease, *report);
                assert_eq!(decision, FetchedDecision::Fenced);
            }
        }
        for object in self.provider.objects() {
            let report = Report::read(&self.provider, object);
            assert!(
                !self.world.apply_listed(report),
                "a second run changes nothing"
            );
        }
        if let Some(record) = &mut self.world.subscription {
            assert_eq!(record.suspended, self.is_suspended);
            record.suspended = false;
        }
        self.coverage.events += self.world.events.len();
        self.world
    }

    fn take_step(&mut self, index: usize) {
        self.coverage.steps += 1;
        for object in self.history.take(index, &mut self.provider) {
            match self.random.below(6) {
                0 if self.has_losses => self.coverage.lost += 1,
                1 | 2 => {
                    self.coverage.repeated += 1;
                    self.pending.extend([object, object]);
                }
                _ => self.pending.push(object),
            }
        }
        self.world.now = self.world.now.max(self.provider.now);
    }

    fn deliver(&mut self) {
        if let Ok(count) = u64::try_from(self.pending.len())
            && count > 0
        {
            let index = usize::try_from(self.random.below(count)).unwrap();
            let object = self.pending.swap_remove(index);
            self.world.hint(object);
        }
    }

    fn work(&mut self) {
        let index = usize::try_from(self.random.below(3)).unwrap();
        let worker = std::mem::replace(&mut self.workers[index], Worker::Idle);
        if self.random.one_in(8) {
            self.coverage.killed += 1;
            return;
        }
        self.workers[index] = match worker {
            Worker::Idle => {
                let dirty = self.world.dirty_objects();
                if dirty.is_empty() {
                    return;
                }
                let object = self.random.pick(&dirty);
                match self.world.claim(object) {
                    Some(lease) => Worker::Leased(object, lease),
                    None => Worker::Idle,
                }
            }
            // The API responds with an error.
            Worker::Leased(object, lease) if self.random.one_in(8) => {
                self.world.release(object, lease);
                Worker::Idle
            }
            Worker::Leased(object, lease) => {
                Worker::Fetched(lease, Box::new(Report::read(&self.provider, object)))
            }
            Worker::Fetched(lease, report) => {
                let object = report.object();
                match self.world.apply_fetched(lease, *report) {
                    FetchedDecision::Apply => {}
                    FetchedDecision::Fenced => self.coverage.fenced += 1,
                    FetchedDecision::Outdated => {
                        self.coverage.outdated += 1;
                        self.world.release(object, lease);
                    }
                }
                Worker::Idle
            }
        };
    }

    fn suspend(&mut self) {
        if let Some(record) = &mut self.world.subscription {
            record.suspended = true;
            self.is_suspended = true;
        }
    }

    /// Reads a list, or applies the next entry of the last one.
    fn reconcile(&mut self) {
        match self.listed.pop() {
            Some(report) => {
                self.world.apply_listed(report);
            }
            None => self.list(),
        }
    }

    fn list(&mut self) {
        let objects = self.provider.objects().into_iter();
        self.listed = objects
            .map(|object| Report::read(&self.provider, object))
            .collect();
    }
}

/// Fetches and applies until no object is dirty. Leases of killed workers expire first.
pub(super) fn drain(world: &mut World, provider: &Provider) {
    for _ in 0..20 {
        let dirty = world.dirty_objects();
        if dirty.is_empty() {
            return;
        }
        world.now += LEASE;
        for object in dirty {
            if let Some(lease) = world.claim(object) {
                let decision = world.apply_fetched(lease, Report::read(provider, object));
                assert_eq!(decision, FetchedDecision::Apply);
            }
        }
    }
    panic!("objects stay dirty: {:?}", world.dirty_objects());
}

/// Runs one case with access to the API.
fn fetch_case(seed: u64, coverage: &mut Coverage) {
    let mut random = SplitMix64(seed);
    let has_versions = random.one_in(2);
    let history = History::random(&mut random, has_versions, true);
    let expected = history.apply_in_order();
    let provider = history.provider();
    let run = Run {
        history: &history,
        world: World::new(provider.now),
        provider,
        random,
        pending: Vec::new(),
        workers: [Worker::Idle, Worker::Idle, Worker::Idle],
        listed: Vec::new(),
        is_suspended: false,
        has_losses: seed.is_multiple_of(2),
        coverage,
    };
    let world = run.finish();
    expected.check(&world, format_args!("seed {seed}: {history:?}"));
}

/// Returns all payloads of a history, in order, with some of them repeated.
fn payloads(history: &History, random: &mut SplitMix64) -> (Vec<Report>, Provider) {
    let mut provider = history.provider();
    let mut payloads = Vec::new();
    for index in 0..history.steps.len() {
        for object in history.take(index, &mut provider) {
            let report = Report::read(&provider, object);
            if random.one_in(3) {
                payloads.push(report.clone());
            }
            payloads.push(report);
        }
    }
    (payloads, provider)
}

fn shuffle(payloads: &mut [Report], random: &mut SplitMix64) {
    for index in (1..payloads.len()).rev() {
        let limit = u64::try_from(index + 1).unwrap();
        payloads.swap(index, usize::try_from(random.below(limit)).unwrap());
    }
}

/// Runs one case without access to the API.
fn payload_case(seed: u64) {
    let mut random = SplitMix64(seed);
    let has_ties = random.one_in(2);
    let history = History::random(&mut random, true, has_ties);
    let (mut payloads, provider) = payloads(&history, &mut random);
    let deliver = |payloads: &[Report]| {
        let mut world = World::new(provider.now);
        for payload in payloads {
            world.apply_payload(payload.clone());
        }
        world
    };
    let in_order = deliver(&payloads);
    shuffle(&mut payloads, &mut random);
    let shuffled = deliver(&payloads);
    let context = format!("seed {seed}: {history:?}");
    let now = provider.now;
    assert_eq!(shuffled.records(now), in_order.records(now), "{context}");
    if !has_ties {
        let expected: Expected = history.apply_in_order();
        expected.check(&shuffled, format_args!("{context}"));
        expected.check(&in_order, format_args!("{context}"));
    }
}

/// `CONVERGENCE_CASES` sets the number of cases.
#[test]
fn records_equal_those_of_the_history_in_order() {
    let mut coverage = Coverage::default();
    let count = cases("CONVERGENCE_CASES", CASES);
    for seed in 0..count {
        fetch_case(seed, &mut coverage);
    }
    println!("{count} cases: {coverage:?}");
    let Coverage {
        steps,
        lost,
        repeated,
        killed,
        fenced,
        outdated,
        events,
    } = coverage;
    let floor = usize::try_from(count / 10).unwrap();
    for covered in [steps, lost, repeated, killed, fenced, events] {
        assert!(covered > floor, "the cases cover too little");
    }
    assert_eq!(outdated, 0, "the model's API does not lag");
}

/// `CONVERGENCE_CASES` sets the number of cases.
#[test]
fn payloads_give_the_same_records_in_any_order() {
    for seed in 0..cases("CONVERGENCE_CASES", CASES) {
        payload_case(seed);
    }
}

/// Without losses and delays, every change has its event, however often it is reported.
#[test]
fn prompt_deliveries_give_one_event_per_change() {
    for seed in 0..500 {
        let mut random = SplitMix64(seed);
        let history = History::random(&mut random, true, true);
        let expected = history.apply_in_order();
        let mut provider = history.provider();
        let mut world = World::new(provider.now);
        for index in 0..history.steps.len() {
            for object in history.take(index, &mut provider) {
                world.now = world.now.max(provider.now);
                for _ in 0..random.between(1, 3) {
                    world.hint(object);
                    drain(&mut world, &provider);
                }
            }
        }
        expected.check(&world, format_args!("seed {seed}: {history:?}"));
        assert_eq!(
            world.events.len(),
            expected.world.events.len(),
            "seed {seed}"
        );
    }
}
