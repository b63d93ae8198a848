//! The calls into a store that have not returned.
//!
//! Nothing here waits for a store: a call is noted before it begins and struck off when it
//! returns or panics. Writers note theirs in a word of their own, so that the path of a sample
//! takes no lock; all other calls share a list.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// One call, told from all others of the same store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    caller: u64,
    number: u64,
}

/// The calls of one store.
#[derive(Debug, Default)]
pub struct Calls {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    open: Vec<(u64, &'static str)>,
    writers: Vec<(u64, Weak<Writing>)>,
}

/// The writes of one writer: even while none goes on, odd while one does.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Writing(AtomicU64);

/// A write that goes on until this is dropped.
#[derive(Debug)]
pub struct Write<'a>(&'a Writing);

/// Another call that goes on until this is dropped.
#[derive(Debug)]
pub struct Call<'a> {
    calls: &'a Calls,
    id: u64,
}

impl Calls {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call of a method begins.
    pub fn begin(&self, what: &'static str) -> Call<'_> {
        let mut inner = self.inner();
        let id = inner.number();
        inner.open.push((id, what));
        Call { calls: self, id }
    }

    /// A further writer.
    pub fn writer(&self) -> Arc<Writing> {
        let writing = Arc::default();
        let mut inner = self.inner();
        let id = inner.number();
        if inner.writers.len() == inner.writers.capacity() {
            inner.writers.retain(|(_, writer)| writer.strong_count() > 0);
        }
        inner.writers.push((id, Arc::downgrade(&writing)));
        writing
    }

    /// All calls that have not returned, writes first: others may wait for what a write holds.
    pub fn open(&self) -> Vec<(CallId, &'static str)> {
        let inner = self.inner();
        let others = inner.open.iter().map(|&(caller, what)| {
            let number = 0;
            (CallId { caller, number }, what)
        });
        let writes = inner.writers.iter().filter_map(|(caller, writer)| {
            let number = writer.upgrade()?.0.load(Ordering::Relaxed);
            let caller = *caller;
            (number % 2 == 1).then_some((CallId { caller, number }, "write"))
        });
        writes.chain(others).collect()
    }

    /// Of each writer in the order in which they came, whether it is in a write.
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

impl Writing {
    /// A write begins.
    #[inline]
    pub fn begin(&self) -> Write<'_> {
        self.step();
        Write(self)
    }

    /// One writer alone changes it.
    #[inline]
    fn step(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Drop for Write<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.step();
    }
}

impl Drop for Call<'_> {
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
        assert_eq!(calls.writing(), [true, true], "a writer that has gone is not counted");
    }
}
