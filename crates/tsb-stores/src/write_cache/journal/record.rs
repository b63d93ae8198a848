//! The byte format of a journal's records: docs/formats/journal.md.
//!
//! It does no I/O: it encodes records, and decodes them from arbitrary bytes.

use tsb_core::{SeriesId, SeriesKey};

use super::super::chunk::Sample;

/// Length, checksum, number and kind of a record.
const PREFIX_LEN: usize = 17;
/// Upper bound of a record's length; a larger length is damage.
const LEN_MAX: usize = 1 << 30;
/// Upper bound of a record's number; a larger number is damage.
pub(super) const NUMBER_MAX: u64 = 1 << 62;
/// While searching for a record after damage: the most by which its number may exceed the
/// previous one.
const NUMBERS_LOST_MAX: u64 = 1 << 40;
/// Number of names in one record.
const NAMES_MAX: usize = 64;

const NAMES: u8 = 1;
const SAMPLES: u8 = 2;
const WROTE: u8 = 3;
const FORGOT: u8 = 4;
const UPDATES: u8 = 5;

/// The ids of the samples are a range.
const SHAPE_RANGE: u8 = 1;
/// The samples share one timestamp.
const SHAPE_ONE_TIME: u8 = 2;

/// The samples of one write, in order of admission.
#[derive(Debug, Default)]
pub(in super::super) struct AdmittedSamples {
    ids: Vec<u32>,
    times: Vec<i64>,
    values: Vec<f64>,
}

impl AdmittedSamples {
    pub(in super::super) fn clear(&mut self) {
        self.ids.clear();
        self.times.clear();
        self.values.clear();
    }

    #[inline]
    pub(in super::super) fn push(&mut self, id: SeriesId, sample: Sample) {
        self.ids.push(id.0);
        self.times.push(sample.0);
        self.values.push(sample.1);
    }

    pub(in super::super) fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Appends names, at most `NAMES_MAX` per record: damage to one record loses only its own names.
pub(super) fn write_names(into: &mut Vec<u8>, number: u64, names: &[(SeriesId, &SeriesKey)]) {
    names
        .chunks(NAMES_MAX)
        .for_each(|names| write_some_names(into, number, names));
}

fn write_some_names(into: &mut Vec<u8>, number: u64, names: &[(SeriesId, &SeriesKey)]) {
    record(into, number, NAMES, |into| {
        into.extend((names.len() as u32).to_le_bytes());
        for (id, key) in names {
            into.extend(id.0.to_le_bytes());
            text(into, key.name());
            into.extend((key.labels().len() as u32).to_le_bytes());
            for (label, value) in key.labels() {
                text(into, label);
                text(into, value);
            }
        }
    });
}

/// Appends a record of samples.
pub(super) fn write_samples(into: &mut Vec<u8>, number: u64, samples: &AdmittedSamples) {
    let is_range = samples
        .ids
        .windows(2)
        .all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    let is_one_time = samples.times.windows(2).all(|pair| pair[0] == pair[1]);
    let ids = if is_range { &samples.ids[..1] } else { &samples.ids[..] };
    let times = if is_one_time {
        &samples.times[..1]
    } else {
        &samples.times[..]
    };
    record(into, number, SAMPLES, |into| {
        into.reserve(5 + ids.len() * 4 + times.len() * 8 + samples.values.len() * 8);
        into.push((u8::from(is_range) * SHAPE_RANGE) | (u8::from(is_one_time) * SHAPE_ONE_TIME));
        into.extend((samples.values.len() as u32).to_le_bytes());
        into.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        into.extend(times.iter().flat_map(|at| at.to_le_bytes()));
        into.extend(samples.values.iter().flat_map(|value| value.to_le_bytes()));
    });
}

/// Appends a record of updates of one file, as text; each ends in a line feed.
pub(super) fn write_updates(into: &mut Vec<u8>, number: u64, id: SeriesId, lines: &str) {
    record(into, number, UPDATES, |into| {
        into.extend(id.0.to_le_bytes());
        text(into, lines);
    });
}

/// What a record of marks states about earlier samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The store has them, synced.
    Wrote,
    /// They are no longer needed.
    Forgot,
}

/// Appends a record of marks: for each series, all samples up to the given record are settled.
pub(super) fn write_marks(into: &mut Vec<u8>, number: u64, mark: Mark, upto: &[(SeriesId, u64)]) {
    let kind = match mark {
        Mark::Wrote => WROTE,
        Mark::Forgot => FORGOT,
    };
    record(into, number, kind, |into| {
        into.extend((upto.len() as u32).to_le_bytes());
        for (id, record) in upto {
            into.extend(id.0.to_le_bytes());
            into.extend(record.to_le_bytes());
        }
    });
}

