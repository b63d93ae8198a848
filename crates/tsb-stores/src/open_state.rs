//! Whether the calls of a store succeed: it is open, poisoned by an earlier failure, or closed.
//!
//! Three types, from cheap to thorough. [`ClosedFlag`] is for a store that cannot fail,
//! [`PoisonFlag`] for one whose calls are ordered by a lock of its own, and [`OpenState`] for one
//! whose closing waits for the calls that have begun.

#[cfg(feature = "sqlite")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{RwLock, RwLockReadGuard};

use crate::error::{Error, Result, chain};
use crate::locks::{read, write};

/// Open or closed. A call that has begun goes on when the store is closed meanwhile.
#[derive(Debug, Default)]
pub struct ClosedFlag(AtomicBool);

impl ClosedFlag {
    /// The flag of an open store.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// To be called at the beginning of every call but `close`.
    ///
    /// # Errors
    /// [`Error::Closed`].
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        if self.0.load(Ordering::Acquire) {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }

    /// Marks the store as closed. Returns whether it was open.
    pub fn close(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// Open, poisoned or closed, without a lock.
#[cfg(feature = "sqlite")]
#[derive(Debug, Default)]
pub(crate) struct PoisonFlag {
    closed: ClosedFlag,
    cause: OnceLock<String>,
}

#[cfg(feature = "sqlite")]
impl PoisonFlag {
    /// # Errors
    /// [`Error::Closed`], or [`Error::Poisoned`] with the first failure.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        self.closed.check_open()?;
        self.check_sound()
    }

    fn check_sound(&self) -> Result<()> {
        match self.cause.get() {
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// From now on only closing works. The cause of the first call stays.
    pub(crate) fn poison(&self, cause: impl FnOnce() -> String) {
        self.cause.get_or_init(cause);
    }

    /// Marks the store as closed. `None` if it was closed before, else an error if it is poisoned.
    pub(crate) fn begin_close(&self) -> Option<Result<()>> {
        self.closed.close().then(|| self.check_sound())
    }
}

/// Open, poisoned or closed, under a lock that every call holds for reading.
#[derive(Debug, Default)]
pub(crate) struct OpenState(RwLock<Phase>);

/// The phases of a store; calls succeed while it is open.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    Poisoned(String),
    Closed,
}

impl OpenState {
    /// Keeps the store open during one call; closing and poisoning wait for the returned guard.
    ///
    /// # Errors
    /// [`Error::Closed`], or [`Error::Poisoned`] with the first failure.
    #[inline]
    pub(crate) fn begin(&self) -> Result<RwLockReadGuard<'_, Phase>> {
        let phase = read(&self.0);
        match &*phase {
            Phase::Open => Ok(phase),
            Phase::Poisoned(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            Phase::Closed => Err(Error::Closed),
        }
    }

    /// Poisons an open store: from now on only closing works. The caller must hold no guard.
    pub(crate) fn poison(&self, error: &Error) {
        let mut phase = write(&self.0);
        if let Phase::Open = *phase {
            *phase = Phase::Poisoned(chain(error));
        }
    }

    /// Marks the store as closed, once the calls that have begun are over. Returns whether it was
    /// open or poisoned.
    pub(crate) fn begin_close(&self) -> bool {
        !matches!(std::mem::replace(&mut *write(&self.0), Phase::Closed), Phase::Closed)
    }

    /// Closes the store, once the calls that have begun are over. `finish` gets an error if the
    /// store is poisoned, and is not called if it was closed before. Other calls, of `close` too,
    /// wait until `finish` returns.
    pub(crate) fn close(&self, finish: impl FnOnce(Result<()>) -> Result<()>) -> Result<()> {
        let mut phase = write(&self.0);
        match std::mem::replace(&mut *phase, Phase::Closed) {
            Phase::Open => finish(Ok(())),
            Phase::Poisoned(cause) => finish(Err(Error::Poisoned { cause })),
            Phase::Closed => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Error {
        Error::Backend {
            action: "write".to_owned(),
            source: "disk full".into(),
        }
    }

    fn is_poisoned_by(result: Result<()>, expected: &str) -> bool {
        matches!(result, Err(Error::Poisoned { cause }) if cause == expected)
    }

    #[test]
    fn a_closed_flag_is_closed_once() {
        let flag = ClosedFlag::new();
        assert!(flag.check_open().is_ok());
        assert!(flag.close() && !flag.close());
        assert!(matches!(flag.check_open(), Err(Error::Closed)));
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_poison_flag_keeps_the_first_cause_until_it_is_closed() {
        let flag = PoisonFlag::default();
        assert!(flag.check_open().is_ok());
        flag.poison(|| "first".to_owned());
        flag.poison(|| "second".to_owned());
        assert!(is_poisoned_by(flag.check_open(), "first"));
        assert!(is_poisoned_by(flag.begin_close().unwrap(), "first"));
        assert!(flag.begin_close().is_none());
        assert!(matches!(flag.check_open(), Err(Error::Closed)));
        assert!(matches!(PoisonFlag::default().begin_close(), Some(Ok(()))));
    }

    #[test]
    fn a_poisoned_store_can_only_be_closed() {
        let state = OpenState::default();
        drop(state.begin().unwrap());
        state.poison(&failure());
        state.poison(&Error::Closed);
        let cause = "cannot write: disk full";
        assert!(is_poisoned_by(state.begin().map(drop), cause));
        assert!(is_poisoned_by(state.close(|was| was), cause));
        assert!(matches!(state.begin(), Err(Error::Closed)));
        state.poison(&failure());
        assert!(state.close(|_| Err(failure())).is_ok(), "it was closed before");
        assert!(!state.begin_close());
        assert!(OpenState::default().begin_close());
    }

    #[test]
    fn closing_waits_for_a_call_and_its_error_is_returned() {
        let (state, is_over) = (OpenState::default(), AtomicBool::new(false));
        let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
        std::thread::scope(|scope| {
            let (state, is_over) = (&state, &is_over);
            scope.spawn(move || {
                let call = state.begin().unwrap();
                begun.send(()).unwrap();
                (0..1_000).for_each(|_| std::thread::yield_now());
                is_over.store(true, Ordering::Release);
                drop(call);
            });
            has_begun.recv().unwrap();
            let closed = state.close(|was| {
                assert!(is_over.load(Ordering::Acquire));
                was.and_then(|()| Err(failure()))
            });
            assert!(matches!(closed, Err(Error::Backend { .. })));
        });
        assert!(matches!(state.begin(), Err(Error::Closed)));
    }
}
