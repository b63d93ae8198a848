//! The conformance suite of [`KeyedStore`], for anybody's store of keys: every clause except 2,
//! which only permits something.
//!
//! ```
//! use tsb_stores::keyed::conformance::{KeyedFresh, checks};
//! use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions};
//!
//! let memory = KeyedFresh::new("memory", |clock| {
//!     Ok(KeyedMemory::new(KeyedMemoryOptions::default(), clock))
//! });
//! let all = checks(memory);
//! let expiry = all.iter().find(|check| check.name() == "memory::c6_gone_after_its_time_to_live");
//! assert!(expiry.is_some_and(|check| check.clause() == 6 && check.run().is_ok()));
//! ```
//!
//! [`trials`] lists the checks for `libtest-mimic`. Time to live is tested on the clock of the
//! place: in virtual time with a [`ManualClock`], and by waiting with a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use libtest_mimic::Trial;
use tsb_core::time::{Clock, ManualClock, SECOND_NS};

use super::contract::{KeyedCapabilities, KeyedStore};
use crate::conformance::failure::Failure;
use crate::conformance::{Check, CheckOutcome, trials_of};
use crate::error::{Error, Result};

#[cfg(test)]
mod broken;
mod cases;
mod expiry;
mod lifecycle;
mod random;

/// Creates places for one kind of store of keys.
pub trait KeyedFixture: Send + Sync + 'static {
    /// The first part of every check's name.
    fn name(&self) -> String;

    /// A new, empty place that no other check uses.
    fn place(&self) -> Result<Box<dyn KeyedPlace>>;

    /// A time to live that is long enough for a few calls, in nanoseconds: the suite waits that
    /// long.
    fn ttl_ns(&self) -> u64;

    /// Why this store cannot be tested here (for example, no server); its checks are then listed
    /// as ignored, with this reason.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// A new, empty place whose store holds as many keys as stated, in [2, 1000]; `None` if this
    /// kind has no limit.
    fn bounded(&self) -> Result<Option<(Box<dyn KeyedPlace>, usize)>> {
        Ok(None)
    }
}

/// A place where a store keeps its keys.
pub trait KeyedPlace: Send + Sync {
    /// Opens the store here. A persistent store is opened again after it was closed, while the
    /// closed value still exists, and after its value was dropped without a close.
    fn open(&self) -> Result<Box<dyn KeyedStore>>;

    /// The clock by which keys of this place expire. The suite waits on it.
    fn clock(&self) -> Arc<dyn Clock>;
}

/// Opens a new, empty store, whose keys expire by a clock.
type Open = dyn Fn(Arc<dyn Clock>) -> Result<Box<dyn KeyedStore>> + Send + Sync;

/// The fixture of a store without persistence, in virtual time: a name and a constructor.
pub struct KeyedFresh {
    name: String,
    open: Arc<Open>,
    bounded: Option<(Arc<Open>, usize)>,
}

impl KeyedFresh {
    /// `open` must return a new, empty store at each call, whose keys expire by the clock that it
    /// gets.
    pub fn new<S: KeyedStore>(
        name: impl Into<String>,
        open: impl Fn(Arc<dyn Clock>) -> Result<S> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            open: boxed(open),
            bounded: None,
        }
    }

    /// Adds a store that holds at most `max_keys` keys: see [`KeyedFixture::bounded`].
    #[must_use]
    pub fn bounded<S: KeyedStore>(
        self,
        max_keys: usize,
        open: impl Fn(Arc<dyn Clock>) -> Result<S> + Send + Sync + 'static,
    ) -> Self {
        Self {
            bounded: Some((boxed(open), max_keys)),
            ..self
        }
    }
}

fn boxed<S: KeyedStore>(open: impl Fn(Arc<dyn Clock>) -> Result<S> + Send + Sync + 'static) -> Arc<Open> {
    Arc::new(move |clock| Ok(Box::new(open(clock)?)))
}

impl std::fmt::Debug for KeyedFresh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedFresh")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl KeyedFixture for KeyedFresh {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn place(&self) -> Result<Box<dyn KeyedPlace>> {
        Ok(Box::new(Once::new(&self.open)))
    }

    fn ttl_ns(&self) -> u64 {
        SECOND_NS
    }

    fn bounded(&self) -> Result<Option<(Box<dyn KeyedPlace>, usize)>> {
        let bounded = self.bounded.as_ref();
        Ok(bounded.map(|(open, max_keys)| (Box::new(Once::new(open)) as Box<dyn KeyedPlace>, *max_keys)))
    }
}

/// A place that can be opened once: its keys are gone with the store.
struct Once {
    open: Arc<Open>,
    clock: Arc<ManualClock>,
    is_opened: AtomicBool,
}

impl Once {
    fn new(open: &Arc<Open>) -> Self {
        Self {
            open: Arc::clone(open),
            clock: Arc::default(),
            is_opened: AtomicBool::new(false),
        }
    }
}

impl KeyedPlace for Once {
    fn open(&self) -> Result<Box<dyn KeyedStore>> {
        if self.is_opened.swap(true, Ordering::AcqRel) {
            return Err(Error::Backend {
                action: "open the same place again".to_owned(),
                source: "a KeyedFresh fixture cannot; a persistent store needs a fixture of its own".into(),
            });
        }
        (self.open)(self.clock())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::<ManualClock>::clone(&self.clock)
    }
}

/// The input of a check: a fixture, and the capabilities of its store.
struct Context {
    fixture: Arc<dyn KeyedFixture>,
    capabilities: KeyedCapabilities,
}

impl Context {
    fn store(&self) -> std::result::Result<Box<dyn KeyedStore>, Failure> {
        Ok(self.fixture.place()?.open()?)
    }
}

type CheckResult = std::result::Result<CheckOutcome, Failure>;

/// The definition of a check: its name, which starts with its clause, the stores that it applies
/// to, and its function.
struct Case {
    name: &'static str,
    applies: fn(&KeyedCapabilities) -> bool,
    run: fn(&Context) -> CheckResult,
}

/// A check for every store.
const fn of_all(name: &'static str, run: fn(&Context) -> CheckResult) -> Case {
    Case {
        name,
        applies: |_| true,
        run,
    }
}

/// All checks that apply to the store of a fixture.
pub fn checks(fixture: impl KeyedFixture) -> Vec<Check> {
    let fixture: Arc<dyn KeyedFixture> = Arc::new(fixture);
    if fixture.unavailable().is_some() {
        return Vec::new();
    }
    let name = fixture.name();
    let capabilities = match fixture.place().and_then(|place| place.open()) {
        Ok(store) => store.capabilities(),
        Err(error) => {
            let what = format!("the fixture opens no store: {}", Failure::from(error));
            return vec![Check::new(&name, "c0_opens", move || Err(what.clone().into()))];
        }
    };
    let context = Arc::new(Context { fixture, capabilities });
    let all = [cases::CASES, expiry::CASES, lifecycle::CASES, random::CASES];
    let applying = all.into_iter().flatten().filter(|case| (case.applies)(&capabilities));
    let check = |case: &'static Case| {
        let context = Arc::clone(&context);
        Check::new(&name, case.name, move || (case.run)(&context))
    };
    applying.map(check).collect()
}

/// The checks as trials of libtest-mimic; checks that a fixture cannot show are listed as
/// ignored.
pub fn trials(fixture: impl KeyedFixture) -> Vec<Trial> {
    let (name, unavailable) = (fixture.name(), fixture.unavailable());
    trials_of(name, unavailable, || checks(fixture))
}
