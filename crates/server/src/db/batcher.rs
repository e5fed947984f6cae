//! Groups concurrent calls into few statements, as a database groups commits.
//!
//! A call that finds fewer than [`MAX_IN_FLIGHT`] batches in flight starts one immediately, so a
//! single call is not delayed. Otherwise it waits until one of them has finished. The calls that have
//! gathered by then are one batch. Calls with equal keys share a result.
//!
//! A result is never older than its call: a batch contains only calls that came before it started.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::Hash,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::oneshot;

use super::{Error, admission::AdmissionQueue};

/// Fewer batches in flight are larger ones, and one of two waits for the network while PostgreSQL
/// works on the other.
const MAX_IN_FLIGHT: usize = 2;
/// The largest number of keys of a batch. Its statement takes a few milliseconds, so that it does
/// not delay other statements on a pipelined connection.
const MAX_KEYS: usize = 200;

type RunFuture<K, V> = Pin<Box<dyn Future<Output = Result<Vec<(K, V)>, Error>> + Send>>;

/// Runs batches of calls; see the module's documentation.
pub struct Batcher<K, V>(Arc<BatcherState<K, V>>);

struct BatcherState<K, V> {
    calls: Mutex<WaitingCalls<K, V>>,
    admission: AdmissionQueue,
    run: Box<dyn Fn(Vec<K>) -> RunFuture<K, V> + Send + Sync>,
}

struct WaitingCalls<K, V> {
    waiting: VecDeque<WaitingCall<K, V>>,
    in_flight: usize,
}

struct WaitingCall<K, V> {
    key: K,
    result: oneshot::Sender<Result<Option<V>, Error>>,
}

impl<K, V> Batcher<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Creates a batcher. `run` gets different keys and returns the values that it finds for them.
    /// `queue` is the name of the queue in [`Error::Busy`].
    pub fn new(
        queue: &'static str,
        run: impl Fn(Vec<K>) -> RunFuture<K, V> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(BatcherState {
            calls: Mutex::new(WaitingCalls {
                waiting: VecDeque::new(),
                in_flight: 0,
            }),
            admission: AdmissionQueue::new(queue),
            run: Box::new(run),
        }))
    }

    /// Returns the value of a key, if there is one. All calls of a batch get its error. Fails with
    /// [`Error::Busy`] if admission control rejects the call.
    pub async fn call(&self, key: K) -> Result<Option<V>, Error> {
        let slot = self.0.admission.enter(Instant::now())?;
        let (sender, receiver) = oneshot::channel();
        let call = WaitingCall {
            key,
            result: sender,
        };
        if self.0.enqueue(call) {
            tokio::spawn(self.0.clone().run_batches());
        }
        let result = receiver.await;
        let result = result.map_err(|_| Error::Unavailable("the process stops".to_owned()))??;
        slot.served(Instant::now());
        Ok(result)
    }
}

