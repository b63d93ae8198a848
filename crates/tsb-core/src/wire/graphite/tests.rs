//! Golden lines, carbon's behaviour line by line, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf, Ids, Times};
use crate::series::{Catalog, SeriesId};
use crate::time::Timestamp;
use crate::wire::testing::{Heap, any_samples, clock, feed, named};
use crate::wire::{Decoder, Encoder, Fatal};

fn catalog(names: &[&str]) -> Catalog {
    names.iter().map(|name| series_key(name)).collect()
}

fn encode(catalog: &Catalog, batch: &Batch<'_>) -> (String, u64) {
    let mut encoder = GraphiteEncoder::new(catalog).unwrap();
    let mut out = Vec::new();
    encoder.encode(batch, &mut out);
    (String::from_utf8(out).unwrap(), encoder.skipped())
}

/// Decodes in one piece.
fn decode(payload: &[u8]) -> (Heap, Result<(), Fatal>) {
    let mut heap = Heap::default();
    let result = feed(
        &mut GraphiteDecoder::new(clock()),
        payload,
        std::iter::empty(),
        &mut heap,
    );
    (heap, result)
}

#[test]
fn the_golden_line_goes_both_ways() {
    let golden = include_str!("../../../fixtures/wire/graphite.txt");
    let (heap, result) = decode(golden.as_bytes());
    assert_eq!((result, heap.problems()), (Ok(()), vec![]));
    let mut again = String::new();
    for (id, at, value) in &heap.samples {
        again += &encode(&heap.catalog, &Batch::tick(*id, *at, &[*value])).0;
    }
    assert_eq!(again, golden);
    assert_eq!(
        heap.named()[0],
        (
            "cloud.zones.cpu.usage".to_owned(),
            1_404_770_400_000_000_000,
            42.0_f64.to_bits()
        )
    );
    let tagged = heap.catalog.key(SeriesId(1)).unwrap();
    assert_eq!(
        tagged.to_string(),
        "cloud.zones.cpu.usage{zone=f242021c-c5eb-4c53-a609-64bee4}"
    );
}

