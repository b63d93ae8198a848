//! The file format as a whole: round trips, cuts, flipped bits, limits.

use proptest::prelude::*;

use super::*;
use crate::series::{SeriesId, SeriesKey};
use crate::time::Timestamp;

fn small_file() -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), &[("source", "test")]).unwrap();
    let first = writer.define(&SeriesKey::with_labels("cpu", [("host", "a")])).unwrap();
    let second = writer.define(&SeriesKey::with_labels("cpu", [("host", "b")])).unwrap();
    for tick in 0..20 {
        writer
            .push(first, Timestamp(tick * 1_000_000_007), (tick * tick) as f64)
            .unwrap();
        writer
            .push(second, Timestamp(tick * 1_000_000_007), tick as f64 / 8.0)
            .unwrap();
        if tick == 9 {
            writer.flush().unwrap();
            let late = writer.define(&SeriesKey::new("late")).unwrap();
            assert_eq!(late, SeriesId(2));
            writer.push(late, Timestamp(5), f64::NAN).unwrap();
        }
    }
    writer.finish().unwrap().0
}

fn read(bytes: &[u8]) -> Result<Trace, TraceDefect> {
    Trace::read(bytes, Limits::default())
}

#[test]
fn what_is_written_is_read() {
    let trace = read(&small_file()).unwrap();
    assert!(trace.problems.is_empty());
    assert_eq!(trace.notes["source"], "test");
    let names: Vec<String> = trace.keys.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["cpu{host=a}", "cpu{host=b}", "late"]);
    assert_eq!(trace.samples(), 41);
    assert_eq!(trace.columns[0].values()[19], 361.0);
    assert_eq!(trace.columns[1].times()[19], Timestamp(19 * 1_000_000_007));
    assert!(trace.columns[2].values()[0].is_nan());
    assert_eq!(trace.span(), Some((Timestamp(0), Timestamp(19 * 1_000_000_007))));
}

#[test]
fn a_file_cut_anywhere_is_read_to_its_last_whole_block() {
    let bytes = small_file();
    let mut seen = std::collections::BTreeSet::new();
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Ok(trace) => {
                assert_eq!(trace.problems.count, 1, "cut at {length} and not noticed");
                assert!([0, 20, 41].contains(&trace.samples()));
                seen.insert(trace.samples());
            }
            Err(defect) => assert!(length < 16, "cut at {length}: {defect}"),
        }
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = small_file();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&flipped).is_err(), "bit {bit} flipped and not noticed");
    }
}

/// A limit of its own for each kind of thing, and each is kept.
#[test]
fn limits_bound_what_a_file_can_make_of_itself() {
    let bytes = small_file();
    let check = |limits: Limits, expected: &str| {
        let error = Trace::read(&bytes[..], limits).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let limits = Limits::default();
    check(Limits { series: 1, ..limits }, "more than 1 series");
    check(Limits { samples: 30, ..limits }, "more than 30 samples");
    check(
        Limits {
            key_bytes: 12,
            ..limits
        },
        "more than 12 bytes of names",
    );
}

fn keys() -> impl Strategy<Value = SeriesKey> {
    let label = ("[a-c]{1,2}", "[x-z\u{e4}\u{20ac}]{0,4}");
    ("[a-d]{1,3}", proptest::collection::vec(label, 0..3))
        .prop_map(|(name, labels)| SeriesKey::with_labels(name, labels))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn any_samples_come_back_in_order(
        rows in proptest::collection::vec((keys(), any::<i64>(), any::<u64>(), any::<bool>()), 0..80),
    ) {
        let mut expected = std::collections::BTreeMap::<SeriesKey, Vec<(Timestamp, u64)>>::new();
        let mut writer = TraceWriter::new(Vec::new(), &[]).unwrap();
        for (key, at, bits, flush) in rows {
            let id = writer.define(&key).unwrap();
            writer.push(id, Timestamp(at), f64::from_bits(bits)).unwrap();
            expected.entry(key).or_default().push((Timestamp(at), bits));
            if flush {
                writer.flush().unwrap();
            }
        }
        let (bytes, totals) = writer.finish().unwrap();
        prop_assert_eq!(totals.bytes, bytes.len() as u64);
        let trace = read(&bytes).unwrap();
        prop_assert_eq!(totals.samples, trace.samples());
        prop_assert_eq!(trace.keys.len(), expected.len());
        for (key, column) in trace.keys.iter().zip(&trace.columns) {
            let bits = column.values().iter().map(|value| value.to_bits());
            let found: Vec<_> = column.times().iter().copied().zip(bits).collect();
            prop_assert_eq!(&found, &expected[key]);
        }
    }

    #[test]
    fn any_bytes_are_a_trace_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read(&bytes).is_err());
    }
}