fn record(into: &mut Vec<u8>, number: u64, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = into.len();
    into.extend([0; 8]);
    into.extend(number.to_le_bytes());
    into.push(kind);
    body(into);
    let sum = crc32fast::hash(&into[start + 8..]);
    let len = (into.len() - start - PREFIX_LEN) as u32;
    into[start..start + 4].copy_from_slice(&len.to_le_bytes());
    into[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
}

fn text(into: &mut Vec<u8>, text: &str) {
    into.extend((text.len() as u32).to_le_bytes());
    into.extend(text.as_bytes());
}

/// A decoded record.
#[derive(Debug, PartialEq)]
pub(super) enum Record {
    Names(Vec<(SeriesId, SeriesKey)>),
    Samples(Vec<(SeriesId, Sample)>),
    Marks(Mark, Vec<(SeriesId, u64)>),
    Updates(SeriesId, String),
}

impl Record {
    /// How many numbers the record takes: one per sample or update, and one for a record of
    /// marks. Names take none: they have the number of the next record.
    pub(super) fn numbers(&self) -> u64 {
        match self {
            Self::Names(_) => 0,
            Self::Samples(samples) => samples.len() as u64,
            Self::Updates(_, lines) => lines.lines().count() as u64,
            Self::Marks(..) => 1,
        }
    }
}

/// Decodes the record at the start of `bytes`. Returns its number, the record and its length, or
/// what is wrong.
pub(super) fn read(bytes: &[u8]) -> Result<(u64, Record, usize), &'static str> {
    let mut prefix = Reader(bytes.get(..PREFIX_LEN).ok_or("a record is cut short")?);
    let len = prefix.u32()? as usize;
    let sum = prefix.u32()?;
    let number = prefix.u64()?;
    let kind = prefix.u8()?;
    if len > LEN_MAX || number > NUMBER_MAX {
        return Err("a record is longer than any, or its number is higher");
    }
    let whole = bytes.get(..PREFIX_LEN + len).ok_or("a record is cut short")?;
    if crc32fast::hash(&whole[8..]) != sum {
        return Err("a checksum does not match");
    }
    let mut body = Reader(&whole[PREFIX_LEN..]);
    let record = match kind {
        NAMES => Record::Names(names(&mut body)?),
        SAMPLES => Record::Samples(samples(&mut body)?),
        WROTE => Record::Marks(Mark::Wrote, marks(&mut body)?),
        FORGOT => Record::Marks(Mark::Forgot, marks(&mut body)?),
        UPDATES => Record::Updates(SeriesId(body.u32()?), body.text()?),
        _ => return Err("a record of no known kind"),
    };
    if body.0.is_empty() {
        Ok((number, record, whole.len()))
    } else {
        Err("a record is longer than what it holds")
    }
}

/// The length of the record that may begin at `bytes`, if it ends within them and its number may
/// follow `last`. A cheap filter that rejects nearly all positions where no record begins.
pub(super) fn len_if_plausible(bytes: &[u8], last: u64) -> Option<usize> {
    let mut prefix = Reader(bytes.get(..PREFIX_LEN)?);
    let len = PREFIX_LEN + prefix.u32().ok()? as usize;
    prefix.u32().ok()?;
    let number = prefix.u64().ok()?;
    let kind = prefix.u8().ok()?;
    let is_plausible = (NAMES..=UPDATES).contains(&kind)
        && len <= bytes.len()
        && (last..=last.saturating_add(NUMBERS_LOST_MAX)).contains(&number);
    is_plausible.then_some(len)
}

/// The unread bytes of a record. Every read is checked, and nothing is allocated for data that is
/// not there.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (taken, left) = self.0.split_at_checked(len).ok_or("a record ends too soon")?;
        self.0 = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<String, &'static str> {
        let len = self.u32()? as usize;
        let text = std::str::from_utf8(self.take(len)?);
        text.map(str::to_owned).map_err(|_| "a name is not UTF-8")
    }

    /// Reads a count of items of at least `size` bytes each, which must all be present.
    fn count(&mut self, size: usize) -> Result<usize, &'static str> {
        let count = self.u32()? as usize;
        if count.saturating_mul(size) > self.0.len() {
            return Err("a record counts more than it holds");
        }
        Ok(count)
    }
}

fn names(body: &mut Reader<'_>) -> Result<Vec<(SeriesId, SeriesKey)>, &'static str> {
    let count = body.count(12)?;
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        let id = SeriesId(body.u32()?);
        let name = body.text()?;
        let labels = body.count(8)?;
        let labels: Result<Vec<(String, String)>, &str> =
            (0..labels).map(|_| Ok((body.text()?, body.text()?))).collect();
        names.push((id, SeriesKey::with_labels(name, labels?)));
    }
    Ok(names)
}

