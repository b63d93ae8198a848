//! Golden lines, InfluxDB's behaviour line by line, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf, Ids, Times};
use crate::series::{Catalog, SeriesId};
use crate::time::Timestamp;
use crate::wire::testing::{Heap, any_samples, clock, feed, named};
use crate::wire::{Decoder, Encoder, Fatal, MAX_RECORD};

fn encode(catalog: &Catalog, batch: &Batch<'_>) -> (String, u64) {
    let mut encoder = InfluxEncoder::new(catalog).unwrap();
    let mut out = Vec::new();
    encoder.encode(batch, &mut out);
    (String::from_utf8(out).unwrap(), encoder.skipped())
}

fn decode(payload: &[u8]) -> (Heap, Result<(), Fatal>) {
    let mut heap = Heap::default();
    let result = feed(&mut InfluxDecoder::new(clock()), payload, std::iter::empty(), &mut heap);
    (heap, result)
}

fn key(text: &str) -> SeriesKey {
    let (head, field) = text.split_once(' ').unwrap_or((text, DEFAULT_FIELD));
    series_key(head.as_bytes(), field.as_bytes()).unwrap()
}

/// `golden` lines, and what they mean: a key, nanoseconds, a value.
#[test]
fn the_golden_lines_go_both_ways() {
    let golden = include_str!("../../../fixtures/wire/influx.txt");
    let (heap, result) = decode(golden.as_bytes());
    assert_eq!((result, heap.problems()), (Ok(()), vec![]));
    let mut buffer = BatchBuf::new();
    heap.samples
        .iter()
        .for_each(|(id, at, value)| buffer.push(*id, *at, *value));
    assert_eq!(encode(&heap.catalog, &buffer.as_batch()), (golden.to_owned(), 0));
    let first = &heap.named()[0];
    let name = "cloud.zones.cpu.usage{zone=f242021c-c5eb-4c53-a609-64bee4}";
    assert_eq!(*first, (name.to_owned(), 1_404_770_400_000_000_000, 42.0_f64.to_bits()));
    // The line of the specification has an integer.
    let line = "cloud.zones.cpu.usage,zone=f242021c-c5eb-4c53-a609-64bee4 value=42i 1404770400000000000\n";
    assert_eq!(decode(line.as_bytes()).0.named()[0], *first);
}

const STRING: &str = "a string is not supported here";
const BOOLEAN: &str = "a boolean is not supported here";

