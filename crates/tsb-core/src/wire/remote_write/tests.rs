//! The golden body, bad ones, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf};
use crate::bytes::varint;
use crate::series::{Catalog, SeriesKey};
use crate::time::Timestamp;
use crate::wire::protobuf::push_bytes;
use crate::wire::testing::{Heap, any_samples, clock, hex, named};
use crate::wire::{Decoder, Encoder};

fn decode(body: &[u8]) -> Heap {
    let mut heap = Heap::default();
    let mut decoder = RemoteWriteDecoder::new(&clock());
    assert_eq!(decoder.decode(body, &mut heap), Ok(body.len()));
    heap
}

fn encode(catalog: &Catalog, batch: &Batch<'_>) -> Vec<u8> {
    let (mut encoder, mut out) = (RemoteWriteEncoder::new(catalog).unwrap(), Vec::new());
    encoder.encode(batch, &mut out);
    out
}

fn label(name: &str, value: &str) -> Vec<u8> {
    let (mut pair, mut out) = (Vec::new(), Vec::new());
    push_bytes(1, name.as_bytes(), &mut pair);
    push_bytes(2, value.as_bytes(), &mut pair);
    push_bytes(1, &pair, &mut out);
    out
}

fn sample(millis: i64, value: f64) -> Vec<u8> {
    let (mut inner, mut out) = (vec![9], Vec::new());
    inner.extend_from_slice(&value.to_le_bytes());
    inner.push(16);
    varint::put(&mut inner, millis as u64);
    push_bytes(2, &inner, &mut out);
    out
}

fn series(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    push_bytes(1, &parts.concat(), &mut out);
    out
}

/// What the protobuf library for Python makes of two series.
#[test]
fn the_golden_body_goes_both_ways() {
    let golden = hex(include_str!("../../../fixtures/wire/remote-write.hex"));
    let heap = decode(&golden);
    assert!(heap.malformed.is_empty(), "{:?}", heap.malformed);
    let at = 1_404_770_400_123_000_000;
    let expected = [
        ("cpu.usage{host=a}".to_owned(), at, 42.5_f64.to_bits()),
        ("up{job=node,zone:1=b}".to_owned(), at, 0x7ff0_0000_0000_0002),
    ];
    assert_eq!(heap.named(), expected);
    let mut buffer = BatchBuf::new();
    heap.samples
        .iter()
        .for_each(|(id, at, value)| buffer.push(*id, *at, *value));
    assert_eq!(encode(&heap.catalog, &buffer.as_batch()), golden);
}

#[test]
fn an_invalid_series_is_left_out_and_the_others_are_accepted() {
    let name = || label("__name__", "m");
    let good = series(&[name(), sample(1, 2.0)]);
    let at = "a timestamp is beyond the years 1678 to 2262";
    let body = "a body is not a WriteRequest in protobuf";
    let histogram = || b"\x22\x02\x08\x01".to_vec();
    // The second series of three, how many samples are taken, and what is said.
    let table: &[(Vec<u8>, usize, Option<&str>)] = &[
        (good.clone(), 3, None),
        (series(&[name(), sample(1, 2.0), sample(2, 2.0)]), 4, None),
        (series(&[sample(1, 2.0), name(), sample(2, 2.0)]), 4, None),
        (series(&[name()]), 2, None),
        (series(&[name(), b"\x12\x00".to_vec()]), 3, None),
        (series(&[name(), sample(1, 2.0), b"\x1a\x00".to_vec()]), 3, None),
        (b"\x1a\x02\x08\x01".to_vec(), 2, None),
        (
            series(&[name(), histogram()]),
            2,
            Some("a histogram is not supported here"),
        ),
        (
            series(&[label("a", "b"), sample(1, 2.0)]),
            2,
            Some("a series has no label __name__"),
        ),
        (
            series(&[name(), name(), sample(1, 2.0)]),
            2,
            Some("a label occurs twice"),
        ),
        (
            series(&[name(), label("a", ""), sample(1, 2.0)]),
            2,
            Some("a label or its value is empty"),
        ),
        (
            series(&[name(), b"\x0a\x04\x0a\x02\xff\xfe".to_vec(), sample(1, 2.0)]),
            2,
            Some("a label is not UTF-8"),
        ),
        (
            series(&[label("__name__", &"x".repeat(40_000)), sample(1, 2.0)]),
            2,
            Some("the labels of a series are longer than 32 KiB"),
        ),
        (series(&[name(), sample(9_223_372_036_855, 2.0)]), 2, Some(at)),
        (series(&[name(), sample(i64::MIN, 2.0)]), 2, Some(at)),
        (series(&[name(), b"\x12\x05\x09".to_vec()]), 1, Some(body)),
        (b"\x0a\xff".to_vec(), 1, Some(body)),
    ];
    for (middle, samples, what) in table {
        let heap = decode(&[good.as_slice(), middle, &good].concat());
        let problems: Vec<&str> = what.iter().copied().collect();
        let shown = middle[..middle.len().min(60)].escape_ascii();
        assert_eq!((heap.samples.len(), heap.problems()), (*samples, problems), "{shown}");
    }
    assert_eq!(decode(b"").malformed.len(), 0);
}

#[test]
fn a_series_that_the_wire_cannot_name_is_refused_before() {
    let empty = SeriesKey::with_labels("m", [("a", "")]);
    let named = SeriesKey::with_labels("m", [(NAME_LABEL, "n")]);
    for (key, why) in [
        (SeriesKey::new(""), "its name is empty"),
        (empty, "a label or its value is empty"),
        (named, "the label __name__ is that of the name"),
        (SeriesKey::new("x".repeat(40_000)), "its labels are longer than 32 KiB"),
    ] {
        let refused = RemoteWriteEncoder::new(&[key].into_iter().collect()).unwrap_err();
        assert_eq!(refused.why, why);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        names in proptest::collection::btree_map("[a-z0-9._/: -]{1,60}", proptest::collection::btree_map("[a-z.]{1,4}", "\\PC{1,9}", 0..8), 1..80),
        samples in any_samples(80, false), is_current in any::<bool>(),
    ) {
        let catalog: Catalog = names.iter().map(|(name, labels)| SeriesKey::with_labels(name, labels)).collect();
        let mut encoder = RemoteWriteEncoder::new(&catalog).unwrap();
        let (mut body, mut expected, mut unknown) = (Vec::new(), Vec::new(), 0);
        let mut buffer = BatchBuf::new();
        for &(id, at, value) in &samples {
            let at = if is_current { Timestamp(1_700_000_000_000_000_000 + at.0 % 1_000_000_000) } else { at };
            buffer.push(id, at, value);
            if id.index() < catalog.len() {
                expected.push((id, Timestamp(at.0.div_euclid(1_000_000).saturating_mul(1_000_000)), value));
            } else {
                unknown += 1;
            }
        }
        encoder.encode(&buffer.as_batch(), &mut body);
        prop_assert_eq!(encoder.skipped(), unknown);
        // The last millisecond before the first that fits is none.
        expected.retain(|(_, at, _)| at.0 != i64::MIN);
        let heap = decode(&body);
        prop_assert!(heap.malformed.len() <= 1, "{:?}", heap.problems());
        prop_assert_eq!(heap.named(), named(&catalog, &expected));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        decode(&bytes);
    }
}
