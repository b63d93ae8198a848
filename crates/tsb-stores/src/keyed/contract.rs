//! The contract between a store of keys and the code that uses it.
//!
//! The clauses are numbered; the conformance test `cN_*` tests clause N.

use std::fmt::{Debug, Display};
use std::ops::ControlFlow;
use std::sync::Arc;

use tsb_core::Durability;

use super::key::Key;
use crate::error::Result;
use crate::store::{Reason, Refusals};

/// Maximum length of a value, in bytes: a server accepts requests of 1.5 MiB.
pub const MAX_VALUE_BYTES: usize = 1 << 20;

/// Something that keeps texts under keys, each with a time to live if it has one.
///
/// # Contract
///
/// 1. Every method may be called from any thread, at the same time as any other.
/// 2. Every method may block. A caller inside an async runtime hands it to a thread.
/// 3. `accepted + rejected == puts.len()`; each rejected index is in `refused`, once, with its
///    reason. An accepted key has the value to the byte. After an error each key of the call
///    may have been changed or not, and no other key has. A value of more than
///    [`MAX_VALUE_BYTES`] is refused as unrepresentable.
/// 4. The durability in an ack is a floor that is already reached. From `Buffered` on that
///    means: what was put is there when the place is opened again after this process has died.
/// 5. A put replaces value and time to live. Of several puts of one key in one call, or of one
///    caller in order, the last wins.
/// 6. A key with a time to live is there at least until that time has passed since its put
///    began; and it is gone, for `get`, `list` and every bound, when in addition
///    [`late_expiry_ns`](KeyedCapabilities::late_expiry_ns) have passed since the put was
///    acknowledged. A key without stays. Time goes on while a persistent store is closed.
/// 7. What was acknowledged before a `get` or a `list` starts is in its answer, unless it was
///    replaced or deleted since, or has expired.
/// 8. `list` visits every key below a prefix once, and no other: whole segments count, and the
///    prefix itself is not below it. Their order is open. A key that is put or deleted during
///    the list may be visited or not. The visitor must not call the store.
/// 9. `delete` removes keys and says how many of them were there; a key that is not there is no
///    error. `delete_below` removes all keys that `list` would visit. What was deleted does not
///    come back, with the place opened again either.
/// 10. `close` is idempotent, and releases every lock, file and connection that the store holds,
///     although the value still lives. Afterwards every method but `capabilities` is
///     [`Error::Closed`](crate::Error::Closed). A persistent store that is opened again has
///     every key that had reached `Buffered`, and no other.
/// 11. A full store refuses new keys as [`Reason::Full`](crate::Reason::Full), and still
///     replaces, deletes, reads and lists those that it has. What was deleted or has expired
///     leaves room; with [`names_stay`](KeyedCapabilities::names_stay) it does not, and a new
///     value may be refused like a new key.
/// 12. With [`directories`](KeyedCapabilities::directories), a key with others below it cannot
///     be put, nor one below a key that is there:
///     [`Reason::Refused`](crate::Reason::Refused). A key may stay a directory when all below
///     it are gone, until `delete_below` removes those. Without, both are keys like any other.
///
/// There are no default methods, so that a wrapper that forgets one does not compile. `Display`
/// is how the store is named in a report.
pub trait KeyedStore: Debug + Display + Send + Sync + 'static {
    /// What this store can do. Constant for the life of the store.
    fn capabilities(&self) -> KeyedCapabilities;

    /// Puts keys. Refused ones are *appended* to `refused` (clauses 3 to 6).
    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck>;

    /// Deletes keys, and returns how many of them were there (clause 9). A key that is in
    /// `keys` twice counts once.
    fn delete(&self, keys: &[Key]) -> Result<usize>;

    /// Deletes all keys below a prefix; `None`: all keys of the store (clause 9).
    fn delete_below(&self, prefix: Option<&Key>) -> Result<()>;

    /// The value of a key; `None` if it is not there (clause 7).
    fn get(&self, key: &Key) -> Result<Option<String>>;

    /// Visits all keys below a prefix; `None`: all keys of the store (clause 8).
    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()>;

    /// Closes the store (clause 10).
    fn close(&self) -> Result<()>;
}

