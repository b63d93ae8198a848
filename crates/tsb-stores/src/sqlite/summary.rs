//! A summary: the maxima of one series over some generations in a row, encoded as one table row.
//!
//! Chunks hold their maxima themselves, but a chunk is a lookup in the table; a summary stands for
//! the chunks of [`SPAN`] generations. Byte format: `docs/formats/sqlite.md`.

use tsb_core::bytes::{BytesError, Fault, Reader, cut, varint};

use super::maximum::LastMaximum;

/// Number of generations that a summary is for, at most: those with numbers from a multiple of
/// this on.
pub(super) const SPAN: i64 = 8;
/// Upper bound of a summary's bytes. A series that needs more has long steps, so that its chunks
/// are few.
const MAX_BYTES: usize = 1024;

const VERSION: u8 = 1;
/// Bytes of the checksum at the start.
const HEAD: usize = 4;

/// Flag: the interval begins as long after the previous one as that began after the one before.
const SAME_GAP: u8 = 1;
/// Flag: it is as long as the previous one.
const SAME_LEN: u8 = 2;
/// Flag: it is as long as the one before the previous one. Flags 4 and 8 are those of maxima.
const LEN_BEFORE: u8 = 16;

/// The checksum of a summary and its key: a row under another key is an error.
fn checksum(key: i64, rest: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&key.to_le_bytes());
    sum.update(rest);
    sum.finalize()
}

/// The maximum of the samples from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// The timestamp of the first sample.
    pub(super) start: i64,
    /// The timestamp of the last sample.
    pub(super) end: i64,
    /// The largest number; NaN if there is none.
    pub(super) maximum: f64,
}

/// The last generation of the summary that a generation belongs to.
pub(super) fn last_of(generation: i64) -> i64 {
    generation | (SPAN - 1)
}

/// The values that the next interval is encoded against.
#[derive(Clone, Copy, Debug, Default)]
struct PreviousInterval {
    end: i64,
    gap: i64,
    len: i64,
    len_before: i64,
    maximum: LastMaximum,
}

impl PreviousInterval {
    fn follow(&mut self, gap: i64, len: i64, end: i64) {
        (self.len_before, self.len) = (self.len, len);
        (self.gap, self.end) = (gap, end);
    }
}

/// Encodes summaries.
#[derive(Debug, Default)]
pub(super) struct SummaryEncoder {
    body: Vec<u8>,
    out: Vec<u8>,
}

impl SummaryEncoder {
    /// Encodes the intervals of generations in a row, of which the last one ends the summary, for
    /// a row with this key. `None` if samples of different generations overlap in time, if there are none, or if there
    /// are too many.
    pub(super) fn encode<'a>(&mut self, key: i64, generations: impl Iterator<Item = &'a [Interval]>) -> Option<&[u8]> {
        self.body.clear();
        let (mut before, mut newest) = (PreviousInterval::default(), None);
        let mut count = 0u8;
        for intervals in generations {
            count += 1;
            varint::put(&mut self.body, intervals.len() as u64);
            for interval in intervals {
                if newest.is_some_and(|newest| interval.start <= newest) {
                    return None;
                }
                newest = Some(interval.end);
                self.put(&mut before, interval);
            }
            if self.body.len() > MAX_BYTES {
                return None;
            }
        }
        newest?;
        self.out.clear();
        self.out.extend_from_slice(&[0, 0, 0, 0, VERSION, count]);
        self.out.extend_from_slice(&self.body);
        let sum = checksum(key, &self.out[HEAD..]).to_le_bytes();
        self.out[..HEAD].copy_from_slice(&sum);
        Some(&self.out)
    }

    fn put(&mut self, before: &mut PreviousInterval, interval: &Interval) {
        let out = &mut self.body;
        let gap = interval.start.wrapping_sub(before.end);
        let len = interval.end.wrapping_sub(interval.start);
        let same_gap = if gap == before.gap { SAME_GAP } else { 0 };
        let same_len = match len {
            _ if len == before.len => SAME_LEN,
            _ if len == before.len_before => LEN_BEFORE,
            _ => 0,
        };
        out.push(same_gap | same_len | before.maximum.flags(interval.maximum));
        if same_gap == 0 {
            varint::put_signed(out, gap);
        }
        if same_len == 0 {
            varint::put(out, len as u64);
        }
        before.maximum.put(interval.maximum, out);
        before.follow(gap, len, interval.end);
    }
}

/// A decoded summary of one series.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Number of generations; the last one is known from the row's key.
    generations: i64,
    /// The intervals in time order, with the number of their generation, counted from the first.
    intervals: Vec<(i64, Interval)>,
}

impl Summary {
    /// Removes everything: no generation has a summary.
    pub(super) fn clear(&mut self) {
        self.generations = 0;
        self.intervals.clear();
    }

    /// Decodes the summary of a row in place of this one. An error says what is wrong with it.
    pub(super) fn decode(&mut self, key: i64, bytes: &[u8]) -> Result<(), &'static str> {
        self.clear();
        let mut rest = bytes;
        let sum = cut(&mut rest).ok_or("a summary is cut off")?;
        if checksum(key, rest) != u32::from_le_bytes(sum) {
            return Err("the checksum of a summary is wrong");
        }
        if rest.first() != Some(&VERSION) {
            return Err("a summary has a version that this program does not know");
        }
        self.read(&rest[1..]).map_err(|_| "a summary cannot be read")
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), BytesError> {
        let mut cursor = Reader::new(bytes);
        let generations = i64::from(cursor.byte()?);
        let mut before = PreviousInterval::default();
        for generation in 0..generations {
            for _ in 0..cursor.varint()? {
                let interval = interval(&mut cursor, &mut before)?;
                self.intervals.push((generation, interval));
            }
        }
        if !(1..=SPAN).contains(&generations) || !cursor.rest().is_empty() {
            return Err(cursor.error(Fault::Invalid));
        }
        self.generations = generations;
        Ok(())
    }

    /// The intervals of a generation; `None` if the summary, which ends with generation `last`,
    /// does not have it.
    pub(super) fn of(&self, generation: i64, last: i64) -> Option<impl Iterator<Item = &Interval>> {
        let place = generation - (last - self.generations + 1);
        let intervals = self.intervals.iter().filter(move |of| of.0 == place);
        (0..self.generations)
            .contains(&place)
            .then(|| intervals.map(|of| &of.1))
    }
}

