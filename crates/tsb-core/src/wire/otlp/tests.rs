//! The golden body, bad ones, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::wire::protobuf::push_bytes;
use crate::wire::testing::{Heap, any_samples, clock, hex, named};
use crate::wire::{Decoder, Encoder};

fn decode(body: &[u8]) -> Heap {
    let mut heap = Heap::default();
    let mut decoder = OtlpDecoder::new(&clock());
    assert_eq!(decoder.decode(body, &mut heap), Ok(body.len()));
    assert_eq!(
        decoder.is_broken(),
        heap.problems().last() == Some(&"a body is not an export of metrics in protobuf")
    );
    heap
}

fn encode(catalog: &Catalog, batch: &Batch<'_>) -> (Vec<u8>, u64) {
    let (mut encoder, mut out) = (OtlpEncoder::new(catalog).unwrap(), Vec::new());
    encoder.encode(batch, &mut out);
    (out, encoder.skipped())
}

/// A field of bytes whose content is fields.
fn field(number: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    push_bytes(number, &parts.concat(), &mut out);
    out
}

fn fixed(number: u8, bits: u64) -> Vec<u8> {
    [&[number << 3 | 1][..], &bits.to_le_bytes()].concat()
}

fn attribute(number: u8, name: &str, value: &[u8]) -> Vec<u8> {
    field(number, &[&field(1, &[name.as_bytes()]), &field(2, &[value])])
}

/// A metric `m` of this kind with one point.
fn metric(kind: u8, point: &[Vec<u8>]) -> Vec<u8> {
    field(2, &[&field(1, &[b"m"]), &field(kind, &[&field(1, &[&point.concat()])])])
}

fn body(metrics: &[&[u8]]) -> Vec<u8> {
    field(1, &[&field(2, metrics)])
}

const AT: u64 = 1_404_770_400_123_456_789;

fn point() -> Vec<Vec<u8>> {
    vec![fixed(3, AT), fixed(4, 2.5_f64.to_bits())]
}

/// What the protobuf library for Python makes of a gauge with a label and one without.
#[test]
fn the_golden_body_goes_both_ways() {
    let golden = hex(include_str!("../../../fixtures/wire/otlp.hex"));
    let heap = decode(&golden);
    assert!(heap.malformed.is_empty(), "{:?}", heap.malformed);
    let expected = [
        ("cpu.usage{host.name=a}".to_owned(), AT as i64, 42.5_f64.to_bits()),
        ("up".to_owned(), AT as i64, 1_f64.to_bits()),
    ];
    assert_eq!(heap.named(), expected);
    let mut buffer = BatchBuf::new();
    heap.samples
        .iter()
        .for_each(|(id, at, value)| buffer.push(*id, *at, *value));
    assert_eq!(encode(&heap.catalog, &buffer.as_batch()), (golden, 0));
}

#[test]
fn a_series_is_named_by_resource_scope_metric_and_point() {
    let resource = field(
        1,
        &[&attribute(1, "job", b"\x0a\x01r"), &attribute(1, "n", b"\x18\x07")],
    );
    let scope = field(1, &[&field(1, &[b"lib"])]);
    let mut parts = point();
    parts.extend([
        attribute(7, "job", b"\x0a\x01p"),
        attribute(7, "ok", b"\x10\x01"),
        attribute(7, "empty", b""),
        attribute(7, "half", &fixed(4, 0.5_f64.to_bits())),
    ]);
    let metrics = field(2, &[&metric(7, &parts), &scope]);
    // The resource stands behind its metrics.
    let heap = decode(&field(1, &[&metrics, &resource]));
    let name = "m{empty=,half=0.5,job=p,n=7,ok=true,otel.scope.name=lib}";
    assert_eq!(heap.named(), [(name.to_owned(), AT as i64, 2.5_f64.to_bits())]);
}

