//! The vector of the specification, hostile pickles, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::wire::graphite::series_key;
use crate::wire::testing::{Heap, any_samples, clock, feed, hex, named};
use crate::wire::{Encoder, Fatal};

/// The pickles of the fixture, each under what CPython made it of.
fn vectors() -> Vec<(&'static str, Vec<u8>)> {
    let text = include_str!("../../../fixtures/wire/pickle.hex");
    let parts = text.split("# ").skip(1);
    parts
        .map(|part| part.split_once('\n').unwrap())
        .map(|(name, digits)| (name, hex(digits)))
        .collect()
}

fn decode(payload: &[u8]) -> (Heap, Result<(), Fatal>) {
    let mut heap = Heap::default();
    let result = feed(&mut PickleDecoder::new(clock()), payload, std::iter::empty(), &mut heap);
    (heap, result)
}

fn frame(pickle: &[u8]) -> Vec<u8> {
    [&(pickle.len() as u32).to_be_bytes(), pickle].concat()
}

#[test]
fn the_vectors_go_both_ways() {
    for (name, payload) in vectors() {
        let (heap, result) = decode(&payload);
        assert_eq!((heap.problems(), result), (vec![], Ok(())), "{name}");
        if name.ends_with("protocol 2") {
            let mut buffer = BatchBuf::new();
            heap.samples
                .iter()
                .for_each(|(id, at, value)| buffer.push(*id, *at, *value));
            let mut out = Vec::new();
            PickleEncoder::new(&heap.catalog)
                .unwrap()
                .encode(&buffer.as_batch(), &mut out);
            assert_eq!(out, payload, "{name}");
        }
        let first = ("a.b".to_owned(), 1_404_770_400_000_000_000, 42.0_f64.to_bits());
        assert_eq!(heap.named()[0], first, "{name}");
    }
    assert!(vectors().len() >= 6);
}

#[test]
fn bad_pickles_are_treated_as_carbon_treats_them() {
    const INVALID: &str = "invalid pickle";
    const SHAPE: &str = "an element is not (name, (timestamp, value))";
    // What stands in a list, and what is said of it.
    let element = |at: &[u8], value: &[u8]| [b"X\x01\0\0\0m".as_slice(), at, value, b"\x86\x86"].concat();
    let list = |element: Vec<u8>| [b"\x80\x02]".as_slice(), &element, b"a."].concat();
    let float = |value: f64| [b"G".as_slice(), &value.to_bits().to_be_bytes()].concat();
    let table: &[(Vec<u8>, Option<&str>)] = &[
        (list(element(b"K\x3c", b"K\x01")), None),
        (list(element(b"U\x0260", b"U\x03 1 ")), None),
        (list(element(&float(60.9), b"\x88")), None),
        (b"(l(X\x01\0\0\0mI60\nF1.0\n\x86ta.".to_vec(), None),
        (b"]".to_vec(), Some(INVALID)),
        (b"".to_vec(), Some(INVALID)),
        (b".".to_vec(), Some(INVALID)),
        // What could be called is not read.
        (b"cos\nsystem\n(S'true'\ntR.".to_vec(), Some(INVALID)),
        (b"\x80\x02c__builtin__\neval\n.".to_vec(), Some(INVALID)),
        (b"\x80\x09].".to_vec(), Some(INVALID)),
        (b"(]a.".to_vec(), Some(INVALID)),
        (b"]h\x05a.".to_vec(), Some(INVALID)),
        (b"]r\xff\xff\xff\xff.".to_vec(), Some(INVALID)),
        (b"]X\xff\xff\xff\xffm.".to_vec(), Some(INVALID)),
        (b"K\x01.".to_vec(), Some("a pickle is not a list")),
        (b"]K\x01a.".to_vec(), Some(SHAPE)),
        (b"]X\x01\0\0\0mK\x01\x86a.".to_vec(), Some(SHAPE)),
        (b"]X\x01\0\0\0mK\x01K\x02K\x03\x87\x86a.".to_vec(), Some(SHAPE)),
        (list(element(b"K\x3c", b"N")), Some("a value is not a number")),
        (list(element(b"K\x3c", b"U\x03one")), Some("a value is not a number")),
        (list(element(b"]", b"K\x01")), Some("a timestamp is not a number")),
        (
            list(element(b"K\x3c", &float(f64::NAN))),
            Some("a value is NaN, which carbon drops"),
        ),
        (
            list(element(&float(f64::NAN), b"K\x01")),
            Some("a timestamp or a name is out of range"),
        ),
        (
            list(element(&float(1e300), b"K\x01")),
            Some("a timestamp or a name is out of range"),
        ),
        (b"]K\x07K\x3cK\x01\x86\x86a.".to_vec(), Some("a name is not a text")),
        (b"]U\x01\xffK\x3cK\x01\x86\x86a.".to_vec(), Some("a name is not UTF-8")),
    ];
    let good = frame(&list(element(b"K\x3c", b"K\x02")));
    for (pickle, what) in table {
        let payload = [good.as_slice(), &frame(pickle), &good].concat();
        let (heap, result) = decode(&payload);
        assert_eq!(
            (heap.problems(), result),
            (what.iter().copied().collect(), Ok(())),
            "{pickle:?}"
        );
        assert_eq!(heap.samples.len(), 2 + usize::from(what.is_none()), "{pickle:?}");
        assert!(heap.samples.iter().all(|(_, at, _)| *at == Timestamp::from_secs(60)));
    }
    // A bad element costs itself only.
    let mixed = [b"](K\x01".as_slice(), &element(b"K\x3c", b"K\x05"), b"e."].concat();
    let (heap, _) = decode(&frame(&mixed));
    assert_eq!((heap.samples.len(), heap.problems()), (1, vec![SHAPE]));
    // -1 is now.
    let now = list(element(b"J\xff\xff\xff\xff", b"K\x01"));
    assert_eq!(decode(&frame(&now)).0.samples[0].1, Timestamp::from_secs(1_000));
}

