//! The byte format of a journal's records: docs/formats/journal.md.
//!
//! It does no I/O: it encodes records, and decodes them from arbitrary bytes.

use tsb_core::bytes::{BytesError, Reader, cut, u32_at, u64_at};
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
    const CUT: &str = "a record is cut short";
    let prefix = Prefix::of(bytes).ok_or(CUT)?;
    if prefix.len > LEN_MAX || prefix.number > NUMBER_MAX {
        return Err("a record is longer than any, or its number is higher");
    }
    let whole = bytes.get(..PREFIX_LEN + prefix.len).ok_or(CUT)?;
    if crc32fast::hash(&whole[8..]) != prefix.sum {
        return Err("a checksum does not match");
    }
    let mut body = Reader::new(&whole[PREFIX_LEN..]);
    let record = match prefix.kind {
        NAMES => names(&mut body).map(Record::Names),
        SAMPLES => samples(&mut body).map(Record::Samples),
        WROTE => marks(&mut body).map(|upto| Record::Marks(Mark::Wrote, upto)),
        FORGOT => marks(&mut body).map(|upto| Record::Marks(Mark::Forgot, upto)),
        UPDATES => updates(&mut body),
        _ => return Err("a record of no known kind"),
    };
    let record = record.map_err(|Flaw(what)| what)?;
    if body.rest().is_empty() {
        Ok((prefix.number, record, whole.len()))
    } else {
        Err("a record is longer than what it holds")
    }
}

/// The length of the record that may begin at `bytes`, if it ends within them and its number may
/// follow `last`. A cheap filter that rejects nearly all positions where no record begins.
pub(super) fn len_if_plausible(bytes: &[u8], last: u64) -> Option<usize> {
    let prefix = Prefix::of(bytes)?;
    let len = PREFIX_LEN + prefix.len;
    let is_plausible = (NAMES..=UPDATES).contains(&prefix.kind)
        && len <= bytes.len()
        && (last..=last.saturating_add(NUMBERS_LOST_MAX)).contains(&prefix.number);
    is_plausible.then_some(len)
}

/// What stands before the body of a record.
struct Prefix {
    len: usize,
    sum: u32,
    number: u64,
    kind: u8,
}

impl Prefix {
    fn of(mut bytes: &[u8]) -> Option<Self> {
        Some(Self {
            len: u32::from_le_bytes(cut(&mut bytes)?) as usize,
            sum: u32::from_le_bytes(cut(&mut bytes)?),
            number: u64::from_le_bytes(cut(&mut bytes)?),
            kind: u8::from_le_bytes(cut(&mut bytes)?),
        })
    }
}

/// What is wrong with the body of a record.
struct Flaw(&'static str);

impl From<BytesError> for Flaw {
    fn from(_: BytesError) -> Self {
        Self("a record ends too soon")
    }
}

/// Reads a count of items of at least `size` bytes each, which must all be present: so nothing is
/// allocated for data that is not there.
fn count(body: &mut Reader<'_>, size: usize) -> Result<usize, Flaw> {
    let count = body.u32()? as usize;
    if count.saturating_mul(size) > body.rest().len() {
        return Err(Flaw("a record counts more than it holds"));
    }
    Ok(count)
}

fn read_text(body: &mut Reader<'_>) -> Result<String, Flaw> {
    let len = body.u32()? as usize;
    let text = std::str::from_utf8(body.take(len)?);
    text.map(str::to_owned).map_err(|_| Flaw("a name is not UTF-8"))
}

fn names(body: &mut Reader<'_>) -> Result<Vec<(SeriesId, SeriesKey)>, Flaw> {
    let len = count(body, 12)?;
    let mut names = Vec::with_capacity(len);
    for _ in 0..len {
        let id = SeriesId(body.u32()?);
        let name = read_text(body)?;
        let labels = count(body, 8)?;
        let labels: Result<Vec<(String, String)>, Flaw> =
            (0..labels).map(|_| Ok((read_text(body)?, read_text(body)?))).collect();
        names.push((id, SeriesKey::with_labels(name, labels?)));
    }
    Ok(names)
}

fn samples(body: &mut Reader<'_>) -> Result<Vec<(SeriesId, Sample)>, Flaw> {
    let shape = body.byte()?;
    let len = count(body, 8)?;
    let is_range = shape & SHAPE_RANGE != 0;
    let is_one_time = shape & SHAPE_ONE_TIME != 0;
    let mut ids = Reader::new(body.take(if is_range { 4 } else { len * 4 })?);
    let mut times = Reader::new(body.take(if is_one_time { 8 } else { len * 8 })?);
    let (first, only) = (u32_at(ids.rest(), 0).unwrap_or(0), u64_at(times.rest(), 0).unwrap_or(0));
    let mut samples = Vec::with_capacity(len);
    for index in 0..len {
        let id = if is_range {
            first.checked_add(index as u32).ok_or(Flaw("ids beyond any"))?
        } else {
            ids.u32()?
        };
        let at = if is_one_time { only } else { times.u64()? };
        samples.push((SeriesId(id), (at as i64, body.f64()?)));
    }
    Ok(samples)
}

fn marks(body: &mut Reader<'_>) -> Result<Vec<(SeriesId, u64)>, Flaw> {
    let len = count(body, 12)?;
    (0..len).map(|_| Ok((SeriesId(body.u32()?), body.u64()?))).collect()
}

fn updates(body: &mut Reader<'_>) -> Result<Record, Flaw> {
    Ok(Record::Updates(SeriesId(body.u32()?), read_text(body)?))
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
