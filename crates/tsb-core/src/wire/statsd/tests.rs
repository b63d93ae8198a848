//! Golden lines, StatsD's behaviour line by line, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf, Ids, Times};
use crate::series::{Catalog, SeriesId};
use crate::time::Timestamp;
use crate::wire::Encoder;
use crate::wire::testing::{Heap, any_samples, clock, feed};

fn decode(payload: &[u8]) -> Heap {
    let mut heap = Heap::default();
    let result = feed(&mut StatsdDecoder::new(clock()), payload, std::iter::empty(), &mut heap);
    assert_eq!(result, Ok(()));
    heap
}

/// Names and values; the time is always that of the clock.
fn samples(heap: &Heap) -> Vec<(String, f64)> {
    let now = clock().wall();
    let name = |(id, at, value): &(SeriesId, Timestamp, f64)| {
        assert_eq!(*at, now);
        (heap.catalog.key(*id).unwrap().to_string(), *value)
    };
    heap.samples.iter().map(name).collect()
}

fn encode(catalog: &Catalog, batch: &Batch<'_>) -> (String, u64) {
    let mut encoder = StatsdEncoder::new(catalog).unwrap();
    let mut out = Vec::new();
    encoder.encode(batch, &mut out);
    (String::from_utf8(out).unwrap(), encoder.skipped())
}