#[test]
fn a_point_that_is_not_carried_is_left_out_and_the_others_are_accepted() {
    let form = "a body is not an export of metrics in protobuf";
    let unheld = "an integer that no f64 holds is not supported here";
    let list = "an attribute that is a list or bytes is not supported here";
    let with = |more: Vec<u8>| [point(), vec![more]].concat();
    // The second metric of three, how many samples are taken, and what is said.
    let table: &[(Vec<u8>, usize, Option<&str>)] = &[
        (metric(5, &point()), 3, None),
        (metric(7, &point()), 3, None),
        (metric(7, &[fixed(3, AT), fixed(6, 7)]), 3, None),
        (metric(7, &[fixed(3, AT), b"\x40\x01".to_vec()]), 3, None),
        (metric(5, &[]), 2, Some("a data point has no value")),
        (metric(5, &point()[1..]), 2, Some("a data point has no time")),
        (
            metric(5, &[fixed(3, 1 << 63), fixed(4, 0)]),
            2,
            Some("a time is behind the year 2262"),
        ),
        (metric(5, &[fixed(3, AT), fixed(6, (1 << 53) + 1)]), 2, Some(unheld)),
        (metric(9, &point()), 2, Some("a histogram is not supported here")),
        (metric(10, &point()), 2, Some("a histogram is not supported here")),
        (metric(11, &point()), 2, Some("a summary is not supported here")),
        (metric(5, &with(attribute(7, "a", b"\x2a\0"))), 2, Some(list)),
        (
            metric(5, &with(attribute(7, "", b"\x0a\x01x"))),
            2,
            Some("an attribute has no name"),
        ),
        (
            metric(5, &with(attribute(7, "a", b"\x0a\x01\xff"))),
            2,
            Some("a name is not UTF-8"),
        ),
        (
            metric(5, &with(attribute(7, &"x".repeat(40_000), b""))),
            2,
            Some("a name with its attributes is longer than 32 KiB"),
        ),
        (
            field(2, &[&field(5, &[&field(1, &[&point().concat()])])]),
            2,
            Some("a metric has no name"),
        ),
        (metric(5, &[b"\x0b".to_vec()]), 1, Some(form)),
    ];
    let good = metric(5, &point());
    for (middle, samples, what) in table {
        let heap = decode(&body(&[&good, middle, &good]));
        let problems: Vec<&str> = what.iter().copied().collect();
        let shown = middle[..middle.len().min(60)].escape_ascii();
        assert_eq!((heap.samples.len(), heap.problems()), (*samples, problems), "{shown}");
    }
    assert_eq!(decode(b"").malformed.len(), 0);
    let none = decode(&body(&[&metric(5, &[fixed(3, AT), b"\x40\x01".to_vec()])]));
    assert_eq!(none.samples[0].2.to_bits(), NO_VALUE);
}

#[test]
fn samples_that_the_wire_cannot_carry_are_skipped_and_counted() {
    let catalog: Catalog = ["a", "b"].map(SeriesKey::new).into_iter().collect();
    let (body, skipped) = encode(&catalog, &Batch::tick(SeriesId(0), Timestamp(5), &[1.0, 1.0, 2.0]));
    assert_eq!((decode(&body).samples.len(), skipped), (2, 1));
    let (body, skipped) = encode(&catalog, &Batch::tick(SeriesId(0), Timestamp(0), &[1.0]));
    assert_eq!((body.len(), skipped), (0, 1));
    for (key, why) in [
        (SeriesKey::new(""), "its name is empty"),
        (SeriesKey::with_labels("m", [("", "a")]), "a label is empty"),
        (SeriesKey::new("x".repeat(40_000)), "it is longer than 32 KiB"),
    ] {
        assert_eq!(OtlpEncoder::new(&[key].into_iter().collect()).unwrap_err().why, why);
    }
}

#[test]
fn an_answer_says_what_was_rejected() {
    let some = Partial {
        rejected: 300,
        message: "300: series_limit".to_owned(),
    };
    assert_eq!(Partial::read(&some.response()), Some(some));
    assert_eq!(Partial::default().response(), b"");
    assert_eq!(Partial::read(b""), Some(Partial::default()));
    assert_eq!(Partial::read(b"\x0a\x05"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        names in proptest::collection::btree_map("\\PC{1,60}", proptest::collection::btree_map("\\PC{1,4}", "\\PC{0,9}", 0..8), 1..80),
        samples in any_samples(80, true),
    ) {
        let catalog: Catalog = names.iter().map(|(name, labels)| SeriesKey::with_labels(name, labels)).collect();
        let (mut buffer, mut expected) = (BatchBuf::new(), Vec::new());
        for &(id, at, value) in &samples {
            buffer.push(id, at, value);
            if id.index() < catalog.len() && at.0 > 0 {
                expected.push((id, at, value));
            }
        }
        let (body, skipped) = encode(&catalog, &buffer.as_batch());
        prop_assert_eq!(skipped as usize, samples.len() - expected.len());
        let heap = decode(&body);
        prop_assert_eq!(heap.problems(), Vec::<&str>::new());
        prop_assert_eq!(heap.named(), named(&catalog, &expected));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        decode(&bytes);
    }
}
