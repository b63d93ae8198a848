//! A batch written with a number of requests in flight.
//!
//! A client of a server gets the whole batch with one call and keeps the requests in flight itself,
//! as the workers of the original's adapter did. A store in this process has no requests: threads
//! take one key after the other and put it with a call of its own, so that a call is what a request
//! is to a server, and each key is acknowledged for itself.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tsb_core::time::{Clock, SECOND_NS};
use tsb_stores::Refusals;
use tsb_stores::keyed::{KeyedStore, Put};

use crate::error::{Error, panic_message};

/// Who keeps several requests of a batch in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptBy {
    /// The client, which was opened for their number.
    Client,
    /// As many threads as requests.
    Threads,
}

/// A batch that is to be written.
#[derive(Debug)]
pub(super) struct RecordBatch<'a> {
    /// Its keys.
    pub(super) puts: &'a [Put],
    /// Requests in flight, at least 1.
    pub(super) in_flight: usize,
    /// Who keeps them in flight.
    pub(super) kept_by: KeptBy,
}

impl RecordBatch<'_> {
    /// Writes it. Returns the seconds from its begin to the last acknowledgement; starting threads
    /// is not part of them.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if a put fails or a key is refused; [`Error::Interrupted`] if `stop` is
    /// set before the end; [`Error::Internal`] if a thread panicked.
    pub(super) fn write(&self, store: &dyn KeyedStore, clock: &dyn Clock, stop: &AtomicBool) -> Result<f64, Error> {
        match self.kept_by {
            KeptBy::Client => {
                let began = clock.now();
                put(store, self.puts)?;
                Ok((clock.now() - began) as f64 / SECOND_NS as f64)
            }
            KeptBy::Threads => self.by_threads(store, clock, stop),
        }
    }

    fn by_threads(&self, store: &dyn KeyedStore, clock: &dyn Clock, stop: &AtomicBool) -> Result<f64, Error> {
        let threads = self.in_flight.max(1);
        let (next, ready) = (AtomicUsize::new(0), Barrier::new(threads));
        let work = || -> Result<(u64, u64), Error> {
            ready.wait();
            let began = clock.now();
            while let Some(one) = self.puts.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::interrupted("the batch was not written to its end"));
                }
                put(store, std::slice::from_ref(one))?;
            }
            Ok((began, clock.now()))
        };
        let (mut first, mut last) = (u64::MAX, 0);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            for writer in writers {
                let times = writer.join().map_err(|panic| {
                    Error::internal("a thread of the experiment panicked").because_of(panic_message(&*panic))
                })?;
                let (began, ended) = times?;
                (first, last) = (first.min(began), last.max(ended));
            }
            Ok(last.saturating_sub(first) as f64 / SECOND_NS as f64)
        })
    }
}

/// Puts keys with one call, none of which may be refused.
fn put(store: &dyn KeyedStore, puts: &[Put]) -> Result<(), Error> {
    let mut refused = Refusals::new();
    let failed = || Error::unreachable(format!("cannot write a batch into {store}"));
    let ack = store
        .put(puts, &mut refused)
        .map_err(|error| failed().because(&error))?;
    match refused.as_slice().first() {
        None => Ok(()),
        Some(first) => Err(failed().because_of(format!("{} keys were refused: {}", ack.rejected, first.reason.name()))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    use tsb_core::time::{ManualClock, MonotonicClock};
    use tsb_stores::keyed::{Key, KeyedCapabilities, KeyedMemory, KeyedMemoryOptions, KeyedVisitor, PutAck};
    use tsb_stores::{Reason, Result as StoreResult};

    use super::super::content::records;
    use super::*;

    /// A store that counts its puts, and refuses a key of one number.
    #[derive(Debug)]
    struct Counting {
        inner: KeyedMemory,
        puts: AtomicU32,
        refused: &'static str,
    }

    impl std::fmt::Display for Counting {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("counting:")
        }
    }

    impl KeyedStore for Counting {
        fn capabilities(&self) -> KeyedCapabilities {
            self.inner.capabilities()
        }
        fn put(&self, puts: &[Put], refused: &mut Refusals) -> StoreResult<PutAck> {
            self.puts.fetch_add(1, Ordering::Relaxed);
            let ack = self.inner.put(puts, refused)?;
            let refusal = puts.iter().position(|put| put.key.as_str() == self.refused);
            let refusal: Vec<_> = refusal.map(|index| (index, Reason::Full)).into_iter().collect();
            Ok(PutAck::refusing(puts.len(), refusal, refused, ack.durability))
        }
        fn delete(&self, keys: &[Key]) -> StoreResult<usize> {
            self.inner.delete(keys)
        }
        fn delete_below(&self, prefix: Option<&Key>) -> StoreResult<()> {
            self.inner.delete_below(prefix)
        }
        fn get(&self, key: &Key) -> StoreResult<Option<String>> {
            self.inner.get(key)
        }
        fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> StoreResult<()> {
            self.inner.list(prefix, visit)
        }
        fn close(&self) -> StoreResult<()> {
            self.inner.close()
        }
    }

    fn counting(refused: &'static str) -> Counting {
        Counting {
            inner: KeyedMemory::new(KeyedMemoryOptions::default(), Arc::new(ManualClock::new())),
            puts: AtomicU32::new(0),
            refused,
        }
    }

    fn written(store: &Counting, kept_by: KeptBy, in_flight: usize, is_stopped: bool) -> Result<f64, Error> {
        let puts = records(1, 0, 512, 8).unwrap();
        let batch = RecordBatch {
            puts: &puts,
            in_flight,
            kept_by,
        };
        batch.write(store, &MonotonicClock::new(), &AtomicBool::new(is_stopped))
    }

    fn keys(store: &Counting) -> usize {
        let mut keys = 0;
        let listed = store.list(None, &mut |_, _| {
            keys += 1;
            std::ops::ControlFlow::Continue(())
        });
        listed.map(|()| keys).unwrap()
    }

    #[test]
    fn threads_put_each_key_once_and_a_client_gets_the_whole_batch() {
        for (kept_by, in_flight, puts) in [
            (KeptBy::Threads, 1, 512),
            (KeptBy::Threads, 30, 512),
            (KeptBy::Client, 30, 1),
        ] {
            let store = counting("");
            assert!(written(&store, kept_by, in_flight, false).unwrap() > 0.0);
            assert_eq!((store.puts.load(Ordering::Relaxed), keys(&store)), (puts, 512));
        }
    }

    #[test]
    fn a_refused_key_is_an_error_and_an_interrupted_batch_ends() {
        for kept_by in [KeptBy::Threads, KeptBy::Client] {
            let error = written(&counting("record/17"), kept_by, 5, false).unwrap_err();
            let words = crate::error::chain(&error);
            assert!(
                words.contains("counting:") && words.contains("1 keys were refused: full"),
                "{words}"
            );
        }
        let store = counting("");
        let error = written(&store, KeptBy::Threads, 5, true).unwrap_err();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        assert_eq!(keys(&store), 0);
    }
}
