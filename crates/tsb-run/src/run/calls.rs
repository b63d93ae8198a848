//! Tracks the calls into a store that have not returned.
//!
//! Nothing here waits for a store: a call is registered before it begins and removed when it
//! returns or panics. Every writer, and every thread that asks queries, has a counter of its own, so that
//! the path of a sample takes no lock; all other calls share a list.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Identifies one call among all calls of the same store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    caller: u64,
    number: u64,
}

/// The open calls of one store.
#[derive(Debug, Default)]
pub struct Calls {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    open: Vec<(u64, &'static str)>,
    writers: Vec<(u64, Weak<WriterState>)>,
    readers: Vec<(u64, Weak<WriterState>)>,
}

/// The state of one writer (or reader): even while it is idle, odd during a call. Aligned so that
/// two of them never share a cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct WriterState(AtomicU64);

/// Guard of an open write, which ends when this is dropped.
#[derive(Debug)]
pub struct WriteGuard<'a>(&'a WriterState);

/// Guard of another open call, which ends when this is dropped.
#[derive(Debug)]
pub struct CallGuard<'a> {
    calls: &'a Calls,
    id: u64,
}

impl Calls {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call of the method `what`.
    pub fn begin(&self, what: &'static str) -> CallGuard<'_> {
        let mut inner = self.inner();
        let id = inner.number();
        inner.open.push((id, what));
        CallGuard { calls: self, id }
    }

    /// Registers a writer.
    pub fn writer(&self) -> Arc<WriterState> {
        let writing = Arc::default();
        let mut inner = self.inner();
        let id = inner.number();
        if inner.writers.len() == inner.writers.capacity() {
            inner.writers.retain(|(_, writer)| writer.strong_count() > 0);
        }
        inner.writers.push((id, Arc::downgrade(&writing)));
        writing
    }

    /// Registers a thread that queries the store again and again.
    pub fn reader(&self) -> Arc<WriterState> {
        let reading = Arc::default();
        let mut inner = self.inner();
        let id = inner.number();
        inner.readers.retain(|(_, reader)| reader.strong_count() > 0);
        inner.readers.push((id, Arc::downgrade(&reading)));
        reading
    }

    /// All calls that have not returned, writes first: other calls may wait for a lock that a
    /// write holds.
    pub fn open(&self) -> Vec<(CallId, &'static str)> {
        let inner = self.inner();
        let others = inner.open.iter().map(|&(caller, what)| {
            let number = 0;
            (CallId { caller, number }, what)
        });
        let inside = |(caller, state): &(u64, Weak<WriterState>), what| {
            let number = state.upgrade()?.0.load(Ordering::Relaxed);
            let caller = *caller;
            (number % 2 == 1).then_some((CallId { caller, number }, what))
        };
        let writes = inner.writers.iter().filter_map(|writer| inside(writer, "write"));
        let queries = inner.readers.iter().filter_map(|reader| inside(reader, "query"));
        writes.chain(queries).chain(others).collect()
    }

    /// For each writer, in order of registration, whether it is in a write.
    pub fn writing(&self) -> Vec<bool> {
        let writers = self.inner();
        let writers = writers.writers.iter().filter_map(|(_, writer)| writer.upgrade());
        writers
            .map(|writer| writer.0.load(Ordering::Relaxed) % 2 == 1)
            .collect()
    }
}

impl Inner {
    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl WriterState {
    /// Registers a call.
    #[inline]
    pub fn begin(&self) -> WriteGuard<'_> {
        self.step();
        WriteGuard(self)
    }

    /// Load and store suffice, without a read-modify-write: only its writer changes the counter.
    #[inline]
    fn step(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Drop for WriteGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.step();
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let mut inner = self.calls.inner();
        inner.open.retain(|(id, _)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_open_until_it_returns_or_panics() {
        let calls = Arc::new(Calls::default());
        let flush = calls.begin("flush");
        let open = calls.open();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].1, "flush");
        let panicking = Arc::clone(&calls);
        let panicked = std::thread::spawn(move || {
            let _query = panicking.begin("query");
            panic!("boom");
        });
        assert!(panicked.join().is_err());
        assert_eq!(calls.open(), open);
        drop(flush);
        assert!(calls.open().is_empty());
    }

    #[test]
    fn each_write_of_each_writer_is_a_call_of_its_own() {
        let calls = Calls::default();
        let (one, other) = (calls.writer(), calls.writer());
        let first = {
            let _write = one.begin();
            assert_eq!(calls.writing(), [true, false]);
            calls.open()
        };
        assert!(calls.open().is_empty());
        let _again = one.begin();
        let second = calls.open();
        assert_eq!((first.len(), second.len()), (1, 1));
        assert_ne!(first, second);
        let _other = other.begin();
        assert_eq!(calls.open().len(), 2);
        drop(calls.writer());
        let reader = calls.reader();
        let _query = reader.begin();
        assert_eq!(calls.open().len(), 3);
        assert_eq!(calls.writing(), [true, true], "a writer that has gone is not counted");
    }
}