/// Fields as (label `_field`, value) at a time, or what is said.
#[test]
#[expect(clippy::too_many_lines, reason = "a table, a row for each line")]
#[expect(clippy::type_complexity, reason = "a table, a row for each line")]
fn malformed_lines_are_treated_as_influxdb_treats_them() {
    let ok = |value: f64, at: i64| Ok((value, at));
    let now = 1_000_500_000_000;
    let table: &[(&str, Result<(f64, i64), &str>)] = &[
        ("m value=1 60", ok(1.0, 60)),
        ("m value=1", ok(1.0, now)),
        ("m value=1 ", ok(1.0, now)),
        (" \t m value=1 60", ok(1.0, 60)),
        ("m  value=1  60  ", ok(1.0, 60)),
        ("m value=1 -60", ok(1.0, -60)),
        ("m value=1 0000000060", ok(1.0, 60)),
        // Numbers.
        ("m value=1i 60", ok(1.0, 60)),
        ("m value=-1i 60", ok(-1.0, 60)),
        ("m value=9007199254740992i 60", ok(9_007_199_254_740_992.0, 60)),
        (
            "m value=9007199254740993i 60",
            Err("an integer beyond 2^53 is not supported here"),
        ),
        ("m value=9223372036854775808i 60", Err("unable to parse integer")),
        ("m value=1.5i 60", Err("invalid number")),
        ("m value=9i10 60", Err("invalid number")),
        ("m value=i 60", Err("invalid boolean")),
        ("m value=-i 60", Err("invalid number")),
        ("m value=1u 60", Err("invalid number")),
        ("m value=1.5 60", ok(1.5, 60)),
        ("m value=1. 60", ok(1.0, 60)),
        ("m value=.5 60", ok(0.5, 60)),
        ("m value=-.5 60", ok(-0.5, 60)),
        ("m value=1e3 60", ok(1000.0, 60)),
        ("m value=1E+3 60", ok(1000.0, 60)),
        ("m value=1e-3 60", ok(0.001, 60)),
        ("m value=1e-400 60", ok(0.0, 60)),
        ("m value=0.12345678901234567 60", ok(0.123_456_789_012_345_67, 60)),
        ("m value=. 60", Err("invalid number")),
        ("m value=- 60", Err("invalid number")),
        ("m value=+1 60", Err("invalid boolean")),
        ("m value=1.1.1 60", Err("invalid number")),
        ("m value=1-2 60", Err("invalid number")),
        ("m value=1_0 60", Err("invalid number")),
        ("m value=0x10 60", Err("invalid number")),
        ("m value=1e 60", Err("invalid float")),
        ("m value=1e5e5 60", Err("invalid float")),
        ("m value=1e400 60", Err("invalid float")),
        ("m value=nan 60", Err("invalid number")),
        ("m value=NaN 60", Err("invalid number")),
        ("m value=inf 60", Err("invalid boolean")),
        ("m value=-inf 60", Err("invalid number")),
        // What is not a number.
        ("m value=t 60", Err(BOOLEAN)),
        ("m value=FALSE 60", Err(BOOLEAN)),
        ("m value=tRUE 60", Err("invalid boolean")),
        ("m value=one 60", Err("invalid boolean")),
        ("m value=\"one\" 60", Err(STRING)),
        ("m value=\"a b,c=d\" 60", Err(STRING)),
        ("m value=\"a\nb\" 60", Err(STRING)),
        ("m value=\"a\\\"b\" 60", Err(STRING)),
        // Measurement, tags and fields.
        (",a=b value=1 60", Err("missing measurement")),
        ("m", Err("missing fields")),
        ("m,a=b", Err("missing fields")),
        ("m ", Err("invalid field format")),
        ("m,=b value=1 60", Err("missing tag key")),
        ("m, value=1 60", Err("missing tag key")),
        ("m,a value=1 60", Err("missing tag value")),
        ("m,a= value=1 60", Err("missing tag value")),
        ("m,a=,b=c value=1 60", Err("missing tag value")),
        ("m,a=b=c value=1 60", Err("invalid tag format")),
        ("m,a=b,a=c value=1 60", Err("duplicate tags")),
        ("m,b=1,a=2,b=3 value=1 60", Err("duplicate tags")),
        ("m =1 60", Err("missing field key")),
        ("m a=1,=2 60", Err("missing field key")),
        ("m value= 60", Err("missing field value")),
        ("m value=", Err("missing field value")),
        ("m value=,b=1 60", Err("missing field value")),
        ("m a 60", Err("invalid field format")),
        ("m a,b=1 60", Err("invalid field format")),
        ("m a=1,b 60", Err("invalid field format")),
        ("m a=1,,b=1 60", Err("invalid field format")),
        ("m a=1,b=x 60", Err("invalid boolean")),
        ("m a=1=2 60", Err("invalid number")),
        // Timestamps.
        ("m value=1 noon", Err("bad timestamp")),
        ("m value=1 60.5", Err("bad timestamp")),
        ("m value=1 60\r", Err("bad timestamp")),
        ("m value=1 -", Err("bad timestamp")),
        ("m value=1 99999999999999999999", Err("bad timestamp")),
        ("m value=1 9223372036854775807", Err("time outside range")),
        ("m value=1 -9223372036854775807", Err("time outside range")),
        ("m value=1 9223372036854775806", ok(1.0, i64::MAX - 1)),
        ("m value=1 -9223372036854775806", ok(1.0, i64::MIN + 2)),
        ("m value=1 60 7", Err("point is invalid")),
    ];
    for (line, expected) in table {
        check_line(line, *expected);
    }
}

fn check_line(line: &str, expected: Result<(f64, i64), &str>) {
    let payload = format!("good value=1 60\n{line}\ngood value=2 61\n");
    let (heap, result) = decode(payload.as_bytes());
    let mut samples = vec![("good".to_owned(), 60, 1.0_f64.to_bits())];
    match expected {
        Ok((value, at)) => samples.push(("m".to_owned(), at, value.to_bits())),
        Err(what) => assert_eq!(heap.malformed, [(what, line.as_bytes().to_vec())], "{line}"),
    }
    samples.push(("good".to_owned(), 61, 2.0_f64.to_bits()));
    assert_eq!((heap.named(), result), (samples, Ok(())), "{line}");
    assert_eq!(heap.malformed.len(), usize::from(expected.is_err()), "{line}");
    // On UDP the whole datagram goes with it, unless it is only a value that we do not take.
    let mut heap = Heap::default();
    let mut decoder = InfluxDecoder::of_datagrams(clock());
    assert_eq!(decoder.decode(payload.as_bytes(), &mut heap), Ok(payload.len()));
    let is_lost = expected.is_err_and(|what| !what.ends_with("not supported here"));
    let left = if is_lost { 0 } else { 2 + usize::from(expected.is_ok()) };
    assert_eq!(heap.samples.len(), left, "{line}");
    assert_eq!(heap.malformed.len(), usize::from(expected.is_err()), "{line}");
}