impl<K, V> BatcherState<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn lock(&self) -> MutexGuard<'_, WaitingCalls<K, V>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the caller must start another batch.
    fn enqueue(&self, call: WaitingCall<K, V>) -> bool {
        let mut calls = self.lock();
        calls.waiting.push_back(call);
        let is_started = calls.in_flight < MAX_IN_FLIGHT;
        calls.in_flight += usize::from(is_started);
        is_started
    }

    /// Takes the calls of the next batch. `None` ends one of the batches in flight.
    fn next_batch(&self) -> Option<Vec<WaitingCall<K, V>>> {
        let mut calls = self.lock();
        // The clients of the others have given up.
        calls.waiting.retain(|call| !call.result.is_closed());
        if calls.waiting.is_empty() {
            calls.in_flight -= 1;
            return None;
        }
        let length = calls.waiting.len().min(MAX_KEYS);
        Some(calls.waiting.drain(..length).collect())
    }

    /// Runs batches until no call waits.
    async fn run_batches(self: Arc<Self>) {
        while let Some(batch) = self.next_batch() {
            let keys: HashSet<&K> = batch.iter().map(|call| &call.key).collect();
            let keys: Vec<K> = keys.into_iter().cloned().collect();
            // In another task, so that a panic does not end this one.
            let values = tokio::spawn((self.run)(keys)).await;
            let values = values.unwrap_or_else(|error| Err(Error::Internal(error.to_string())));
            let values = values.map(HashMap::<K, V>::from_iter);
            for call in batch {
                let result = match &values {
                    Ok(values) => Ok(values.get(&call.key).cloned()),
                    Err(error) => Err(error.clone()),
                };
                // Fails if the client has given up.
                let _ = call.result.send(result);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        sync::{Semaphore, mpsc},
        task::JoinHandle,
        time::timeout,
    };

    use super::*;

    type CallResult = Result<Option<u32>, Error>;

    /// A batcher whose batches wait for a permit, and the sizes of the batches that have started.
    struct HeldBatcher {
        batcher: Arc<Batcher<u32, u32>>,
        permits: Arc<Semaphore>,
        started: mpsc::UnboundedReceiver<usize>,
    }

    impl HeldBatcher {
        /// The value of a key is ten times the key. Odd keys have none, 100 fails, 200 panics.
        fn new() -> Self {
            let permits = Arc::new(Semaphore::new(0));
            let (sender, started) = mpsc::unbounded_channel();
            let held = permits.clone();
            let batcher = Batcher::new("lane", move |keys: Vec<u32>| {
                let (held, sender) = (held.clone(), sender.clone());
                Box::pin(async move {
                    sender.send(keys.len()).unwrap();
                    held.acquire().await.unwrap().forget();
                    assert!(!keys.contains(&200));
                    if keys.contains(&100) {
                        return Err(Error::Unavailable("down".to_owned()));
                    }
                    let even = keys.into_iter().filter(|key| key % 2 == 0);
                    Ok(even.map(|key| (key, key * 10)).collect())
                })
            });
            Self {
                batcher: Arc::new(batcher),
                permits,
                started,
            }
        }

        fn call(&self, key: u32) -> JoinHandle<CallResult> {
            let batcher = self.batcher.clone();
            tokio::spawn(async move { batcher.call(key).await })
        }

        /// Returns the size of the next batch that starts.
        async fn started(&mut self) -> usize {
            let started = timeout(Duration::from_secs(5), self.started.recv()).await;
            started.unwrap().unwrap()
        }

        /// Starts as many batches as can be in flight, with key 2, and returns their calls.
        async fn fill(&mut self) -> Vec<JoinHandle<CallResult>> {
            let mut calls = Vec::new();
            for _ in 0..MAX_IN_FLIGHT {
                calls.push(self.call(2));
                assert_eq!(self.started().await, 1, "a single call does not wait");
            }
            calls
        }

        async fn wait_until_waiting(&self, number: usize) {
            while self.batcher.0.lock().waiting.len() < number {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn calls_gather_while_batches_are_in_flight() {
        let mut held = HeldBatcher::new();
        let mut calls = held.fill().await;
        calls.extend((0..10).flat_map(|key| [held.call(key), held.call(key)]));
        held.wait_until_waiting(20).await;
        held.permits.add_permits(1_000);
        assert_eq!(held.started().await, 10, "equal keys are sent once");
        for (at, call) in calls.into_iter().skip(MAX_IN_FLIGHT).enumerate() {
            let key = u32::try_from(at / 2).unwrap();
            let expected = (key % 2 == 0).then_some(key * 10);
            assert_eq!(call.await.unwrap().unwrap(), expected);
        }
        assert_eq!(held.call(4).await.unwrap().unwrap(), Some(40));
    }

    #[tokio::test]
    async fn large_batch_is_split_and_cancelled_calls_are_left_out() {
        let mut held = HeldBatcher::new();
        held.fill().await;
        let cancelled = held.call(2);
        held.wait_until_waiting(1).await;
        cancelled.abort();
        assert!(cancelled.await.is_err());
        let number = u32::try_from(MAX_KEYS).unwrap() + 50;
        let calls: Vec<_> = (1_000..1_000 + number).map(|key| held.call(key)).collect();
        // The canceled call is left out when the next batch starts.
        held.wait_until_waiting(calls.len() + 1).await;
        held.permits.add_permits(1_000);
        let (first, second) = (held.started().await, held.started().await);
        assert_eq!((first, first + second), (MAX_KEYS, calls.len()));
        for call in calls {
            call.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn failed_batch_fails_its_calls_and_no_others() {
        let mut held = HeldBatcher::new();
        let before = held.fill().await;
        let failed = [held.call(100), held.call(2)];
        held.wait_until_waiting(2).await;
        held.permits.add_permits(1_000);
        for call in before {
            assert_eq!(call.await.unwrap().unwrap(), Some(20));
        }
        for call in failed {
            let result = call.await.unwrap();
            assert!(matches!(result, Err(Error::Unavailable(_))), "{result:?}");
        }
        for _ in 0..=MAX_IN_FLIGHT {
            let result = held.call(200).await.unwrap();
            assert!(matches!(result, Err(Error::Internal(_))), "{result:?}");
        }
        assert_eq!(held.call(2).await.unwrap().unwrap(), Some(20));
    }
}
