//! The background threads of a store, and the CPU time that they have used.
//!
//! Work on a store's own threads is part of the store's cost. A thread registers itself when it
//! begins; [`OwnThreads::cpu_ns`] goes into [`crate::Stats`]. Threads are not identified by name,
//! so several stores in one process do not mix.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use tsb_core::resource::{cpu_of_thread, own_thread};
use tsb_core::time::thread_cpu_ns;

use crate::locks::lock;

/// The threads of one store. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct OwnThreads(Arc<Mutex<Threads>>);

#[derive(Debug, Default)]
struct Threads {
    living: Vec<u32>,
    ended_ns: u64,
}

/// Registers the calling thread until it is dropped, on the same thread.
#[derive(Debug)]
struct Entered(OwnThreads);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl OwnThreads {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a thread that is registered.
    ///
    /// # Errors
    /// If the operating system cannot start a thread.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let threads = self.clone();
        Builder::new().name(name.to_owned()).spawn(move || {
            threads.enter();
            let _entered = Entered(threads);
            run()
        })
    }

    /// Registers the calling thread, with the CPU time that it has used already: for threads that
    /// other code starts, such as an async runtime.
    pub fn enter(&self) {
        lock(&self.0).living.push(own_thread());
    }

    /// Removes the calling thread, which is about to end, and keeps its CPU time.
    pub fn leave(&self) {
        let own = own_thread();
        let mut threads = lock(&self.0);
        if let Some(place) = threads.living.iter().position(|thread| *thread == own) {
            threads.living.swap_remove(place);
            threads.ended_ns += thread_cpu_ns();
        }
    }

    /// CPU time of all these threads so far, in nanoseconds; `None` if the operating system does
    /// not report it per thread. The figure of a running thread may lag by a scheduler tick, a
    /// few milliseconds.
    pub fn cpu_ns(&self) -> Option<u64> {
        // No thread can leave while this lock is held, so none is missed or counted twice.
        let threads = lock(&self.0);
        let living = threads.living.iter().map(|thread| cpu_of_thread(*thread));
        living.sum::<Option<u64>>().map(|ns| ns + threads.ended_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn burn(ns: u64) {
        let until = thread_cpu_ns() + ns;
        while thread_cpu_ns() < until {}
    }

    #[test]
    fn threads_count_while_they_live_and_after_and_others_do_not() {
        let (threads, others) = (OwnThreads::new(), OwnThreads::new());
        assert_eq!(threads.cpu_ns(), Some(0));
        let (burnt, end) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (inner_burnt, inner_end) = (Arc::clone(&burnt), Arc::clone(&end));
        let living = threads.spawn("burns", move || {
            burn(20_000_000);
            inner_burnt.wait();
            inner_end.wait();
        });
        let ended = threads.spawn("ends", || burn(20_000_000)).unwrap();
        ended.join().unwrap();
        burnt.wait();
        // One lives and waits, one has ended.
        let both = threads.cpu_ns().unwrap();
        assert!(both >= 36_000_000, "{both}");
        assert_eq!(others.cpu_ns(), Some(0));
        end.wait();
        living.unwrap().join().unwrap();
        assert!(threads.cpu_ns().unwrap() >= both);
    }

    #[test]
    fn a_thread_that_panics_has_left() {
        let threads = OwnThreads::new();
        let panicking = threads.spawn("panics", || panic!("on purpose")).unwrap();
        assert!(panicking.join().is_err());
        assert!(lock(&threads.0).living.is_empty());
    }
}