/// Receives keys and their values; `Break` ends the list early, which is no error.
pub type KeyedVisitor<'v> = dyn FnMut(&Key, &str) -> ControlFlow<()> + 'v;

/// A value for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The key.
    pub key: Key,
    /// Its value, of at most [`MAX_VALUE_BYTES`] bytes.
    pub value: String,
    /// The time after which the key is gone, in nanoseconds; at least 1. `None`: it stays.
    pub ttl_ns: Option<u64>,
}

impl Put {
    /// A value that stays until it is replaced or deleted.
    pub fn new(key: Key, value: impl Into<String>) -> Self {
        Self {
            key,
            value: value.into(),
            ttl_ns: None,
        }
    }

    /// The same put with a time to live, in nanoseconds; at least 1.
    #[must_use]
    pub fn expiring(self, ttl_ns: u64) -> Self {
        Self {
            ttl_ns: Some(ttl_ns.max(1)),
            ..self
        }
    }
}

/// The answer to a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an ack says how much was refused"]
#[non_exhaustive]
pub struct PutAck {
    /// Number of accepted keys.
    pub accepted: usize,
    /// Number of refused keys; each is listed in the refusals.
    pub rejected: usize,
    /// The level that the accepted keys have already reached.
    pub durability: Durability,
}

impl PutAck {
    /// An answer: how many keys were accepted and how many rejected, and their level.
    pub const fn new(accepted: usize, rejected: usize, durability: Durability) -> Self {
        Self {
            accepted,
            rejected,
            durability,
        }
    }

    /// An answer to `puts` keys, of which those in `found` are refused: they are added to `refused`
    /// in the order of their indices.
    pub fn refusing(
        puts: usize,
        mut found: Vec<(usize, Reason)>,
        refused: &mut Refusals,
        durability: Durability,
    ) -> Self {
        found.sort_unstable();
        for &(index, reason) in &found {
            refused.push(index, reason);
        }
        Self::new(puts - found.len(), found.len(), durability)
    }
}

/// What a store of keys can do. What is claimed is tested, and what is not claimed as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyedCapabilities {
    /// The level that every ack has at least.
    pub acknowledges: Durability,
    /// Number of machines on which an acknowledged key has that level: 1 without replication.
    pub copies: u32,
    /// A store can be opened again at the same place, with its keys (clause 10).
    pub persistent: bool,
    /// How long after its time to live a key may still be there, in nanoseconds: 0 if the store
    /// looks at the clock with every read (clause 6). While a server has no leader it may be
    /// longer.
    pub late_expiry_ns: u64,
    /// A key with others below it cannot have a value (clause 12).
    pub directories: bool,
    /// Each key and each value that was ever put takes room for ever (clause 11).
    pub names_stay: bool,
}

impl KeyedCapabilities {
    /// What a plain store claims: on one machine, gone when the value is dropped, expiry on time,
    /// no directories, and room for a new key where one is gone.
    pub const fn new(acknowledges: Durability) -> Self {
        Self {
            acknowledges,
            copies: 1,
            persistent: false,
            late_expiry_ns: 0,
            directories: false,
            names_stay: false,
        }
    }
}

/// Implements [`KeyedStore`] for a pointer by calling what it points to.
macro_rules! forward {
    ($pointer:ty) => {
        impl<S: KeyedStore + ?Sized> KeyedStore for $pointer {
            fn capabilities(&self) -> KeyedCapabilities {
                (**self).capabilities()
            }
            fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
                (**self).put(puts, refused)
            }
            fn delete(&self, keys: &[Key]) -> Result<usize> {
                (**self).delete(keys)
            }
            fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
                (**self).delete_below(prefix)
            }
            fn get(&self, key: &Key) -> Result<Option<String>> {
                (**self).get(key)
            }
            fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
                (**self).list(prefix, visit)
            }
            fn close(&self) -> Result<()> {
                (**self).close()
            }
        }
    };
}

forward!(Box<S>);
forward!(Arc<S>);
