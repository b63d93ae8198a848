//! Locks that ignore poisoning. They guard state that a panic cannot leave half changed: every
//! holder changes it in a few assignments, or replaces it as a whole.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks a mutex.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading.
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing.
pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// A condition variable with a count of waiting threads, so that notifying without a waiting
/// thread costs no system call (std's makes one each time).
///
/// The notifier must have changed the awaited state under the mutex; it may have released the
/// mutex since.
#[derive(Debug, Default)]
pub struct CountedCondvar {
    condvar: Condvar,
    // Changed only under the mutex, so a thread that holds it later sees all waiting threads.
    waiting: AtomicUsize,
}

impl CountedCondvar {
    /// Releases the mutex and waits for a notification. May also return spuriously.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_one();
        }
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_waiting_thread_is_notified() {
        const TURNS: usize = 20_000;
        let (turn, condvar) = (Mutex::new(0), CountedCondvar::default());
        std::thread::scope(|scope| {
            for me in 0..3 {
                let (turn, condvar) = (&turn, &condvar);
                scope.spawn(move || {
                    for round in 0..TURNS {
                        let mut guard = lock(turn);
                        while *guard != 3 * round + me {
                            guard = condvar.wait(guard);
                        }
                        *guard += 1;
                        // Notify both while holding the mutex and after releasing it.
                        if round % 2 == 0 {
                            drop(guard);
                        }
                        condvar.notify_all();
                    }
                });
            }
        });
        assert_eq!(*lock(&turn), 3 * TURNS);
        assert_eq!(condvar.waiting.into_inner(), 0);
    }
}
