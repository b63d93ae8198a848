//! What a journal still holds: samples that were accepted and not settled.

use std::collections::HashMap;
use std::collections::VecDeque;

use tsb_core::{SeriesId, SeriesKey};

use super::super::chunk::Sample;
use super::medium::{Medium, number_of};
use super::record::{self, HEAD_LEN, Record};
use crate::error::{Error, Result};

/// Samples by the key of their series, each with the number of its record.
pub(in super::super) type Held = HashMap<SeriesKey, Vec<(u64, Sample)>, foldhash::fast::FixedState>;

/// Readings by the name of their file, each with the number of its record.
pub(in super::super) type HeldReadings = HashMap<SeriesKey, Vec<(u64, String)>, foldhash::fast::FixedState>;

/// A segment that is not written any more.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) name: String,
    /// All its records have this number or a lower one.
    pub(super) last_record: u64,
    pub(super) bytes: u64,
}

/// What was found in a journal.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) held: Held,
    pub(super) readings: HeldReadings,
    pub(super) segments: VecDeque<Sealed>,
    pub(super) next_number: u32,
    pub(super) next_record: u64,
    /// Bytes after the last whole record: what a crash cut off.
    pub(super) torn_bytes: u64,
}

/// Reads all segments in order.
///
/// # Errors
/// [`Error::Corrupt`] for damage anywhere but at the end of the last segment: a segment is
/// synced before the next one begins, so a crash leaves no other damage.
pub(super) fn replay(medium: &dyn Medium) -> Result<Found> {
    let mut names = read(medium, "", "list", |_| medium.names())?;
    names.retain(|name| number_of(name).is_some());
    names.sort_unstable();
    let mut found = Found {
        next_number: 1,
        next_record: 1,
        ..Found::default()
    };
    let count = names.len();
    for (index, name) in names.into_iter().enumerate() {
        let number = number_of(&name).unwrap_or_default();
        let bytes = read(medium, &name, "read", |name| medium.read(name))?;
        let (end, what) = segment(&mut found, number, &bytes);
        if let Some(what) = what {
            if index + 1 < count {
                return Err(Error::Corrupt {
                    path: medium.path_of(&name),
                    offset: end as u64,
                    what: what.to_owned(),
                });
            }
            // Or it would be damage in the middle when there are more segments.
            read(medium, &name, "cut", |name| medium.truncate(name, end as u64))?;
            found.torn_bytes = (bytes.len() - end) as u64;
        }
        found.next_number = number.checked_add(1).ok_or_else(|| Error::Corrupt {
            path: medium.path_of(&name),
            offset: 0,
            what: "no segment can follow it".to_owned(),
        })?;
        found.segments.push_back(Sealed {
            name,
            last_record: found.next_record - 1,
            bytes: bytes.len() as u64,
        });
    }
    found.held.retain(|_, samples| !samples.is_empty());
    found.readings.retain(|_, readings| !readings.is_empty());
    Ok(found)
}

fn read<T>(medium: &dyn Medium, name: &str, verb: &str, call: impl Fn(&str) -> std::io::Result<T>) -> Result<T> {
    call(name).map_err(|source| Error::Backend {
        action: format!("{verb} the journal {}", medium.path_of(name).display()),
        source: source.into(),
    })
}

/// Reads one segment: where it ends, and what is wrong there if that is not its end.
fn segment(found: &mut Found, number: u32, bytes: &[u8]) -> (usize, Option<&'static str>) {
    if bytes.is_empty() {
        // A crash came before its head, and replay has cut what there was of it.
        return (0, None);
    }
    if !record::has_head(bytes, number) {
        return (0, Some("it does not begin as a segment does"));
    }
    let mut keys: HashMap<SeriesId, SeriesKey> = HashMap::new();
    let mut at = HEAD_LEN;
    while at < bytes.len() {
        let (number, record, len) = match record::read(&bytes[at..]) {
            Ok(read) => read,
            Err(what) => return (at, Some(what)),
        };
        if number < found.next_record.saturating_sub(1) || number == u64::MAX {
            return (at, Some("a record is out of order"));
        }
        if let Err(what) = apply(found, &mut keys, number, record) {
            return (at, Some(what));
        }
        found.next_record = number + 1;
        at += len;
    }
    (at, None)
}

fn apply(
    found: &mut Found,
    keys: &mut HashMap<SeriesId, SeriesKey>,
    number: u64,
    record: Record,
) -> std::result::Result<(), &'static str> {
    const UNNAMED: &str = "a series has no name in this segment";
    match record {
        Record::Names(names) => keys.extend(names),
        Record::Samples(samples) => {
            for (id, sample) in samples {
                let key = keys.get(&id).ok_or(UNNAMED)?;
                if let Some(held) = found.held.get_mut(key) {
                    held.push((number, sample));
                } else {
                    found.held.insert(key.clone(), vec![(number, sample)]);
                }
            }
        }
        Record::Readings(id, lines) => {
            let key = keys.get(&id).ok_or(UNNAMED)?;
            let held = found.readings.entry(key.clone()).or_default();
            held.extend(lines.lines().map(|line| (number, line.to_owned())));
        }
        Record::Marks(_, marks) => {
            for (id, upto) in marks {
                let key = keys.get(&id).ok_or(UNNAMED)?;
                if let Some(held) = found.held.get_mut(key) {
                    held.retain(|(record, _)| *record > upto);
                }
                if let Some(held) = found.readings.get_mut(key) {
                    held.retain(|(record, _)| *record > upto);
                }
            }
        }
    }
    Ok(())
}
