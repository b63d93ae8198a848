//! Fixtures: how the suite gets the stores under test.

use std::fmt;

use crate::error::{Error, Result};
use crate::store::Store;

/// Creates places for one kind of store. Only the first two methods must be written; each of the
/// others lets the suite check one more thing.
pub trait Fixture: Send + Sync + 'static {
    /// The first part of every check's name.
    fn name(&self) -> String;

    /// A new, empty place that no other check uses.
    fn place(&self) -> Result<Box<dyn Place>>;

    /// Why this store cannot be tested here (for example, no server); its checks are then listed
    /// as ignored, with this reason.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// A store with low limits; `None` if this kind has no limits.
    fn bounded(&self) -> Result<Option<Bounded>> {
        Ok(None)
    }

    /// A store whose medium can be made to fail; `None` if there is no such medium.
    fn faulty(&self) -> Result<Option<Faulty>> {
        Ok(None)
    }

    /// A new, empty place on a medium that loses unsynced data at a power cut; `None` if there is
    /// no such medium. [`LossyDisk`](super::LossyDisk) is one for stores that write files.
    fn lossy(&self) -> Result<Option<Box<dyn LossyPlace>>> {
        Ok(None)
    }

    /// Whether [`Place::after_damage`] may damage a place of this fixture; `false` saves the rounds
    /// that look for it.
    fn can_damage(&self) -> bool {
        true
    }

    /// Whether the size that a store states is that of a whole server, which other checks fill and
    /// empty meanwhile; it says nothing of one place then.
    fn shares_its_size(&self) -> bool {
        false
    }

    /// Opens the place with this [address](Place::address) in a process that a check has started,
    /// and will kill.
    fn place_at(&self, address: &str) -> Result<Box<dyn Place>> {
        Err(Error::Backend {
            action: format!("open the place {address:?}"),
            source: "the fixture does not implement place_at".into(),
        })
    }
}

// Lets fixtures of different kinds be in one list.
impl Fixture for Box<dyn Fixture> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn place(&self) -> Result<Box<dyn Place>> {
        (**self).place()
    }

    fn unavailable(&self) -> Option<String> {
        (**self).unavailable()
    }

    fn bounded(&self) -> Result<Option<Bounded>> {
        (**self).bounded()
    }

    fn faulty(&self) -> Result<Option<Faulty>> {
        (**self).faulty()
    }

    fn lossy(&self) -> Result<Option<Box<dyn LossyPlace>>> {
        (**self).lossy()
    }

    fn can_damage(&self) -> bool {
        (**self).can_damage()
    }

    fn shares_its_size(&self) -> bool {
        (**self).shares_its_size()
    }

    fn place_at(&self, address: &str) -> Result<Box<dyn Place>> {
        (**self).place_at(address)
    }
}

/// A place where a store keeps its samples.
pub trait Place: Send + Sync {
    /// Opens the store here. A persistent store is opened again after it was closed, while the
    /// closed value still exists, and after its value was dropped without a close.
    fn open(&self) -> Result<Box<dyn Store>>;

    /// The address by which another process opens this place, with [`Fixture::place_at`]: the
    /// path of a file or folder, or the spec of a server. A check kills that process while it
    /// writes. `None` if no other process can open it.
    fn address(&self) -> Option<String> {
        None
    }

    /// A copy of this place as a kill would leave it now, with damage to one of its files,
    /// selected by `seed`. Copying the folder and calling [`corrupt`](super::corrupt) is enough. The
    /// store that is open here must not be affected. `None` if nothing can be damaged, or if the
    /// format of that file cannot reveal it.
    fn after_damage(&self, seed: u64) -> Result<Option<Damaged>> {
        let _ = seed;
        Ok(None)
    }
}

/// A place with damage.
pub struct Damaged {
    /// The place, which no store has opened yet.
    pub place: Box<dyn Place>,
    /// What was damaged.
    pub what: String,
}

impl fmt::Debug for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Damaged").field("what", &self.what).finish()
    }
}

/// A place on a medium that loses unsynced data.
pub trait LossyPlace: Place {
    /// A copy of the place as it would be after a power cut now; `seed` selects what remains of
    /// the unsynced data. The store that is open here must not be affected.
    fn after_power_cut(&self, seed: u64) -> Result<Box<dyn Place>>;
}

/// An empty store with limits.
#[derive(Debug)]
pub struct Bounded {
    /// The store.
    pub store: Box<dyn Store>,
    /// Maximum number of series, in [2, 1000].
    pub max_series: usize,
    /// Whether it also refuses samples as full, well before ten million.
    pub fills_up: bool,
}

/// An empty store on a medium that can be made to fail.
pub struct Faulty {
    /// The store.
    pub store: Box<dyn Store>,
    /// `true` makes flushes and syncs fail from now on, `false` makes them work again.
    pub fail: Box<dyn Fn(bool) + Send + Sync>,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("store", &self.store).finish()
    }
}

/// Opens a new, empty store.
type Open<'a> = dyn Fn() -> Result<Box<dyn Store>> + Send + Sync + 'a;
/// Opens a store with low limits.
type OpenBounded = Box<dyn Fn() -> Result<Bounded> + Send + Sync>;

/// The fixture of a store without persistence: a name and a constructor.
pub struct Fresh {
    name: String,
    open: std::sync::Arc<Open<'static>>,
    bounded: Option<OpenBounded>,
}

impl Fresh {
    /// `open` must return a new, empty store at each call.
    pub fn new<S: Store>(name: impl Into<String>, open: impl Fn() -> Result<S> + Send + Sync + 'static) -> Self {
        Self {
            name: name.into(),
            open: std::sync::Arc::new(move || Ok(Box::new(open()?) as Box<dyn Store>)),
            bounded: None,
        }
    }

    /// Adds a store with limits: see [`Fixture::bounded`].
    #[must_use]
    pub fn bounded(self, open: impl Fn() -> Result<Bounded> + Send + Sync + 'static) -> Self {
        Self {
            bounded: Some(Box::new(open)),
            ..self
        }
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").field("name", &self.name).finish()
    }
}

impl Fixture for Fresh {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn place(&self) -> Result<Box<dyn Place>> {
        Ok(Box::new(Once {
            open: std::sync::Arc::clone(&self.open),
            is_opened: std::sync::atomic::AtomicBool::new(false),
        }))
    }

    fn bounded(&self) -> Result<Option<Bounded>> {
        self.bounded.as_ref().map(|open| open()).transpose()
    }
}

/// A place that can be opened once: its samples are gone with the store.
struct Once {
    open: std::sync::Arc<Open<'static>>,
    is_opened: std::sync::atomic::AtomicBool,
}

impl Place for Once {
    fn open(&self) -> Result<Box<dyn Store>> {
        if self.is_opened.swap(true, std::sync::atomic::Ordering::AcqRel) {
            return Err(Error::Backend {
                action: "open the same place again".to_owned(),
                source: "a Fresh fixture cannot; a persistent store needs a Fixture of its own".into(),
            });
        }
        (self.open)()
    }
}