/// Value and seconds, or what is said and whether the connection lives.
type Expected = Result<(f64, i64), (&'static str, bool)>;

/// One line after a good one: what it gives, what is said of it, whether the connection
/// lives (a good line follows).
#[test]
fn malformed_lines_are_treated_as_carbon_treats_them() {
    const WORDS: &str = "a line is not three words: name, value, timestamp";
    const VALUE: &str = "a value is not a number";
    const TIME: &str = "a timestamp is not a number";
    const NAN: &str = "a value is NaN, which carbon drops";
    const FATAL: &str = "a timestamp is NaN or infinite";
    const UTF8: &str = "a line is not UTF-8";
    let ok = |value: f64, seconds: i64| Ok((value, seconds));
    let table: &[(&[u8], Expected)] = &[
        // Exactly three words, between any white space.
        (b"m 1 60", ok(1.0, 60)),
        (b"  m\t1   60  ", ok(1.0, 60)),
        (b"m 1 60\r", ok(1.0, 60)),
        (b"m\x0b1\x0c60\x1f", ok(1.0, 60)),
        ("m\u{a0}1\u{2003}60".as_bytes(), ok(1.0, 60)),
        (b"", Err((WORDS, true))),
        (b"\r", Err((WORDS, true))),
        (b"m 1", Err((WORDS, true))),
        (b"m 1 60 7", Err((WORDS, true))),
        (b"m m 1 60", Err((WORDS, true))),
        // Numbers as Python's float() takes them.
        (b"m +5 60", ok(5.0, 60)),
        (b"m -5 60", ok(-5.0, 60)),
        (b"m 1e3 60", ok(1000.0, 60)),
        (b"m 1E-3 60", ok(0.001, 60)),
        (b"m .5 60", ok(0.5, 60)),
        (b"m 5. 60", ok(5.0, 60)),
        (b"m 1_0 60", ok(10.0, 60)),
        (b"m 1_0.2_5e0_1 60", ok(102.5, 60)),
        (b"m inf 60", ok(f64::INFINITY, 60)),
        (b"m -Infinity 60", ok(f64::NEG_INFINITY, 60)),
        (b"m 1__0 60", Err((VALUE, true))),
        (b"m _1 60", Err((VALUE, true))),
        (b"m 1_ 60", Err((VALUE, true))),
        (b"m 1_.5 60", Err((VALUE, true))),
        (b"m 1e_5 60", Err((VALUE, true))),
        (b"m 0x10 60", Err((VALUE, true))),
        (b"m one 60", Err((VALUE, true))),
        (b"m 1, 60", Err((VALUE, true))),
        (b"m - 60", Err((VALUE, true))),
        (b"m 1e 60", Err((VALUE, true))),
        (b"m 1 noon", Err((TIME, true))),
        (b"m one noon", Err((TIME, true))),
        // NaN is dropped before the timestamp is looked at.
        (b"m nan 60", Err((NAN, true))),
        (b"m -NaN 60", Err((NAN, true))),
        (b"m nan nan", Err((NAN, true))),
        // Timestamps are cut to whole seconds; -1 is now, and so is all that is cut to it.
        (b"m 1 60.9", ok(1.0, 60)),
        (b"m 1 1.5e3", ok(1.0, 1500)),
        (b"m 1 -60", ok(1.0, -60)),
        (b"m 1 -0.5", ok(1.0, 0)),
        (b"m 1 -1", ok(1.0, 1000)),
        (b"m 1 -1.9", ok(1.0, 1000)),
        (b"m 1 -2", ok(1.0, -2)),
        (b"m 1 0000000060", ok(1.0, 60)),
        (b"m 1 9223372036", ok(1.0, 9_223_372_036)),
        (b"m 1 9223372037", Err(("a timestamp is out of range", true))),
        (b"m 1 1e300", Err(("a timestamp is out of range", true))),
        // What carbon does not catch.
        (b"m 1 nan", Err((FATAL, false))),
        (b"m 1 inf", Err((FATAL, false))),
        (b"m 1 -inf", Err((FATAL, false))),
        (b"m\xff 1 60", Err((UTF8, false))),
        (b"\xff", Err((UTF8, false))),
    ];
    for (line, expected) in table {
        check_line(line, expected);
    }
}

fn check_line(line: &[u8], expected: &Expected) {
    let payload = [b"good 1 60\n".as_slice(), line, b"\ngood 2 61\n"].concat();
    let (heap, result) = decode(&payload);
    let shown = String::from_utf8_lossy(line);
    let first = ("good".to_owned(), 60_000_000_000, 1.0_f64.to_bits());
    let last = ("good".to_owned(), 61_000_000_000, 2.0_f64.to_bits());
    match expected {
        Ok((value, seconds)) => {
            let sample = ("m".to_owned(), seconds * 1_000_000_000, value.to_bits());
            assert_eq!(heap.named(), [first, sample, last], "{shown}");
            assert_eq!((heap.problems(), result), (vec![], Ok(())), "{shown}");
        }
        Err((what, lives)) => {
            assert_eq!(heap.malformed, [(*what, line.to_vec())], "{shown}");
            if *lives {
                assert_eq!((heap.named(), result), (vec![first, last], Ok(())), "{shown}");
            } else {
                assert_eq!(
                    (heap.named(), result.unwrap_err().what),
                    (vec![first], *what),
                    "{shown}"
                );
            }
        }
    }
}

#[test]
fn a_line_of_16384_bytes_passes_and_a_longer_one_closes() {
    let longest = format!("{} 1 60\n", "x".repeat(MAX_LINE - 5));
    assert_eq!(longest.len(), MAX_LINE + 1);
    let (heap, result) = decode(longest.as_bytes());
    assert_eq!((heap.samples.len(), result), (1, Ok(())));
    let (heap, result) = decode(format!("good 1 60\nx{longest}").as_bytes());
    assert_eq!(heap.samples.len(), 1);
    assert_eq!(result.unwrap_err().what, "a line is longer than 16384 bytes");
    // Also before its end has come.
    let (heap, result) = decode(&vec![b'x'; MAX_LINE + 1]);
    assert_eq!(heap.problems(), [result.unwrap_err().what]);
}

#[test]
fn a_last_line_without_an_end_is_named() {
    let (heap, result) = decode(b"m 1 60\nm 2 6");
    assert_eq!((heap.samples.len(), result), (1, Ok(())));
    assert_eq!(heap.malformed, [("the last line has no end", b"m 2 6".to_vec())]);
}

#[test]
fn a_timestamp_that_was_not_seen_yet_is_not_expected() {
    let mut line = b"mmmmmmmmmmmmmmmm 1".to_vec();
    line.extend([0; 16]);
    line.extend(b"\n");
    let (heap, _) = decode(&line);
    assert_eq!((heap.samples.len(), heap.malformed.len()), (0, 1));
}

#[test]
fn keys_and_names_are_told_apart() {
    let refused = [
        SeriesKey::new(""),
        SeriesKey::new("a b"),
        SeriesKey::new("a\nb"),
        SeriesKey::new("a\u{85}b"),
        SeriesKey::new("a\u{2028}b"),
        SeriesKey::new("a\0b"),
        SeriesKey::new("a;b"),
        SeriesKey::new("~a"),
        SeriesKey::new("x".repeat(MAX_NAME + 1)),
        SeriesKey::with_labels("a", [("", "v")]),
        SeriesKey::with_labels("a", [("l", "")]),
        SeriesKey::with_labels("a", [("l", "~v")]),
        SeriesKey::with_labels("a", [("l", "v;w")]),
        SeriesKey::with_labels("a", [("l=m", "v")]),
        SeriesKey::with_labels("a", [("l!", "v")]),
        SeriesKey::with_labels("a", [("name", "v")]),
        SeriesKey::with_labels("a", [("l", "v w")]),
        SeriesKey::with_labels("a{b", [("l", "\"}")]),
    ];
    for key in refused {
        let error = GraphiteEncoder::new(&[key.clone()].into_iter().collect()).unwrap_err();
        assert!(
            error.to_string().starts_with("graphite cannot carry the series"),
            "{error}"
        );
    }
    // As carbon reads them.
    let table = [
        ("a.b", "a.b"),
        ("a;l=v", "a{l=v}"),
        ("a;m=w;l=v=w", "a{l=v=w,m=w}"),
        ("a;l=1;l=2", "a{l=2}"),
        ("a;name=b;l=v", "a{l=v}"),
        ("~~a;l=v", "a{l=v}"),
        ("~", "~"),
        ("a;", "a;"),
        ("a;l", "a;l"),
        (";l=v", ";l=v"),
        ("a;l=~v", "a;l=~v"),
    ];
    for (wire, key) in table {
        assert_eq!(series_key(wire).to_string(), key);
    }
}

#[test]
fn samples_that_the_wire_cannot_carry_are_skipped_and_counted() {
    let catalog = catalog(&["a", "b"]);
    let at = Timestamp::from_secs(60);
    let tick = Batch::tick(SeriesId(0), at, &[f64::NAN, f64::INFINITY, 3.0]);
    assert_eq!(encode(&catalog, &tick), ("b inf 60\n".to_owned(), 2));
    let now = Batch::tick(SeriesId(0), Timestamp(-1), &[1.0, 2.0]);
    assert_eq!(encode(&catalog, &now), (String::new(), 2));
    let ids = [SeriesId(7), SeriesId(1)];
    let far = Batch::new(Ids::Each(&ids), Times::One(at), &[1.0, 2.0]);
    assert_eq!(encode(&catalog, &far), ("b 2 60\n".to_owned(), 1));
    let far = Batch::tick(SeriesId(9), at, &[1.0, 2.0]);
    assert_eq!(encode(&catalog, &far), (String::new(), 2));
}

#[test]
fn a_refused_name_is_asked_about_once_and_its_samples_are_counted() {
    let mut heap = Heap {
        limit: 1,
        ..Heap::default()
    };
    let payload = "a 1 60\nb 2 60\na 3 61\nb 4 61\nb 5 62\n".repeat(40);
    let result = feed(
        &mut GraphiteDecoder::new(clock()),
        payload.as_bytes(),
        std::iter::empty(),
        &mut heap,
    );
    assert_eq!(
        (result, heap.samples.len(), heap.refused, heap.asked),
        (Ok(()), 80, 120, 2)
    );
}

#[test]
fn a_tick_comes_back_as_ticks() {
    let names: Vec<String> = (0..10_000)
        .map(|index| format!("kstat.host{:04}.cpu.{}.nsec", index / 54, index % 54))
        .collect();
    let catalog: Catalog = names.iter().map(SeriesKey::new).collect();
    let values: Vec<f64> = (0..10_000).map(|index| f64::from(index * 7_919)).collect();
    let mut encoder = GraphiteEncoder::new(&catalog).unwrap();
    let mut decoder = GraphiteDecoder::new(clock());
    let mut heap = Heap::default();
    for second in 0..3 {
        heap.shapes.clear();
        let mut out = Vec::new();
        encoder.encode(
            &Batch::tick(SeriesId(0), Timestamp::from_secs(second), &values),
            &mut out,
        );
        assert_eq!(decoder.decode(&out, &mut heap), Ok(out.len()));
        assert_eq!(heap.shapes, [("tick", 4096), ("tick", 4096), ("tick", 1808)]);
    }
    assert_eq!((heap.samples.len(), heap.asked), (30_000, 10_000));
}

/// Names as short as one byte and longer than a cell, a window, a hash block.
fn any_names() -> impl Strategy<Value = Vec<String>> {
    let length = prop_oneof![4 => 1..8_usize, 8 => 8..40_usize, 2 => 40..80_usize, 1 => 150..400_usize];
    proptest::collection::vec((length, "[a-z0-9._-]{8}"), 1..120).prop_map(|parts| {
        let name = |(index, (length, text)): (usize, &(usize, String))| {
            let mut name = format!("{index:x}{text}").repeat(length / 8 + 1);
            name.truncate((*length).max(3));
            if index % 7 == 0 {
                format!("n{name};host=h{index};zone={text}")
            } else {
                name
            }
        };
        parts.iter().enumerate().map(name).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        names in any_names(), samples in any_samples(120, true), pieces in proptest::collection::vec(1..700_usize, 0..60),
    ) {
        let catalog: Catalog = names.iter().map(|name| series_key(name)).collect();
        let known = catalog.len() as u32;
        let mut encoder = GraphiteEncoder::new(&catalog).unwrap();
        let (mut payload, mut expected, mut nan) = (Vec::new(), Vec::new(), 0);
        // Three times, so that names are known and orders repeat.
        for _ in 0..3 {
            let mut buffer = BatchBuf::new();
            for &(id, at, value) in samples.iter().filter(|(id, ..)| id.0 < known) {
                buffer.push(id, at, value);
                if value.is_nan() { nan += 1 } else { expected.push((id, at, value)) }
            }
            encoder.encode(&buffer.as_batch(), &mut payload);
        }
        prop_assert_eq!(encoder.skipped(), nan);
        let mut heap = Heap::default();
        let result = feed(&mut GraphiteDecoder::new(clock()), &payload, pieces.into_iter(), &mut heap);
        prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
        prop_assert_eq!(heap.named(), named(&catalog, &expected));
    }

    #[test]
    fn a_key_survives_the_wire(
        name in "[ -~\u{e9}]{0,12}", labels in proptest::collection::btree_map("[a-z!=;^~ ]{0,5}", "[a-z~;={}\" ]{0,5}", 0..3),
    ) {
        let key = SeriesKey::with_labels(name, labels);
        if let Ok(wire) = wire_name(&key) {
            prop_assert_eq!(series_key(&wire), key);
        }
    }

    #[test]
    fn a_shuffled_fleet_is_decoded(seed in any::<u64>(), rounds in 1..5_usize) {
        let names: Vec<String> = (0..700).map(|index| format!("kstat.host{index:04}.net")).collect();
        let catalog: Catalog = names.iter().map(SeriesKey::new).collect();
        let mut encoder = GraphiteEncoder::new(&catalog).unwrap();
        let mut ids: Vec<SeriesId> = (0..700).map(SeriesId).collect();
        let (mut payload, mut expected) = (Vec::new(), Vec::new());
        let mut state = seed | 1;
        for round in 0..rounds {
            for index in (1..ids.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ids.swap(index, (state >> 33) as usize % (index + 1));
            }
            let values: Vec<f64> = ids.iter().map(|id| f64::from(id.0) / 4.0).collect();
            let at = Timestamp::from_secs(round as i64);
            let batch = Batch::new(Ids::Each(&ids), Times::One(at), &values);
            encoder.encode(&batch, &mut payload);
            expected.extend(batch.iter());
        }
        let mut heap = Heap::default();
        let result = feed(&mut GraphiteDecoder::new(clock()), &payload, std::iter::repeat(5_000), &mut heap);
        prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
        prop_assert_eq!(heap.named(), named(&catalog, &expected));
        prop_assert_eq!(heap.asked, 700);
    }
}
