//! The threads that a store has for itself, and the CPU time that they have used.
//!
//! What a store does behind its callers' backs is a cost of the store. A thread enters
//! itself here when it begins; [`OwnThreads::cpu_ns`] goes into [`crate::Stats`]. Nothing is
//! found by name or by guessing, so several stores in one process do not mix.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use tsb_core::resource::{cpu_of_thread, own_thread};
use tsb_core::time::thread_cpu_ns;

use crate::locks::lock;

/// The threads of one store. Clones are the same threads.
#[derive(Clone, Debug, Default)]
pub struct OwnThreads(Arc<Mutex<Threads>>);

#[derive(Debug, Default)]
struct Threads {
    living: Vec<u32>,
    ended_ns: u64,
}

/// A thread that is one of the store's until this is dropped, which it does itself.
#[derive(Debug)]
struct Entered(OwnThreads);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl OwnThreads {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a thread that is one of them.
    ///
    /// # Errors
    /// When the operating system has no thread to spare.
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

    /// The calling thread is one of them from now on, with all that it has used so far: for
    /// threads that somebody else starts, such as an async runtime.
    pub fn enter(&self) {
        lock(&self.0).living.push(own_thread());
    }

    /// The calling thread ends.
    pub fn leave(&self) {
        let own = own_thread();
        let mut threads = lock(&self.0);
        if let Some(place) = threads.living.iter().position(|thread| *thread == own) {
            threads.living.swap_remove(place);
            threads.ended_ns += thread_cpu_ns();
        }
    }

    /// CPU time of all of them so far, in nanoseconds; `None` where the operating system does
    /// not say what a thread has used. That of a thread that is running right now may be a
    /// tick of the scheduler old, a few milliseconds.
    pub fn cpu_ns(&self) -> Option<u64> {
        // Nobody leaves meanwhile, so none is missed and none counts twice.
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
