//! The golden body, bad ones, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::wire::testing::{Heap, any_samples, clock, named};
use crate::wire::{Decoder, Encoder};

fn decode(body: &[u8]) -> Heap {
    let mut heap = Heap::default();
    let mut decoder = KairosdbJsonDecoder::new(&clock());
    assert_eq!(decoder.decode(body, &mut heap), Ok(body.len()));
    heap
}

fn encode(catalog: &Catalog, batch: &Batch<'_>) -> (String, u64) {
    let mut encoder = KairosdbJsonEncoder::new(catalog).unwrap();
    let mut out = Vec::new();
    encoder.encode(batch, &mut out);
    (String::from_utf8(out).unwrap(), encoder.skipped())
}

#[test]
fn the_golden_body_goes_both_ways() {
    let golden = include_str!("../../../fixtures/wire/kairosdb.json").trim_end();
    let heap = decode(golden.as_bytes());
    assert!(heap.malformed.is_empty());
    let name = "cloud.zones.cpu.usage{zone=f242021c-c5eb-4c53-a609-64bee4}";
    let first = (name.to_owned(), 1_404_770_400_000_000_000, 42.0_f64.to_bits());
    assert_eq!(heap.named()[0], first);
    let mut buffer = BatchBuf::new();
    heap.samples
        .iter()
        .for_each(|(id, at, value)| buffer.push(*id, *at, *value));
    assert_eq!(encode(&heap.catalog, &buffer.as_batch()), (golden.to_owned(), 0));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, a row for each line")]
fn metrics_before_a_malformed_one_are_accepted() {
    const FORM: &str = "a body is not JSON of the expected form";
    const TIME: &str = "a timestamp is not a number of milliseconds";
    let good = r#"{"name":"good","datapoints":[[1,2]],"tags":{"a":"b"}}"#;
    // The second metric of three, how many samples are taken, and what is said.
    let table: &[(&str, usize, Option<&str>)] = &[
        (good, 3, None),
        (r#"{"name":"m","timestamp":1,"value":2.5,"tags":{"a":"b"}}"#, 3, None),
        (
            r#"{"tags":{"a":"b"},"datapoints":[[1,2],[3,4]],"name":"m","ttl":5}"#,
            4,
            None,
        ),
        (r#"{"name":"m","datapoints":[[-1,-0.0]],"tags":{"add":"tag"}}"#, 3, None),
        (
            r#"{"datapoints":[[1,2]],"tags":{"a":"b"}}"#,
            1,
            Some("a metric has no name"),
        ),
        (
            r#"{"name":"","datapoints":[[1,2]],"tags":{"a":"b"}}"#,
            1,
            Some("a metric has no name"),
        ),
        (r#"{"name":"m","datapoints":[[1,2]]}"#, 1, Some("a metric has no tag")),
        (
            r#"{"name":"m","datapoints":[[1,2]],"tags":{}}"#,
            1,
            Some("a metric has no tag"),
        ),
        (
            r#"{"name":"m","datapoints":[[1,2]],"tags":{"a":""}}"#,
            1,
            Some("a tag or its value is empty"),
        ),
        (
            r#"{"name":"m m","datapoints":[[1,2]],"tags":{"a":"b"}}"#,
            1,
            Some("a name has a character that is not allowed"),
        ),
        (
            r#"{"name":"m","tags":{"a":"b"}}"#,
            1,
            Some("a metric has no timestamp or no value"),
        ),
        (
            r#"{"name":"m","timestamp":1,"tags":{"a":"b"}}"#,
            1,
            Some("a metric has no timestamp or no value"),
        ),
        (r#"{"name":"m","datapoints":[[1.5,2]],"tags":{"a":"b"}}"#, 1, Some(TIME)),
        (
            r#"{"name":"m","datapoints":[[9223372036855,2]],"tags":{"a":"b"}}"#,
            1,
            Some(TIME),
        ),
        (
            r#"{"name":"m","datapoints":[[1,9007199254740993]],"tags":{"a":"b"}}"#,
            1,
            Some("an integer that no f64 holds is not supported here"),
        ),
        (r#"{"name":"m","datapoints":[[1,"2"]],"tags":{"a":"b"}}"#, 1, Some(FORM)),
        (r#"{"name":"m","datapoints":[[1]],"tags":{"a":"b"}}"#, 1, Some(FORM)),
        (r#"{"name":"m","datapoints":[[1,NaN]],"tags":{"a":"b"}}"#, 1, Some(FORM)),
        (r#"{"name":7,"datapoints":[[1,2]],"tags":{"a":"b"}}"#, 1, Some(FORM)),
        ("7", 1, Some(FORM)),
        ("{", 1, Some(FORM)),
    ];
    for (metric, samples, what) in table {
        let heap = decode(format!("[{good},{metric},{good}]").as_bytes());
        let problems: Vec<&str> = what.iter().copied().collect();
        assert_eq!((heap.samples.len(), heap.problems()), (*samples, problems), "{metric}");
    }
    assert_eq!(decode(good.as_bytes()).samples.len(), 1);
    assert_eq!(decode(b"[]").malformed.len(), 0);
    for bad in ["", "7", "[", "[]x"] {
        assert_eq!(decode(bad.as_bytes()).problems(), [FORM], "{bad}");
    }
    let heap = decode(format!("[{good}] x").as_bytes());
    assert_eq!((heap.samples.len(), heap.problems()), (1, vec![FORM]));
}

#[test]
fn samples_that_the_wire_cannot_carry_are_skipped_and_counted() {
    let catalog: Catalog = ["a", "b"].map(SeriesKey::new).into_iter().collect();
    let (body, skipped) = encode(&catalog, &Batch::tick(SeriesId(0), Timestamp(5), &[f64::NAN, 1.0, 2.0]));
    assert_eq!(
        (body.as_str(), skipped),
        (r#"[{"name":"b","datapoints":[[0,1]],"tags":{"add":"tag"}}]"#, 2)
    );
    let (body, skipped) = encode(&catalog, &Batch::tick(SeriesId(0), Timestamp(5), &[f64::NAN]));
    assert_eq!((body.as_str(), skipped), ("", 1));
    assert!(KairosdbJsonEncoder::new(&[SeriesKey::new("a b")].into_iter().collect()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        names in proptest::collection::btree_map("[a-z0-9._/-]{1,60}", proptest::collection::btree_map("[a-z]{1,4}", "[a-z0-9._/-]{1,9}", 0..8), 1..80),
        samples in any_samples(80, true), millis in 0..1_000_i64,
    ) {
        let catalog: Catalog = names.iter().map(|(name, labels)| SeriesKey::with_labels(name, labels)).collect();
        let mut encoder = KairosdbJsonEncoder::new(&catalog).unwrap();
        let (mut body, mut expected) = (Vec::new(), Vec::new());
        let mut buffer = BatchBuf::new();
        for &(id, at, value) in samples.iter().filter(|(id, ..)| id.index() < catalog.len()) {
            let at = at + millis * 1_000_000;
            buffer.push(id, at, value);
            if value.is_finite() { expected.push((id, at, value)) }
        }
        encoder.encode(&buffer.as_batch(), &mut body);
        prop_assert_eq!(encoder.skipped() as usize, buffer.len() - expected.len());
        if !expected.is_empty() {
            let heap = decode(&body);
            prop_assert_eq!(heap.problems(), Vec::<&str>::new());
            prop_assert_eq!(heap.named(), named(&catalog, &expected));
        }
    }
}