#[test]
fn a_pickle_of_a_mebibyte_passes_and_a_longer_one_closes() {
    let padded = |length: usize| {
        let text = length - 7;
        let pickle = [
            b"X".as_slice(),
            &(text as u32).to_le_bytes(),
            &vec![b'x'; text],
            b"0].".as_slice(),
        ]
        .concat();
        frame(&pickle[..])
    };
    for pieces in [4_000, 65_536, 3_000_000] {
        let mut heap = Heap::default();
        let mut decoder = PickleDecoder::new(clock());
        let result = feed(
            &mut decoder,
            &padded(MAX_PICKLE - 1),
            std::iter::repeat(pieces),
            &mut heap,
        );
        assert_eq!((heap.problems(), result), (vec![], Ok(())));
        let result = feed(&mut decoder, &padded(MAX_PICKLE), std::iter::repeat(pieces), &mut heap);
        assert_eq!(result.unwrap_err().what, "a pickle is longer than 1048576 bytes");
    }
    let (heap, result) = decode(&[0, 0, 0, 9, b']']);
    assert_eq!((heap.problems(), result), (vec!["the last frame is cut short"], Ok(())));
}

#[test]
fn samples_that_the_wire_cannot_carry_are_skipped_and_counted() {
    let catalog: Catalog = ["a", "b"].iter().map(|name| SeriesKey::new(*name)).collect();
    let mut encoder = PickleEncoder::new(&catalog).unwrap();
    let mut out = Vec::new();
    encoder.encode(
        &Batch::tick(SeriesId(0), Timestamp::from_secs(60), &[f64::NAN, 1.0, 2.0]),
        &mut out,
    );
    encoder.encode(&Batch::tick(SeriesId(0), Timestamp(-1), &[1.0, 1.0]), &mut out);
    assert_eq!((encoder.skipped(), decode(&out).0.samples.len()), (4, 1));
    assert!(PickleEncoder::new(&[SeriesKey::new("a b")].into_iter().collect()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        names in proptest::collection::btree_set("[a-z0-9._-]{1,60}(;[a-z]=[a-z]{1,9})?", 1..700),
        samples in any_samples(700, true), pieces in proptest::collection::vec(1..7_000_usize, 0..60),
    ) {
        let catalog: Catalog = names.iter().map(|name| series_key(name)).collect();
        let known = catalog.len() as u32;
        let mut encoder = PickleEncoder::new(&catalog).unwrap();
        let (mut payload, mut expected, mut nan) = (Vec::new(), Vec::new(), 0);
        let mut buffer = BatchBuf::new();
        for _ in 0..2 {
            for &(id, at, value) in samples.iter().filter(|(id, ..)| id.0 < known) {
                buffer.push(id, at, value);
                if value.is_nan() { nan += 1 } else { expected.push((id, at, value)) }
            }
        }
        encoder.encode(&buffer.as_batch(), &mut payload);
        prop_assert_eq!(encoder.skipped(), nan);
        let mut heap = Heap::default();
        let result = feed(&mut PickleDecoder::new(clock()), &payload, pieces.into_iter(), &mut heap);
        prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
        prop_assert_eq!(heap.named(), named(&catalog, &expected));
    }
}