#[test]
fn a_line_may_be_empty_or_a_comment_and_the_last_of_a_body_needs_no_end() {
    let payload = b"\n \n#comment value=1 60\n  # too\nm value=1 60\nm value=2 61";
    let mut heap = Heap::default();
    let mut body = InfluxDecoder::of_bodies(clock());
    let result = feed(&mut body, payload, std::iter::empty(), &mut heap);
    assert_eq!((heap.samples.len(), heap.problems(), result), (2, vec![], Ok(())));
}

#[test]
fn the_beginning_of_a_line_at_the_end_of_a_stream_is_no_sample() {
    // A sender that is killed while it writes `m value=1234 61` may leave this.
    let (heap, result) = decode(b"m value=1 60\nm value=12");
    assert_eq!((heap.samples.len(), result), (1, Ok(())));
    assert_eq!(heap.problems(), ["the last line has no end"]);
}

#[test]
fn the_numbers_of_a_line_are_kept_beside_what_is_no_number() {
    let (heap, _) = decode(b"m a=1,b=\"x\",c=3,d=t,a=9 60\n");
    let values: Vec<f64> = heap.samples.iter().map(|(.., value)| *value).collect();
    assert_eq!(values, [1.0, 3.0, 9.0]);
    assert_eq!(heap.problems(), [STRING, BOOLEAN]);
    assert_eq!(heap.named()[0].0, heap.named()[2].0);
    let (heap, _) = decode(b"m,_field=x a=1 60\nm\xff a=1 60\n");
    assert_eq!(
        heap.problems(),
        ["a tag has the reserved name _field", "a name is not UTF-8"]
    );
}

#[test]
fn a_line_of_64_kib_closes() {
    let long = vec![b'x'; MAX_RECORD];
    let (heap, result) = decode(&[b"m value=1 60\n", long.as_slice()].concat());
    assert_eq!(
        (heap.samples.len(), heap.problems()),
        (1, vec![result.unwrap_err().what])
    );
    let ended = [long.as_slice(), b" value=1 60\n"].concat();
    assert!(decode(&ended).1.is_err());
    let key = format!("{} value=1 60\n", "x".repeat(65_500));
    assert_eq!(
        (decode(key.as_bytes()).0.samples.len(), decode(key.as_bytes()).1),
        (1, Ok(()))
    );
}

#[test]
fn keys_and_names_are_told_apart() {
    let refused = [
        SeriesKey::new(""),
        SeriesKey::new("#a"),
        SeriesKey::new("a\\b"),
        SeriesKey::new("a\nb"),
        SeriesKey::new("a\tb"),
        SeriesKey::new("x".repeat(MAX_NAME)),
        SeriesKey::with_labels("a", [("", "v")]),
        SeriesKey::with_labels("a", [("l", "")]),
        SeriesKey::with_labels("a", [("l", "v\\")]),
        SeriesKey::with_labels("a", [("time", "v")]),
        SeriesKey::with_labels("a", [(FIELD_LABEL, "value")]),
        SeriesKey::with_labels("a", [(FIELD_LABEL, "time")]),
    ];
    for key in refused {
        let error = InfluxEncoder::new(&[key.clone()].into_iter().collect()).unwrap_err();
        assert!(
            error.to_string().starts_with("influx cannot carry the series"),
            "{error}"
        );
    }
    let table = [
        ("a", "a"),
        ("a,l=v", "a{l=v}"),
        ("a,m=w,l=v f", "a{_field=f,l=v,m=w}"),
        ("a\\ b\\,c", "a b,c"),
        ("a=b", "a=b"),
        ("a\\=b", "a\\=b"),
        ("a,l\\=\\ =v\\,w f\\=\\\"", "a{_field=f=\",l= =v,w}"),
    ];
    for (wire, text) in table {
        let key = match wire.rsplit_once(" f") {
            Some((head, field)) => series_key(head.as_bytes(), format!("f{field}").as_bytes()).unwrap(),
            None => series_key(wire.as_bytes(), DEFAULT_FIELD.as_bytes()).unwrap(),
        };
        assert_eq!(key.to_string(), text);
    }
}

