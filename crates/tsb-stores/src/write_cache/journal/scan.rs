//! Splits a segment into records and the damaged bytes between them.
//!
//! A record is accepted if its checksum is right and its number is not below the numbers read
//! before. After damaged bytes, every position is tried as the start of the next record. The scan
//! does not interpret records.

use super::record::{self, Record};

/// Bytes to checksum while searching for records, per byte of the segment. The bound ends the
/// search in contents that look like the beginnings of many long records.
const EFFORT: usize = 64;

/// A part of a segment.
#[derive(Debug, PartialEq)]
pub(super) enum ScanItem {
    /// A record with its number.
    Record(u64, Record),
    /// Bytes that are not a record, and the error at the first of them.
    Bad { from: usize, to: usize, what: &'static str },
}

/// The position of a scan.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    effort: usize,
}

impl<'a> Scanner<'a> {
    /// Scans `bytes` from `at` on.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at,
            effort: bytes.len().saturating_mul(EFFORT),
        }
    }

    /// The next part; `last` is the highest record number so far.
    pub(super) fn next(&mut self, last: u64) -> Option<ScanItem> {
        if self.at >= self.bytes.len() {
            return None;
        }
        match record::read(&self.bytes[self.at..]) {
            Ok((number, record, len)) => {
                self.at += len;
                Some(ScanItem::Record(number, record))
            }
            Err(what) => {
                let from = self.at;
                self.at = self.next_start(last);
                Some(ScanItem::Bad {
                    from,
                    to: self.at,
                    what,
                })
            }
        }
    }

    /// The start of the next record, or the end of the segment if there is none.
    fn next_start(&mut self, last: u64) -> usize {
        for at in self.at + 1..self.bytes.len() {
            let Some(len) = record::len_if_plausible(&self.bytes[at..], last) else {
                continue;
            };
            let Some(effort) = self.effort.checked_sub(len) else {
                break;
            };
            self.effort = effort;
            if record::read(&self.bytes[at..]).is_ok() {
                return at;
            }
        }
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::SeriesId;

    use super::super::record::{AdmittedSamples, write_samples, write_updates};
    use super::*;

    fn records(count: u64) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        for number in 1..=count {
            starts.push(bytes.len());
            if number % 2 == 0 {
                write_updates(&mut bytes, number, SeriesId(3), "1:2:3\n");
            } else {
                let mut admitted = AdmittedSamples::default();
                admitted.push(SeriesId(1), (number as i64, 1.5));
                write_samples(&mut bytes, number, &admitted);
            }
        }
        (bytes, starts)
    }

    fn numbers(bytes: &[u8]) -> (Vec<u64>, Vec<(usize, usize)>) {
        let (mut scan, mut numbers, mut bad) = (Scanner::new(bytes, 0), Vec::new(), Vec::new());
        while let Some(item) = scan.next(numbers.last().copied().unwrap_or(0)) {
            match item {
                ScanItem::Record(number, _) => numbers.push(number),
                ScanItem::Bad { from, to, .. } => bad.push((from, to)),
            }
        }
        (numbers, bad)
    }

    #[test]
    fn a_flipped_bit_costs_the_record_that_it_is_in() {
        let (bytes, starts) = records(6);
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let hit = starts.iter().rposition(|&start| start <= bit / 8).unwrap();
            let expected: Vec<u64> = (1..=6).filter(|&number| number != hit as u64 + 1).collect();
            let end = starts.get(hit + 1).copied().unwrap_or(bytes.len());
            assert_eq!(numbers(&altered), (expected, vec![(starts[hit], end)]), "bit {bit}");
        }
    }

    #[test]
    fn garbage_before_between_and_behind_records_is_stepped_over() {
        let (bytes, starts) = records(4);
        let garbage: Vec<u8> = (0..200_u32).map(|byte| (byte * 73 % 251) as u8).collect();
        let all = [
            &garbage[..],
            &bytes[..starts[2]],
            &garbage,
            &bytes[starts[2]..],
            &garbage,
        ]
        .concat();
        let (found, bad) = numbers(&all);
        assert_eq!(found, [1, 2, 3, 4]);
        assert_eq!(bad.len(), 3);
    }

    #[test]
    fn the_effort_of_the_search_is_bounded() {
        // Each place may begin a record that reaches nearly to the end.
        let mut bytes = Vec::new();
        for _ in 0..4_000 {
            bytes.extend(60_000_u32.to_le_bytes());
            bytes.extend([0; 4]);
            bytes.extend(1_u64.to_le_bytes());
            bytes.push(2);
        }
        let mut scan = Scanner::new(&bytes, 0);
        assert!(matches!(scan.next(0), Some(ScanItem::Bad { from: 0, .. })));
        assert_eq!(scan.next(0), None);
        assert!(scan.effort < 60_017);
    }
}
