//! Reads a run's journal, including one whose end was torn or damaged.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use tsb_core::report::RejectedStretch;

use super::record::{Header, MAGIC, Reached, Record};
use crate::error::Error;

/// Files longer than this many bytes are refused: the writer keeps journals to a few megabytes.
const BYTES_MAX: u64 = 1 << 28;

/// The contents of a journal.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Contents {
    /// The runs, in the order in which they began.
    pub sections: Vec<Section>,
    /// Number of valid records.
    pub records: u64,
    /// Bytes after the last valid record: a record that was only partly written.
    pub torn_bytes: u64,
    /// Damaged records before the last valid one: invalid lines, or where lines are invalid the gap in the
    /// sequence numbers if that is larger; and records without the header of a run.
    pub damaged: u64,
}

/// One run of a journal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Section {
    /// The plan and the store.
    pub header: Header,
    /// The samples that its store refused, as far as they are named.
    pub refused: Vec<RejectedStretch>,
    /// What was acknowledged at the last record.
    pub reached: Reached,
    /// Whether the report of all runs of the journal is complete.
    pub is_over: bool,
}

impl Section {
    /// The shortest journal that says the same, as lines.
    ///
    /// # Errors
    /// If a record cannot be serialized, which is a bug.
    pub fn lines(&self) -> Result<String, serde_json::Error> {
        let mut records = vec![Record::Run(Box::new(self.header.clone()))];
        if !self.refused.is_empty() {
            records.push(Record::Refused {
                samples: self.refused.clone(),
            });
        }
        records.push(Record::Reached(self.reached.clone()));
        records.extend(self.is_over.then_some(Record::Complete {}));
        (1..).zip(records).map(|(at, record)| record.line(1, at)).collect()
    }
}

/// Whether a file is a journal, judged by its first bytes. An empty file is one if its extension
/// is `journal`.
///
/// # Errors
/// If the file cannot be read.
pub fn is_journal(path: &Path) -> std::io::Result<bool> {
    let mut first = [0; MAGIC.len()];
    let mut file = File::open(path)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    if length == 0 {
        // The run was killed before it wrote its first record.
        return Ok(path.extension().is_some_and(|end| end == "journal"));
    }
    Ok(file.read_exact(&mut first).is_ok() && first == MAGIC.as_bytes())
}

/// Reads and parses a journal file.
///
/// # Errors
/// If the file cannot be read, or is longer than 256 MiB.
pub fn read(path: &Path) -> Result<Contents, Error> {
    let failure = || Error::plan(format!("cannot read journal {}", path.display()));
    let length = std::fs::metadata(path)
        .map_err(|error| failure().because(&error))?
        .len();
    if length > BYTES_MAX {
        return Err(failure().because_of(format!("it is longer than {BYTES_MAX} bytes")));
    }
    let bytes = std::fs::read(path).map_err(|error| failure().because(&error))?;
    Ok(parse(&bytes))
}

/// Parses a journal. Accepts any bytes: what is not a valid record is counted as torn or
/// damaged.
pub fn parse(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    let (mut nonce, mut sequence, mut unread) = (None, 0, 0);
    let mut torn_from = 0;
    let mut offset = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        offset += line.len();
        let whole = line.strip_suffix(b"\n").and_then(Record::of_line);
        let whole = whole.filter(|(of, number, _)| nonce.is_none_or(|nonce| nonce == *of) && *number > sequence);
        let Some((of, number, record)) = whole else {
            unread += 1;
            continue;
        };
        // Invalid lines and gaps in the sequence numbers are two views of the same damage: the
        // larger count is used.
        let is_first = nonce.is_none();
        let missing = if is_first { 0 } else { number - sequence - 1 };
        // A gap without invalid lines is no damage: a rewritten file leaves out superseded
        // records.
        contents.damaged += if unread > 0 { unread.max(missing) } else { 0 };
        (nonce, sequence, unread, torn_from) = (Some(of), number, 0, offset);
        contents.records += 1;
        contents.add(record);
    }
    contents.torn_bytes = (bytes.len() - torn_from) as u64;
    contents
}

