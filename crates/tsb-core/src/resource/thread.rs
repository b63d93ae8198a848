//! One thread of this process, and the CPU time that it has used.

use crate::proc::Schedstat;

/// The operating system's id of the calling thread; 0 where there is none.
pub fn own_thread() -> u32 {
    #[cfg(target_os = "linux")]
    return rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    #[cfg(not(target_os = "linux"))]
    0
}

/// CPU time so far of a live thread of this process, in nanoseconds, by the scheduler's count; for
/// a running thread it may be a tick old. `None` if the thread does not exist, or the operating
/// system does not report it.
pub fn cpu_of_thread(thread: u32) -> Option<u64> {
    Some(Schedstat::of_thread(thread)?.used_ns)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::time::thread_cpu_ns;

    #[test]
    fn another_thread_is_seen_to_have_worked() {
        let (begin, end, number) = (Barrier::new(2), Barrier::new(2), AtomicU32::new(0));
        std::thread::scope(|threads| {
            let burning = threads.spawn(|| {
                number.store(own_thread(), Ordering::Release);
                while thread_cpu_ns() < 8_000_000 {}
                begin.wait();
                end.wait();
                thread_cpu_ns()
            });
            begin.wait();
            let seen = cpu_of_thread(number.load(Ordering::Acquire)).unwrap();
            end.wait();
            let used = burning.join().unwrap();
            assert!(seen >= 4_000_000 && seen <= used, "{seen} of {used}");
        });
        assert_eq!(cpu_of_thread(u32::MAX), None);
    }
}
