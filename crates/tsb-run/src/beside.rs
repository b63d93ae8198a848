//! A thread beside some work, which ends when the work does.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs `work`, and beside it `side` on a thread of its own, which has to return soon after its flag
/// is set. The flag is set when `work` ends, also by a panic. Returns what both came to, after both
/// have ended.
pub(crate) fn beside<T, U: Send>(
    side: impl FnOnce(&AtomicBool) -> U + Send,
    work: impl FnOnce() -> T,
) -> (thread::Result<T>, thread::Result<U>) {
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let side = threads.spawn(|| side(&is_over));
        // The other thread waits for the flag, so a panic must not skip it.
        let worked = catch_unwind(AssertUnwindSafe(work));
        is_over.store(true, Ordering::Release);
        (worked, side.join())
    })
}

/// What a thread or caught work came to; its panic goes on.
pub(crate) fn resumed<T>(ended: thread::Result<T>) -> T {
    ended.unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until_over(is_over: &AtomicBool) -> u32 {
        while !is_over.load(Ordering::Acquire) {
            thread::yield_now();
        }
        7
    }

    #[test]
    fn the_side_ends_with_the_work_also_after_a_panic() {
        let (worked, side) = beside(until_over, || 5);
        assert_eq!((resumed(worked), resumed(side)), (5, 7));
        let (worked, side) = beside(until_over, || panic!("boom"));
        let worked: thread::Result<()> = worked;
        assert!(worked.is_err());
        assert_eq!(resumed(side), 7);
    }

    #[test]
    fn a_panic_of_the_side_leaves_the_work() {
        let (worked, side) = beside(|_| panic!("boom"), || 5);
        let side: thread::Result<()> = side;
        assert_eq!(resumed(worked), 5);
        assert!(side.is_err());
    }
}