impl Contents {
    fn add(&mut self, record: Record) {
        match (record, self.sections.last_mut()) {
            (Record::Run(header), _) => self.sections.push(Section {
                header: *header,
                refused: Vec::new(),
                reached: Reached::default(),
                is_over: false,
            }),
            (Record::Complete {}, Some(_)) => self.sections.iter_mut().for_each(|section| section.is_over = true),
            (Record::Refused { samples }, Some(section)) => section.refused.extend(samples),
            (Record::Reached(reached), Some(section)) => section.reached = reached,
            // The header of its run is missing, so nothing can be said about it.
            (_, None) => self.damaged += 1,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tsb_core::Durability;

    use super::super::record::Claim;
    use super::*;

    pub(in crate::journal) fn header() -> Record {
        Record::Run(Box::new(Header {
            command: "run".to_owned(),
            tsb_version: "0".to_owned(),
            pid: 1,
            boot_id: None,
            base_ns: 0,
            since_ns: None,
            store: "x".to_owned(),
            plan: json!({}),
            workers: vec![(0, 10)],
            acknowledges: Durability::Synced,
            reaches: Durability::Synced,
        }))
    }

    fn reached(operations: u64) -> Record {
        Record::Reached(Reached {
            levels: vec![Claim {
                level: Durability::Synced,
                operations: vec![operations],
                nameless: 0,
            }],
            ..Reached::default()
        })
    }

    fn lines() -> Vec<String> {
        let records = std::iter::once(header()).chain((1..=9).map(reached));
        (1..)
            .zip(records)
            .map(|(at, record)| record.line(5, at).unwrap())
            .collect()
    }

    fn claimed(contents: &Contents) -> Option<u64> {
        let claim = contents.sections.first()?.reached.levels.first()?;
        Some(claim.operations[0])
    }

    #[test]
    fn a_journal_that_is_cut_anywhere_says_what_was_whole_by_then() {
        let lines = lines();
        let bytes = lines.concat().into_bytes();
        assert_eq!(claimed(&parse(&bytes)), Some(9));
        for end in 0..bytes.len() {
            let contents = parse(&bytes[..end]);
            let ends: Vec<usize> = lines
                .iter()
                .scan(0, |sum, line| {
                    *sum += line.len();
                    Some(*sum)
                })
                .collect();
            let whole = ends.iter().filter(|&&at| at <= end).count();
            assert_eq!((contents.records, contents.damaged), (whole as u64, 0));
            let last = whole.checked_sub(1).and_then(|last| ends.get(last)).copied();
            assert_eq!(contents.torn_bytes as usize, end - last.unwrap_or(0));
            assert_eq!(
                claimed(&contents),
                (whole > 1).then(|| whole as u64 - 1),
                "cut at {end}"
            );
        }
    }

    #[test]
    fn a_section_as_lines_is_the_same_section() {
        let contents = parse(lines().concat().as_bytes());
        let [section] = &contents.sections[..] else {
            panic!("{contents:?}")
        };
        let again = parse(section.lines().unwrap().as_bytes());
        assert_eq!((&again.sections[0], again.records, again.damaged), (section, 2, 0));
    }

    #[test]
    fn damage_in_the_middle_is_counted_and_what_follows_is_read() {
        let mut lines = lines();
        lines[3] = lines[3].replace("operations", "0perations");
        let contents = parse(lines.concat().as_bytes());
        assert_eq!((contents.damaged, contents.torn_bytes), (1, 0));
        assert_eq!(claimed(&contents), Some(9));
    }

    #[test]
    fn a_line_of_another_journal_and_an_old_line_say_nothing() {
        let mut lines = lines();
        lines.push(reached(99).line(6, 11).unwrap());
        lines.push(lines[2].clone());
        let contents = parse(lines.concat().as_bytes());
        assert_eq!(claimed(&contents), Some(9));
        assert!(contents.torn_bytes > 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_damage_claims_more_than_was_written(
            at in 0usize..2_000, bytes in prop::collection::vec(any::<u8>(), 1..60)
        ) {
            let mut journal = lines().concat().into_bytes();
            let from = at.min(journal.len());
            let to = (from + bytes.len()).min(journal.len());
            journal.splice(from..to, bytes);
            let contents = parse(&journal);
            prop_assert!(claimed(&contents).unwrap_or(0) <= 9);
        }
    }
}
