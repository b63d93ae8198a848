//! The asynchronous contract of a client of keys, and its blocking interface.

use std::fmt::{Debug, Display};
use std::future::{Future, poll_fn};

use crate::Bridge;
use tsb_stores::Refusals;
use tsb_stores::error::Result;
use tsb_stores::keyed::{AsyncKeyedStore, Key, KeyedCapabilities, KeyedStore, KeyedVisitor, Put, PutAck, PutLane};

/// [`KeyedStore`] without blocking. The same requirements apply; each method that contacts the
/// server returns a future. Any number of futures may be in flight at a time.
///
/// Dropping a future before it is done leaves the outcome of its request unknown. Every request
/// ends within the client's own deadline, as those of a [`Client`](crate::Client).
pub trait KeyedClient: Debug + Display + Send + Sync + 'static {
    /// See [`KeyedStore::capabilities`].
    fn capabilities(&self) -> KeyedCapabilities;

    /// See [`KeyedStore::put`]. If the outcome is an error, ignore the refusals.
    fn put(&self, puts: &[Put], refused: &mut Refusals) -> impl Future<Output = Result<PutAck>> + Send;

    /// See [`KeyedStore::delete`].
    fn delete(&self, keys: &[Key]) -> impl Future<Output = Result<usize>> + Send;

    /// See [`KeyedStore::delete_below`].
    fn delete_below(&self, prefix: Option<&Key>) -> impl Future<Output = Result<()>> + Send;

    /// See [`KeyedStore::get`].
    fn get(&self, key: &Key) -> impl Future<Output = Result<Option<String>>> + Send;

    /// Keys below a prefix, for [`KeyedStore::list`]: those that come after `after`, which was
    /// the last of the page before.
    fn page(&self, prefix: Option<&Key>, after: Option<&Key>) -> impl Future<Output = Result<KeyPage>> + Send;

    /// See [`KeyedStore::close`].
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPage {
    /// Keys and their values.
    pub entries: Vec<(Key, String)>,
    /// Whether further keys may follow; then there is at least one entry.
    pub more: bool,
}

impl<C: KeyedClient> AsyncKeyedStore for Bridge<C> {
    fn serve(&self, mut lane: Box<dyn PutLane>) -> Result<()> {
        // One task per lane, as for writes of samples.
        self.spawn(|client| async move {
            let mut refused = Refusals::new();
            while poll_fn(|context| lane.poll_next(context)).await {
                let outcome = client.put(lane.puts(), &mut refused).await;
                lane.done(outcome, &refused);
                refused.clear();
            }
        })
    }
}

impl<C: KeyedClient> KeyedStore for Bridge<C> {
    fn capabilities(&self) -> KeyedCapabilities {
        self.client().capabilities()
    }

    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        self.wait(self.client().put(puts, refused))
    }

    fn delete(&self, keys: &[Key]) -> Result<usize> {
        self.wait(self.client().delete(keys))
    }

    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        self.wait(self.client().delete_below(prefix))
    }

    fn get(&self, key: &Key) -> Result<Option<String>> {
        self.wait(self.client().get(key))
    }

    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        let mut after: Option<Key> = None;
        loop {
            // The visitor runs between requests, so it may be slow.
            let page = self.wait(self.client().page(prefix, after.as_ref()))?;
            if page.entries.iter().any(|(key, value)| visit(key, value).is_break()) {
                return Ok(());
            }
            match page.entries.into_iter().next_back() {
                Some((last, _)) if page.more => after = Some(last),
                _ => return Ok(()),
            }
        }
    }

    fn close(&self) -> Result<()> {
        self.wait(self.client().close())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll};

    use tokio::sync::Barrier;
    use tsb_core::Durability;
    use tsb_stores::parts::lock;

    use super::*;

    /// Many puts at a time: none ends before that many are in flight.
    const MANY: usize = 100;

    #[derive(Debug)]
    struct Slow(Barrier);

    impl Display for Slow {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("slow")
        }
    }

    impl KeyedClient for Slow {
        fn capabilities(&self) -> KeyedCapabilities {
            KeyedCapabilities::new(Durability::Volatile)
        }

        async fn put(&self, puts: &[Put], _refused: &mut Refusals) -> Result<PutAck> {
            self.0.wait().await;
            Ok(PutAck::new(puts.len(), 0, Durability::Volatile))
        }

        async fn delete(&self, keys: &[Key]) -> Result<usize> {
            Ok(keys.len())
        }

        async fn delete_below(&self, _prefix: Option<&Key>) -> Result<()> {
            Ok(())
        }

        async fn get(&self, key: &Key) -> Result<Option<String>> {
            Ok(Some(key.to_string()))
        }

        /// Two keys per page, five in all.
        async fn page(&self, _prefix: Option<&Key>, after: Option<&Key>) -> Result<KeyPage> {
            let first = after.map_or(0, |after| after.as_str().parse::<usize>().unwrap() + 1);
            let numbers = first..(first + 2).min(5);
            let entry = |number: usize| (Key::new(number.to_string()).unwrap(), "v".to_owned());
            let more = numbers.end < 5;
            Ok(KeyPage {
                entries: numbers.map(entry).collect(),
                more,
            })
        }

        async fn close(&self) -> Result<()> {
            Ok(())
        }
    }

    /// A lane with two puts.
    struct Two {
        left: usize,
        put: [Put; 1],
        accepted: Arc<Mutex<usize>>,
        ended: std::sync::mpsc::SyncSender<()>,
    }

    impl PutLane for Two {
        fn poll_next(&mut self, _context: &mut Context<'_>) -> Poll<bool> {
            if self.left == 0 {
                self.ended.send(()).unwrap();
                return Poll::Ready(false);
            }
            self.left -= 1;
            Poll::Ready(true)
        }

        fn puts(&self) -> &[Put] {
            &self.put
        }

        fn done(&mut self, outcome: Result<PutAck>, refused: &Refusals) {
            assert!(refused.is_empty());
            *lock(&self.accepted) += outcome.unwrap().accepted;
        }
    }

    #[test]
    fn each_lane_is_a_put_in_flight() {
        let store = Bridge::connect(|| async { Ok(Slow(Barrier::new(MANY))) }).unwrap();
        let accepted: Arc<Mutex<usize>> = Arc::default();
        let (ended, all) = std::sync::mpsc::sync_channel(MANY);
        for number in 0..MANY {
            let lane = Two {
                left: 2,
                put: [Put::new(Key::new(number.to_string()).unwrap(), "v")],
                accepted: Arc::clone(&accepted),
                ended: ended.clone(),
            };
            store.serve(Box::new(lane)).unwrap();
        }
        (0..MANY).for_each(|_| all.recv().unwrap());
        assert_eq!(*lock(&accepted), 2 * MANY);
    }

    #[test]
    fn a_list_reads_page_after_page() {
        let store = Bridge::connect(|| async { Ok(Slow(Barrier::new(1))) }).unwrap();
        let listed = |most: usize| {
            let mut found = Vec::new();
            let visit = &mut |key: &Key, _: &str| {
                found.push(key.to_string());
                if found.len() == most {
                    std::ops::ControlFlow::Break(())
                } else {
                    std::ops::ControlFlow::Continue(())
                }
            };
            store.list(None, visit).unwrap();
            found.join(" ")
        };
        assert_eq!((listed(9).as_str(), listed(3).as_str()), ("0 1 2 3 4", "0 1 2"));
        assert_eq!(store.delete(&[Key::new("a").unwrap()]).unwrap(), 1);
    }
}