fn interval(cursor: &mut Reader<'_>, before: &mut PreviousInterval) -> Result<Interval, BytesError> {
    let flags = cursor.byte()?;
    let gap = if flags & SAME_GAP == 0 {
        cursor.signed()?
    } else {
        before.gap
    };
    let len = if flags & SAME_LEN != 0 {
        before.len
    } else if flags & LEN_BEFORE != 0 {
        before.len_before
    } else {
        cursor.varint()? as i64
    };
    let maximum = before.maximum.get(flags, cursor)?;
    let start = before.end.wrapping_add(gap);
    let end = start.wrapping_add(len);
    before.follow(gap, len, end);
    Ok(Interval { start, end, maximum })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;
    const SECOND: i64 = 1_000_000_000;
    const KEY: i64 = 15 << 32 | 3;

    fn hour(number: i64, from: i64, to: i64, maximum: f64) -> Interval {
        Interval {
            start: number * HOUR + from * SECOND,
            end: number * HOUR + (to - 1) * SECOND,
            maximum,
        }
    }

    fn decoded(bytes: &[u8]) -> Result<Summary, &'static str> {
        let mut summary = Summary::default();
        summary.decode(KEY, bytes).map(|()| summary)
    }

    #[test]
    fn intervals_come_back_by_generation() {
        let generations = [
            vec![hour(3, 0, 3600, 7.0)],
            vec![],
            vec![hour(5, 1200, 3600, -0.0), hour(6, 0, 1200, f64::INFINITY)],
            vec![hour(6, 1200, 3600, 0.125), hour(9, 0, 1, f64::NAN)],
        ];
        let mut encoder = SummaryEncoder::default();
        let bytes = encoder
            .encode(KEY, generations.iter().map(Vec::as_slice))
            .unwrap()
            .to_vec();
        let summary = decoded(&bytes).unwrap();
        let bits = |interval: &Interval| (interval.start, interval.end, interval.maximum.to_bits());
        for (place, intervals) in generations.iter().enumerate() {
            let found: Vec<_> = summary.of(12 + place as i64, 15).unwrap().map(bits).collect();
            assert_eq!(found, intervals.iter().map(bits).collect::<Vec<_>>(), "{place}");
        }
        assert!(summary.of(11, 15).is_none() && summary.of(16, 15).is_none());
    }

    #[test]
    fn a_day_of_generations_takes_some_bytes_for_each() {
        // Generations of an hour that begin at twenty past.
        let generation = |number: i64| {
            let counted = (number * 3600) as f64;
            [
                hour(number, 1200, 3600, counted + 2400.0),
                hour(number + 1, 0, 1200, counted + 3600.0),
            ]
        };
        let generations: Vec<_> = (0..SPAN).map(|number| generation(475_000 + number)).collect();
        let mut encoder = SummaryEncoder::default();
        let bytes = encoder.encode(KEY, generations.iter().map(<[_; 2]>::as_slice)).unwrap();
        assert!(bytes.len() < 110, "{} bytes", bytes.len());
    }

    #[test]
    fn generations_that_overlap_in_time_have_no_summary() {
        let mut encoder = SummaryEncoder::default();
        let late = [vec![hour(3, 0, 3600, 1.0)], vec![hour(3, 3599, 3600, 2.0)]];
        assert!(encoder.encode(KEY, late.iter().map(Vec::as_slice)).is_none());
        let none: [&[Interval]; 2] = [&[], &[]];
        assert!(encoder.encode(KEY, none.into_iter()).is_none());
        let many: Vec<_> = (0..600)
            .map(|second| hour(0, 3 * second, 3 * second + 1, second as f64))
            .collect();
        assert!(encoder.encode(KEY, [many.as_slice()].into_iter()).is_none());
    }

    #[test]
    fn a_damaged_summary_is_an_error() {
        let mut encoder = SummaryEncoder::default();
        let generations = [vec![hour(3, 0, 3600, 7.0)], vec![hour(4, 0, 3600, 0.5)]];
        let bytes = encoder
            .encode(KEY, generations.iter().map(Vec::as_slice))
            .unwrap()
            .to_vec();
        assert!(decoded(&bytes).is_ok());
        assert!(Summary::default().decode(KEY + 1, &bytes).is_err(), "under another key");
        for place in 0..bytes.len() {
            assert!(decoded(&bytes[..place]).is_err(), "cut at {place}");
            let mut damaged = bytes.clone();
            damaged[place] ^= 16;
            assert!(decoded(&damaged).is_err(), "bit of byte {place}");
        }
        // With a right checksum any bytes are read or refused.
        for place in HEAD..bytes.len() {
            for byte in 0..=u8::MAX {
                let mut forged = bytes.clone();
                forged[place] = byte;
                let sum = checksum(KEY, &forged[HEAD..]).to_le_bytes();
                forged[..HEAD].copy_from_slice(&sum);
                if let Ok(summary) = decoded(&forged) {
                    assert!(summary.intervals.len() < forged.len());
                }
            }
        }
    }
}
