//! A store whose calls fail once the run is over, so that listener and fetcher stop in the middle of a
//! sync of many keys.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_stores::keyed::{Key, KeyedCapabilities, KeyedStore, KeyedVisitor, Put, PutAck};
use tsb_stores::{Error, Refusals, Result};

/// Keys of one put between two looks whether the run is over.
const KEYS: usize = 2_048;

/// A store, until the run is over.
#[derive(Debug)]
pub(super) struct Until {
    pub(super) store: Arc<dyn KeyedStore>,
    pub(super) is_over: AtomicBool,
}

impl Until {
    fn check(&self) -> Result<()> {
        if self.is_over.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        Ok(())
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl KeyedStore for Until {
    fn capabilities(&self) -> KeyedCapabilities {
        self.store.capabilities()
    }

    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        let mut all = PutAck::new(0, 0, self.capabilities().acknowledges);
        let mut of_part = Refusals::new();
        for (part, puts) in puts.chunks(KEYS).enumerate() {
            self.check()?;
            of_part.clear();
            let ack = self.store.put(puts, &mut of_part)?;
            for refusal in of_part.as_slice() {
                refused.push(part * KEYS + refusal.index as usize, refusal.reason);
            }
            all = PutAck::new(
                all.accepted + ack.accepted,
                all.rejected + ack.rejected,
                all.durability.min(ack.durability),
            );
        }
        Ok(all)
    }

    fn delete(&self, keys: &[Key]) -> Result<usize> {
        let mut deleted = 0;
        for keys in keys.chunks(KEYS) {
            self.check()?;
            deleted += self.store.delete(keys)?;
        }
        Ok(deleted)
    }

    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        self.check()?;
        self.store.delete_below(prefix)
    }

    fn get(&self, key: &Key) -> Result<Option<String>> {
        self.check()?;
        self.store.get(key)
    }

    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        self.check()?;
        self.store.list(prefix, visit)
    }

    fn close(&self) -> Result<()> {
        self.store.close()
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::time::ManualClock;
    use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions};

    use super::*;

    #[test]
    fn a_put_of_many_keys_is_whole_and_nothing_follows_the_end() {
        let clock: Arc<ManualClock> = Arc::default();
        let most = KEYS + 5;
        let options = KeyedMemoryOptions { max_keys: most };
        let until = Until {
            store: Arc::new(KeyedMemory::new(options, clock)),
            is_over: AtomicBool::new(false),
        };
        let key = |number: usize| Key::new(format!("k/{number}")).unwrap();
        let puts: Vec<Put> = (0..most + 2).map(|number| Put::new(key(number), "x")).collect();
        let mut refused = Refusals::new();
        let ack = until.put(&puts, &mut refused).unwrap();
        assert_eq!((ack.accepted, ack.rejected), (most, 2));
        let indices: Vec<u32> = refused.as_slice().iter().map(|refusal| refusal.index).collect();
        assert_eq!(indices, [most as u32, most as u32 + 1]);
        until.is_over.store(true, Ordering::Release);
        assert!(until.put(&puts[..1], &mut refused).is_err());
        assert!(until.delete(&[key(0)]).is_err() && until.get(&key(0)).is_err());
        assert_eq!(until.store.get(&key(0)).unwrap().as_deref(), Some("x"));
    }
}