fn samples(body: &mut Reader<'_>) -> Result<Vec<(SeriesId, Sample)>, &'static str> {
    let shape = body.u8()?;
    let count = body.count(8)?;
    let is_range = shape & SHAPE_RANGE != 0;
    let is_one_time = shape & SHAPE_ONE_TIME != 0;
    let mut ids = Reader(body.take(if is_range { 4 } else { count * 4 })?);
    let mut times = Reader(body.take(if is_one_time { 8 } else { count * 8 })?);
    let (first, only) = (Reader(ids.0).u32().unwrap_or(0), Reader(times.0).u64().unwrap_or(0));
    let mut samples = Vec::with_capacity(count);
    for index in 0..count {
        let id = if is_range {
            first.checked_add(index as u32).ok_or("ids beyond any")?
        } else {
            ids.u32()?
        };
        let at = if is_one_time { only } else { times.u64()? };
        samples.push((SeriesId(id), (at as i64, f64::from_bits(body.u64()?))));
    }
    Ok(samples)
}

fn marks(body: &mut Reader<'_>) -> Result<Vec<(SeriesId, u64)>, &'static str> {
    let count = body.count(12)?;
    (0..count).map(|_| Ok((SeriesId(body.u32()?), body.u64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(samples: &[(u32, i64, f64)]) -> AdmittedSamples {
        let mut admitted = AdmittedSamples::default();
        for &(id, at, value) in samples {
            admitted.push(SeriesId(id), (at, value));
        }
        admitted
    }

    #[test]
    fn records_come_back_in_every_shape() {
        let shapes: [&[(u32, i64, f64)]; 5] = [
            &[(7, 5, 1.5)],
            &[(7, 5, 1.5), (8, 5, -0.0), (9, 5, f64::INFINITY)],
            &[(7, 5, 1.5), (8, 6, 2.5)],
            &[(9, 5, 1.5), (7, 5, 2.5)],
            &[(9, 5, 1.5), (9, -6, 2.5), (u32::MAX, i64::MAX, 0.0)],
        ];
        for (number, shape) in shapes.into_iter().enumerate() {
            let mut bytes = Vec::new();
            write_samples(&mut bytes, number as u64, &admitted(shape));
            let expected = shape.iter().map(|&(id, at, value)| (SeriesId(id), (at, value)));
            let expected = Record::Samples(expected.collect());
            assert_eq!(read(&bytes), Ok((number as u64, expected, bytes.len())));
        }
        let key = SeriesKey::with_labels("cpu", [("host", "a"), ("\u{fc}", "")]);
        let mut bytes = Vec::new();
        write_names(&mut bytes, 1, &[(SeriesId(3), &key)]);
        let len = bytes.len();
        write_marks(&mut bytes, 2, Mark::Forgot, &[(SeriesId(3), 99)]);
        assert_eq!(read(&bytes), Ok((1, Record::Names(vec![(SeriesId(3), key)]), len)));
        let marks = Record::Marks(Mark::Forgot, vec![(SeriesId(3), 99)]);
        assert_eq!(read(&bytes[len..]), Ok((2, marks, bytes.len() - len)));
        let len = bytes.len();
        write_updates(&mut bytes, 3, SeriesId(3), "1:2:3\n2:U:3\n");
        let updates = Record::Updates(SeriesId(3), "1:2:3\n2:U:3\n".to_owned());
        assert_eq!(read(&bytes[len..]), Ok((3, updates, bytes.len() - len)));
    }

    #[test]
    fn cut_and_altered_records_are_errors() {
        let mut bytes = Vec::new();
        write_samples(&mut bytes, 1, &admitted(&[(1, 5, 1.5), (3, 6, 2.5)]));
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err(), "{len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&altered).is_err(), "{bit}");
        }
    }

    #[test]
    fn a_record_with_a_right_checksum_and_wrong_contents_is_an_error() {
        for body in [
            &[9_u8, 0, 0, 0][..],
            &[0, 255, 255, 255, 255, 1],
            &[3, 1, 0, 0, 0, 1, 0, 0, 0],
            &[1, 2, 0, 0, 0],
            &[],
        ] {
            for kind in 0..6 {
                let mut bytes = Vec::new();
                record(&mut bytes, 1, kind, |into| into.extend(body));
                assert!(read(&bytes).is_err(), "{kind} {body:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_a_record_or_an_error(kind in 0_u8..7, body in proptest::collection::vec(0_u8..4, 0..80)) {
            let mut bytes = Vec::new();
            record(&mut bytes, 7, kind, |into| into.extend(&body));
            if let Ok((number, record, len)) = read(&bytes) {
                assert_eq!((number, len), (7, bytes.len()));
                // Every item has consumed bytes, so a huge count cannot make this loop allocate
                // without input.
                let things = match &record {
                    Record::Names(names) => names.len() * 12,
                    Record::Samples(samples) => samples.len() * 8,
                    Record::Marks(_, marks) => marks.len() * 12,
                    Record::Updates(_, lines) => 8 + lines.len(),
                };
                assert!(things <= body.len());
            }
        }
    }
}
