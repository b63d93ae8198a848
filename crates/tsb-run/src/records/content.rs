//! What is written, which follows from the seed and the round alone, so that every store of a round
//! gets the same bytes.

use tsb_stores::Result;
use tsb_stores::keyed::{Key, Put};

use super::INSTANCES;
use crate::draws::Draws;
use crate::hm9000::{ACTUAL, App, AppState, Guid, instance_key, key};

/// What all records are below.
pub(super) const RECORDS: &str = "record";
/// What all instances are below.
pub(super) const APPS: &str = ACTUAL;

/// The records of a batch: `record/0`, `record/1` and so on, each of `size` upper-case letters.
///
/// # Errors
/// None that a caller can cause; the text of a key is checked.
pub(super) fn records(seed: u64, round: u32, count: usize, size: usize) -> Result<Vec<Put>> {
    let mut draws = draws(seed, round, size);
    let record = |number: usize| {
        let letters = (0..size).map(|_| char::from(b'A' + draws.below(26) as u8));
        Ok(Put::new(numbered(number)?, letters.collect::<String>()))
    };
    (0..count).map(record).collect()
}

/// The instances in the heartbeat of one DEA with `apps` apps of [`INSTANCES`] instances, by the
/// keys and values of HM9000.
///
/// # Errors
/// As [`records`].
pub(super) fn instances(seed: u64, round: u32, apps: usize) -> Result<Vec<Put>> {
    let mut draws = draws(seed, round, apps);
    let dea = Guid::draw(&mut draws);
    let mut puts = Vec::with_capacity(apps * INSTANCES);
    for _ in 0..apps {
        let (guid, version) = (Guid::draw(&mut draws), Guid::draw(&mut draws));
        for index in 0..INSTANCES {
            let app = App {
                guid,
                version,
                instance: Guid::draw(&mut draws),
                state: AppState::Running,
                dea: 0,
            };
            puts.push(Put::new(
                instance_key(&app)?,
                format!("{index},{},0.0,{dea}", app.state),
            ));
        }
    }
    Ok(puts)
}

fn numbered(number: usize) -> Result<Key> {
    key(format!("{RECORDS}/{number}"))
}

fn draws(seed: u64, round: u32, of: usize) -> Draws {
    Draws::new(seed ^ (u64::from(round) << 40) ^ of as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn records_are_upper_case_letters_that_follow_from_seed_round_and_size() {
        let first = records(1, 0, 512, 128).unwrap();
        assert_eq!(first.len(), 512);
        assert_eq!(
            (first[0].key.as_str(), first[511].key.as_str()),
            ("record/0", "record/511")
        );
        assert!(first.iter().all(|put| put.value.len() == 128 && put.ttl_ns.is_none()));
        let letters: BTreeSet<char> = first.iter().flat_map(|put| put.value.chars()).collect();
        assert_eq!(letters.into_iter().collect::<String>(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        assert_eq!(first, records(1, 0, 512, 128).unwrap());
        for (seed, round, size) in [(2, 0, 128), (1, 1, 128), (1, 0, 256)] {
            let other = records(seed, round, 512, size).unwrap();
            assert_ne!(first[0].value[..32], other[0].value[..32], "{seed} {round} {size}");
        }
    }

    #[test]
    fn a_heartbeat_has_two_instances_of_each_app() {
        let puts = instances(1, 0, 30).unwrap();
        let keys: BTreeSet<&str> = puts.iter().map(|put| put.key.as_str()).collect();
        assert_eq!((puts.len(), keys.len()), (60, 60));
        // An app and its version are one segment.
        let apps: BTreeSet<&str> = keys
            .iter()
            .filter_map(|key| key.rsplit_once('/'))
            .map(|(app, _)| app)
            .collect();
        assert_eq!(apps.len(), 30);
        let below = key(APPS).unwrap();
        assert!(puts.iter().all(|put| put.key.is_below(&below)));
        let starts: Vec<&str> = puts[..2].iter().map(|put| &put.value[..14]).collect();
        assert_eq!(starts, ["0,RUNNING,0.0,", "1,RUNNING,0.0,"]);
        assert_eq!(puts, instances(1, 0, 30).unwrap());
    }
}