#[test]
fn the_golden_lines_go_both_ways() {
    let golden = include_str!("../../../fixtures/wire/statsd.txt");
    let heap = decode(golden.as_bytes());
    assert!(heap.malformed.is_empty());
    assert_eq!(samples(&heap)[0], ("cloud.zones.cpu.usage".to_owned(), 42.0));
    let ids: Vec<SeriesId> = heap.samples.iter().map(|(id, ..)| *id).collect();
    let values: Vec<f64> = heap.samples.iter().map(|(.., value)| *value).collect();
    let batch = Batch::new(Ids::Each(&ids), Times::One(Timestamp(0)), &values);
    assert_eq!(encode(&heap.catalog, &batch), (golden.to_owned(), 0));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, a row for each line")]
#[expect(clippy::type_complexity, reason = "a table, a row for each line")]
fn bad_lines_are_treated_as_statsd_treats_them() {
    const TYPE: &str = "a line has no type";
    const VALUE: &str = "a value is not a number";
    const RATE: &str = "a sample rate is not a number";
    const SET: &str = "a member of a set is not supported here";
    let table: &[(&str, &[(&str, f64)], &[&str])] = &[
        ("m:1|g", &[("m", 1.0)], &[]),
        ("m:1|c", &[("m{_type=counter}", 1.0)], &[]),
        ("m:1|ms", &[("m{_type=timer}", 1.0)], &[]),
        // Whatever else it is called, it counts.
        ("m:1|kg", &[("m{_type=counter}", 1.0)], &[]),
        ("m:1|", &[("m{_type=counter}", 1.0)], &[]),
        ("m:1|c|@0.1", &[("m{_type=counter}", 10.0)], &[]),
        ("m:1|ms|@0.1", &[("m{_type=timer}", 1.0)], &[]),
        ("m:1|c|@0.5|#a,b:c", &[("m{_type=counter}", 2.0)], &[TYPE]),
        ("m:1|c|#a,b", &[("m{_type=counter}", 1.0)], &[]),
        (
            "m:1|c:2|c:3|ms",
            &[
                ("m{_type=counter}", 1.0),
                ("m{_type=counter}", 2.0),
                ("m{_type=timer}", 3.0),
            ],
            &[],
        ),
        // A signed gauge moves one that is set and not zero.
        ("m:+3|g", &[("m", 3.0)], &[]),
        ("m:-3|g", &[("m", -3.0)], &[]),
        ("m:5|g:-3|g", &[("m", 2.0)], &[]),
        ("m:5|g:+3|g", &[("m", 8.0)], &[]),
        ("m:0|g:-3|g", &[("m", -3.0)], &[]),
        ("m: 7 |g", &[("m", 7.0)], &[]),
        ("m:0x10|g", &[("m", 16.0)], &[]),
        ("m:Infinity|g", &[("m", f64::INFINITY)], &[]),
        ("m", &[], &[TYPE]),
        ("m:", &[], &[TYPE]),
        ("m:1", &[], &[TYPE]),
        ("m:|g", &[], &[VALUE]),
        ("m:one|g", &[], &[VALUE]),
        ("m:NaN|g", &[], &[VALUE]),
        ("m:1x|c", &[], &[VALUE]),
        ("m:-1|ms", &[], &["a timer is negative"]),
        ("m:1|c|0.1", &[], &[RATE]),
        ("m:1|c|@", &[], &[RATE]),
        ("m:1|c|@x", &[], &[RATE]),
        ("m:1|c|@-1", &[], &[RATE]),
        ("m:you|s", &[], &[SET]),
        ("m:one|g:2|g", &[("m", 2.0)], &[VALUE]),
        // Keys.
        ("a  b/c!d:1|g", &[("a_b-cd", 1.0)], &[]),
        ("\u{e9}m:1|g", &[("m", 1.0)], &[]),
        ("m;l=v;k=w:1|g", &[("m{k=w,l=v}", 1.0)], &[]),
        ("m;l:1|g", &[("m;l", 1.0)], &[]),
    ];
    for (line, expected, problems) in table {
        let heap = decode(format!("good:1|g\n{line}\n\ngood:2|g\n").as_bytes());
        let found = samples(&heap);
        let (first, rest) = found.split_first().unwrap();
        let (last, found) = rest.split_last().unwrap();
        assert_eq!(
            (first, last),
            (&("good".to_owned(), 1.0), &("good".to_owned(), 2.0)),
            "{line}"
        );
        let found: Vec<(&str, f64)> = found.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(
            (found.as_slice(), heap.problems().as_slice()),
            (*expected, *problems),
            "{line}"
        );
    }
    // A gauge is remembered from line to line.
    assert_eq!(
        samples(&decode(b"m:5|g\nm:-3|g\nm:-2|g\nm:-1|g\n"))[1..],
        [2.0, 0.0, -1.0].map(|v| ("m".to_owned(), v))
    );
}

#[test]
fn keys_and_names_are_told_apart() {
    let refused = [
        SeriesKey::new(""),
        SeriesKey::new("a b"),
        SeriesKey::new("a:b"),
        SeriesKey::new("a/b"),
        SeriesKey::new("a;b"),
        SeriesKey::new("a=b"),
        SeriesKey::new("\u{e9}"),
        SeriesKey::new("x".repeat(MAX_KEY + 1)),
        SeriesKey::with_labels("a", [("", "v")]),
        SeriesKey::with_labels("a", [("l", "")]),
        SeriesKey::with_labels("a", [("l=", "v")]),
        SeriesKey::with_labels("a", [("l", "v;w")]),
        SeriesKey::with_labels("a", [(TYPE_LABEL, "set")]),
    ];
    for key in refused {
        assert!(wire_name(&key).is_err(), "{key}");
    }
}

#[test]
fn samples_that_the_wire_cannot_carry_are_skipped_and_counted() {
    let catalog: Catalog = [
        SeriesKey::new("a"),
        SeriesKey::with_labels("b", [(TYPE_LABEL, "timer")]),
    ]
    .into_iter()
    .collect();
    let tick = |values: &[f64]| encode(&catalog, &Batch::tick(SeriesId(0), Timestamp(0), values));
    assert_eq!(tick(&[-1.5, 2.0]), ("a:0|g:-1.5|g\nb:2|ms\n".to_owned(), 0));
    assert_eq!(tick(&[f64::NAN, -2.0, 3.0]), (String::new(), 3));
    assert_eq!(tick(&[-0.0, f64::INFINITY]), (String::new(), 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        names in proptest::collection::btree_map("[a-z0-9._-]{1,60}", proptest::collection::btree_map("([a-z]{1,4}|_type)", "([a-z0-9._=-]{1,9}|counter|timer)", 0..3), 1..80),
        samples in any_samples(80, true), pieces in proptest::collection::vec(1..700_usize, 0..60),
    ) {
        let keys = names.iter().map(|(name, labels)| SeriesKey::with_labels(name, labels));
        let catalog: Catalog = keys.filter(|key| wire_name(key).is_ok()).collect();
        let mut encoder = StatsdEncoder::new(&catalog).unwrap();
        let (mut payload, mut expected) = (Vec::new(), Vec::new());
        let mut buffer = BatchBuf::new();
        for &(id, at, value) in samples.iter().filter(|(id, ..)| id.index() < catalog.len()) {
            buffer.push(id, at, value);
            let key = catalog.key(id).unwrap();
            let is_timer = key.label(TYPE_LABEL) == Some("timer");
            if value.is_finite() && !(value.is_sign_negative() && (value == 0.0 || is_timer)) {
                expected.push((key.to_string(), value));
            }
        }
        encoder.encode(&buffer.as_batch(), &mut payload);
        prop_assert_eq!(encoder.skipped() as usize, buffer.len() - expected.len());
        let mut heap = Heap::default();
        let result = feed(&mut StatsdDecoder::new(clock()), &payload, pieces.into_iter(), &mut heap);
        prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
        prop_assert_eq!(super::tests::samples(&heap), expected);
    }
}