#[test]
fn series_that_differ_in_their_field_share_a_line() {
    let catalog: Catalog = ["a,h=1 x", "a,h=1 y", "a,h=1 z", "a,h=2 x", "a,h=2 y"]
        .map(key)
        .into_iter()
        .collect();
    let at = Timestamp(60);
    let tick = Batch::tick(SeriesId(0), at, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let lines = "a,h=1 x=1,y=2,z=3 60\na,h=2 x=4,y=5 60\n";
    assert_eq!(encode(&catalog, &tick), (lines.to_owned(), 0));
    let tick = Batch::tick(SeriesId(1), at, &[2.0, f64::NAN, 4.0, f64::INFINITY, 5.0]);
    assert_eq!(encode(&catalog, &tick), ("a,h=1 y=2 60\na,h=2 x=4 60\n".to_owned(), 3));
    let ids = [0, 1, 0, 2, 3].map(SeriesId);
    let any = Batch::new(Ids::Each(&ids), Times::One(at), &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let lines = "a,h=1 x=1,y=2 60\na,h=1 x=3 60\na,h=1 z=4 60\na,h=2 x=5 60\n";
    assert_eq!(encode(&catalog, &any), (lines.to_owned(), 0));
    let times = [60, 60, 61].map(Timestamp);
    let timed = Batch::new(Ids::Range(SeriesId(0)), Times::Each(&times), &[f64::NAN, 2.0, 3.0]);
    assert_eq!(encode(&catalog, &timed), ("a,h=1 y=2 60\na,h=1 z=3 61\n".to_owned(), 1));
    let last = Batch::tick(SeriesId(4), Timestamp(i64::MAX), &[1.0]);
    assert_eq!(encode(&catalog, &last), (String::new(), 1));
}

#[test]
fn a_tick_comes_back_as_ticks_with_one_field_or_many() {
    for fields in [1, 3, 10, 64, 100] {
        let series = |index: usize| {
            let line = index / fields;
            let labels = [
                ("host", format!("h{line:04}")),
                (FIELD_LABEL, format!("field{}", index % fields)),
            ];
            SeriesKey::with_labels("kstat", labels)
        };
        let catalog: Catalog = (0..10_000).map(series).collect();
        let mut encoder = InfluxEncoder::new(&catalog).unwrap();
        let mut decoder = InfluxDecoder::new(clock());
        let mut heap = Heap::default();
        for second in 0..3 {
            heap.shapes.clear();
            heap.samples.clear();
            let values: Vec<f64> = (0..10_000).map(|index| f64::from(index * 7_919 + second)).collect();
            let at = Timestamp::from_secs(1_700_000_000 + i64::from(second));
            let tick = Batch::tick(SeriesId(0), at, &values);
            let mut out = Vec::new();
            encoder.encode(&tick, &mut out);
            assert_eq!(decoder.decode(&out, &mut heap), Ok(out.len()));
            assert!(heap.samples.iter().copied().eq(tick.iter()), "{fields} fields");
            assert!(heap.shapes.iter().all(|(shape, _)| *shape == "tick"));
        }
        assert_eq!((heap.asked, encoder.skipped()), (10_000, 0));
    }
}

#[test]
fn a_field_belongs_to_the_head_of_its_own_line() {
    // The field y of h=0 is met right behind h=8, which has none yet.
    let payload = b"a,h=0 x=0 60\na,h=8 x=0 60\na,h=0 x=2,y=2 62\na,h=8 x=2,y=3 62\n";
    let (heap, _) = decode(payload);
    let last = heap.named().pop();
    assert_eq!(last, Some(("a{_field=y,h=8}".to_owned(), 62, 3.0_f64.to_bits())));
}

#[test]
fn a_refused_name_is_asked_about_once_and_its_samples_are_counted() {
    let mut heap = Heap {
        limit: 2,
        ..Heap::default()
    };
    let payload = "a x=1,y=2,z=3 60\nb x=1,y=2 60\n".repeat(40);
    let result = feed(
        &mut InfluxDecoder::new(clock()),
        payload.as_bytes(),
        std::iter::empty(),
        &mut heap,
    );
    assert_eq!(
        (result, heap.samples.len(), heap.refused, heap.asked),
        (Ok(()), 80, 120, 5)
    );
}

/// Series in groups of up to `fields` that can share a line, names of all lengths.
fn any_catalog() -> impl Strategy<Value = Catalog> {
    let text = "[a-z0-9,= \"._-]{1,12}";
    let group = (
        text,
        proptest::collection::btree_map("[a-z, =]{1,8}", text, 0..3),
        1..90_usize,
        0..40_usize,
    );
    proptest::collection::vec(group, 1..12).prop_map(|groups| {
        let mut catalog = Catalog::new();
        for (index, (name, labels, fields, length)) in groups.into_iter().enumerate() {
            for field in 0..fields {
                let mut labels = labels.clone();
                if field > 0 {
                    labels.insert(FIELD_LABEL.to_owned(), format!("{field}{}", "f".repeat(length)));
                }
                catalog.intern(SeriesKey::with_labels(format!("n{index}{name}"), labels));
            }
        }
        catalog
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        catalog in any_catalog(), samples in any_samples(300, false), pieces in proptest::collection::vec(1..700_usize, 0..60),
    ) {
        let known = catalog.len() as u32;
        let mut encoder = InfluxEncoder::new(&catalog).unwrap();
        let (mut payload, mut expected, mut left_out) = (Vec::new(), Vec::new(), 0);
        // Three times, so that names are known and orders repeat.
        for _ in 0..3 {
            let mut buffer = BatchBuf::new();
            for &(id, at, value) in samples.iter().filter(|(id, ..)| id.0 < known) {
                buffer.push(id, at, value);
                if value.is_finite() && TIMES.contains(&at.0) { expected.push((id, at, value)) } else { left_out += 1 }
            }
            encoder.encode(&buffer.as_batch(), &mut payload);
        }
        prop_assert_eq!(encoder.skipped(), left_out);
        let mut heap = Heap::default();
        let result = feed(&mut InfluxDecoder::new(clock()), &payload, pieces.into_iter(), &mut heap);
        prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
        prop_assert_eq!(heap.named(), named(&catalog, &expected));
        // The lines that a decoder sees in any order, each by itself.
        let mut whole = Heap::default();
        let mut decoder = InfluxDecoder::of_datagrams(clock());
        decoder.decode(&payload, &mut whole).unwrap();
        prop_assert_eq!(whole.named(), named(&catalog, &expected));
        // Once more, as its names are known; a bad line discards known ones as well.
        let filled = [payload.as_slice(), b"\n\n\n"].concat();
        decoder.decode(&filled, &mut whole).unwrap();
        prop_assert_eq!(whole.named(), named(&catalog, &[expected.as_slice(), &expected].concat()));
        let spoiled = [payload.as_slice(), b"bad"].concat();
        decoder.decode(&spoiled, &mut whole).unwrap();
        prop_assert_eq!((whole.samples.len(), whole.malformed.len()), (2 * expected.len(), 1));
    }

    #[test]
    fn a_key_survives_the_wire(
        name in "[ -~\u{e9}]{0,12}", labels in proptest::collection::btree_map("(_field|[a-z=, \"#]{0,5})", "[a-z=,; \"]{0,5}", 0..4),
    ) {
        let key = SeriesKey::with_labels(name, labels);
        if let Ok(wire) = wire_name(&key) {
            prop_assert_eq!(series_key(wire.head.as_bytes(), wire.field.as_bytes()), Ok(key.clone()));
            let line = format!("{} {}=1 60\n", wire.head, wire.field);
            prop_assert_eq!(decode(line.as_bytes()).0.named(), vec![(key.to_string(), 60, 1.0_f64.to_bits())]);
        }
    }

    #[test]
    fn a_shuffled_fleet_is_decoded(seed in any::<u64>(), rounds in 1..5_usize, fields in 1..5_usize) {
        let series = |index: usize| SeriesKey::with_labels("kstat.net", [
            ("host", format!("{:04}", index / fields)), (FIELD_LABEL, format!("f{}", index % fields)),
        ]);
        let catalog: Catalog = (0..700).map(series).collect();
        let mut encoder = InfluxEncoder::new(&catalog).unwrap();
        // Whole lines in any order.
        let mut lines: Vec<u32> = (0..700 / fields as u32).collect();
        let (mut payload, mut expected) = (Vec::new(), Vec::new());
        let mut state = seed | 1;
        for round in 0..rounds {
            for index in (1..lines.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                lines.swap(index, (state >> 33) as usize % (index + 1));
            }
            let of_line = |&line: &u32| (0..fields as u32).map(move |field| SeriesId(line * fields as u32 + field));
            let ids: Vec<SeriesId> = lines.iter().flat_map(of_line).collect();
            let values: Vec<f64> = ids.iter().map(|id| f64::from(id.0) / 4.0).collect();
            let batch = Batch::new(Ids::Each(&ids), Times::One(Timestamp::from_secs(round as i64)), &values);
            encoder.encode(&batch, &mut payload);
            expected.extend(batch.iter());
        }
        let mut heap = Heap::default();
        let result = feed(&mut InfluxDecoder::new(clock()), &payload, std::iter::repeat(5_000), &mut heap);
        prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
        prop_assert_eq!(heap.named(), named(&catalog, &expected));
    }
}
