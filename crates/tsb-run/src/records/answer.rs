//! A read of everything, and what it returned held against what was written.

use std::collections::HashMap;
use std::ops::ControlFlow;

use tsb_core::report::experiment::records::CheckedRead;
use tsb_core::time::{Clock, SECOND_NS};
use tsb_stores::Result;
use tsb_stores::keyed::{Key, KeyedStore, Put};

/// What a read returned.
#[derive(Debug)]
pub(super) struct Read {
    /// All keys, each with its value.
    pub(super) pairs: Vec<(Key, String)>,
    /// Its duration, in seconds.
    pub(super) seconds: f64,
}

/// Reads all keys below a prefix, with a copy of each value, as a client that returns them has.
///
/// # Errors
/// Those of the store.
pub(super) fn read(store: &dyn KeyedStore, below: &Key, clock: &dyn Clock) -> Result<Read> {
    let mut pairs = Vec::new();
    let began = clock.now();
    store.list(Some(below), &mut |key, value| {
        pairs.push((key.clone(), value.to_owned()));
        ControlFlow::Continue(())
    })?;
    let seconds = (clock.now() - began) as f64 / SECOND_NS as f64;
    Ok(Read { pairs, seconds })
}

/// Counts what differs. Each key of `written` is there once.
pub(super) fn check(written: &[Put], pairs: &[(Key, String)]) -> CheckedRead {
    let mut waiting: HashMap<&Key, &str> = written.iter().map(|put| (&put.key, put.value.as_str())).collect();
    let mut checked = CheckedRead {
        expected: written.len(),
        found: pairs.len(),
        ..CheckedRead::default()
    };
    for (key, value) in pairs {
        match waiting.remove(key) {
            Some(expected) => checked.wrong += usize::from(value != expected),
            None => checked.foreign += 1,
        }
    }
    checked.missing = waiting.len();
    checked
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tsb_core::time::ManualClock;
    use tsb_stores::Refusals;
    use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions};

    use super::super::content::{RECORDS, records};
    use super::*;
    use crate::hm9000::key;

    fn stored(puts: &[Put]) -> KeyedMemory {
        let store = KeyedMemory::new(KeyedMemoryOptions::default(), Arc::new(ManualClock::new()));
        let ack = store.put(puts, &mut Refusals::new()).unwrap();
        assert_eq!(ack.accepted, puts.len());
        store
    }

    fn checked(store: &KeyedMemory, written: &[Put]) -> CheckedRead {
        let read = read(store, &key(RECORDS).unwrap(), &ManualClock::new()).unwrap();
        check(written, &read.pairs)
    }

    #[test]
    fn everything_that_was_written_is_found() {
        let written = records(1, 0, 512, 128).unwrap();
        let store = stored(&written);
        let right = CheckedRead {
            expected: 512,
            found: 512,
            ..CheckedRead::default()
        };
        assert_eq!(checked(&store, &written), right);
        assert!(right.is_right());
        // What is beside the records does not count.
        let beside = Put::new(key("records/1").unwrap(), "A");
        assert_eq!(store.put(&[beside], &mut Refusals::new()).unwrap().accepted, 1);
        assert_eq!(checked(&store, &written), right);
    }

    /// The original counts 512 in two of these cases, and is content.
    #[test]
    fn a_wrong_value_a_missing_key_and_a_foreign_one_are_counted() {
        let written = records(1, 0, 512, 128).unwrap();
        let store = stored(&written);
        let other = Put::new(written[7].key.clone(), "B".repeat(128));
        assert_eq!(store.put(&[other], &mut Refusals::new()).unwrap().accepted, 1);
        let wrong = CheckedRead {
            expected: 512,
            found: 512,
            wrong: 1,
            ..CheckedRead::default()
        };
        assert_eq!(checked(&store, &written), wrong);
        assert!(!wrong.is_right());
        assert_eq!(store.delete(&[written[9].key.clone()]).unwrap(), 1);
        let missing = CheckedRead {
            found: 511,
            missing: 1,
            ..wrong
        };
        assert_eq!(checked(&store, &written), missing);
        let foreign = Put::new(key("record/512").unwrap(), "C");
        assert_eq!(store.put(&[foreign], &mut Refusals::new()).unwrap().accepted, 1);
        let all = CheckedRead {
            found: 512,
            foreign: 1,
            ..missing
        };
        assert_eq!(checked(&store, &written), all);
        assert!(!all.is_right());
    }

    #[test]
    fn a_key_that_comes_twice_is_foreign() {
        let written = records(1, 0, 2, 8).unwrap();
        let pair = |put: &Put| (put.key.clone(), put.value.clone());
        let pairs = [pair(&written[0]), pair(&written[0])];
        let twice = CheckedRead {
            expected: 2,
            found: 2,
            missing: 1,
            wrong: 0,
            foreign: 1,
        };
        assert_eq!(check(&written, &pairs), twice);
        assert!(!twice.is_right());
    }
}
