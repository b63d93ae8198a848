//! The vectors of the specification, hostile bytes, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf};
use crate::series::{Catalog, SeriesId};
use crate::wire::testing::{Heap, any_samples, clock, feed, named};
use crate::wire::{Decoder, Encoder, Fatal, MAX_RECORD, Protocol, Room};

const FORMS: [Form; 4] = [Form::July, Form::August, Form::Stream, Form::Batch];

const NAME: &str = "cloud.zones.cpu.usage.f242021c-c5eb-4c53-a609-64bee4";

const AT: Timestamp = Timestamp::from_secs(1_404_770_400);

/// The named payloads of a fixture: `# name`, then hexadecimal digits.
fn vector(name: &str) -> Vec<u8> {
    let text = include_str!("../../../fixtures/wire/dalmatiner.hex");
    let mut lines = text.lines().skip_while(|line| *line != format!("# {name}")).skip(1);
    let digits: String = lines.by_ref().take_while(|line| !line.starts_with('#')).collect();
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn catalog(names: &[&str]) -> Catalog {
    names.iter().map(|name| SeriesKey::new(*name)).collect()
}

#[test]
fn a_float_whose_last_bit_is_set_is_left_out_unless_it_may_be_rounded() {
    let value = f64::from_bits((1.0_f64 / 3.0).to_bits() | 1);
    let kept = f64::from_bits(value.to_bits() & !1);
    let catalog = catalog(&["a"]);
    let encoded = |encoder: DalmatinerEncoder, value: f64| {
        let (mut encoder, mut batch, mut out) = (encoder, BatchBuf::new(), Vec::new());
        batch.push(SeriesId(0), AT, value);
        encoder.encode(&batch.as_batch(), &mut out);
        (out, encoder.skipped())
    };
    for form in [Form::Stream, Form::Batch] {
        let exact = || DalmatinerEncoder::new(form, &catalog).unwrap();
        assert_eq!(encoded(exact(), value).1, 1);
        assert_eq!(encoded(exact().rounding(), value), encoded(exact(), kept));
    }
}

fn encode(form: Form, catalog: &Catalog, batch: &Batch<'_>) -> (Vec<u8>, u64) {
    let mut encoder = DalmatinerEncoder::new(form, catalog).unwrap();
    let mut out = Vec::new();
    encoder.encode(batch, &mut out);
    (out, encoder.skipped())
}

fn decode(protocol: Protocol, payload: &[u8]) -> (Heap, Result<(), Fatal>) {
    let mut heap = Heap::default();
    let mut decoder = protocol.decoder(clock());
    let result = feed(&mut *decoder, payload, std::iter::empty(), &mut heap);
    (heap, result)
}

#[test]
fn the_vectors_of_the_specification_go_both_ways() {
    let whole = catalog(&[NAME]);
    let tick = Batch::tick(SeriesId(0), AT, &[42.0]);
    let july = vector("july 2014, a datagram of one record");
    assert_eq!(july.len(), 82);
    assert_eq!(record_length(&[july.as_slice(), &july].concat()), Some(82));
    assert_eq!(record_length(&july[..81]), None);
    assert_eq!(encode(Form::July, &whole, &tick), (july.clone(), 0));
    let august = vector("august 2014, a frame of one block");
    assert_eq!(august.len(), 86);
    assert_eq!(encode(Form::August, &whole, &tick), (august.clone(), 0));
    let sample = (NAME.to_owned(), AT.0, 42.0_f64.to_bits());
    assert_eq!(
        decode(Protocol::DalmatinerJuly, &july).0.named(),
        std::slice::from_ref(&sample)
    );
    assert_eq!(
        decode(Protocol::DalmatinerAugust, &august).0.named(),
        std::slice::from_ref(&sample)
    );
    let mut heap = Heap::default();
    let mut decoder = Protocol::DalmatinerAugust.datagram_decoder(clock(), &Room::default());
    assert_eq!(decoder.decode(&august[4..], &mut heap), Ok(82));
    assert_eq!(heap.named(), [sample]);

    let short = catalog(&["cloud.zones.cpu.usage.f242021c"]);
    let enter = vector("enter stream mode, delay 2");
    let entry = vector("a stream entry");
    let batch = vector("a batch of one");
    assert_eq!((enter.len(), entry.len(), batch.len()), (14, 54, 52));
    let stream = [enter.as_slice(), &entry, &[6]].concat();
    assert_eq!(encode(Form::Stream, &short, &tick), (stream.clone(), 0));
    let batched = [enter.as_slice(), &batch].concat();
    assert_eq!(encode(Form::Batch, &short, &tick), (batched.clone(), 0));
    let sample = ("cloud.zones.cpu.usage.f242021c".to_owned(), AT.0, 42.0_f64.to_bits());
    for payload in [stream, batched] {
        let (heap, result) = decode(Protocol::DalmatinerStream, &payload);
        assert_eq!(
            (heap.named(), heap.problems(), result),
            (vec![sample.clone()], vec![], Ok(()))
        );
    }
}

#[test]
fn frames_are_packed_as_the_aggregator_packed_them() {
    let names: Vec<String> = (0..100).map(|index| format!("{NAME:.49}{index:03}")).collect();
    let catalog: Catalog = names.iter().map(SeriesKey::new).collect();
    let (frames, _) = encode(Form::August, &catalog, &Batch::tick(SeriesId(0), AT, &[1.0; 100]));
    let first = u32::from_be_bytes(*frames.first_chunk().unwrap());
    // 9 bytes of bucket, and 56 blocks of 73.
    assert_eq!((first, frames.len()), (9 + 56 * 73, 2 * (4 + 9) + 100 * 73));
    let (heap, result) = decode(Protocol::DalmatinerAugust, &frames);
    assert_eq!((heap.samples.len(), result), (100, Ok(())));
}

/// What a July record is made of, for the table below.
fn record(metric: &[u8], seconds: u64, data: &[u8]) -> Vec<u8> {
    let metric_length = (metric.len() as u16).to_be_bytes();
    let data_length = (data.len() as u16).to_be_bytes();
    let time = seconds.to_be_bytes();
    [
        &[0],
        time.as_slice(),
        b"\x07tachyon",
        &metric_length,
        metric,
        &data_length,
        data,
    ]
    .concat()
}

const POINT: [u8; 9] = [1, 0, 0, 0, 0, 0, 0, 0, 5];

#[test]
fn a_datagram_of_july_keeps_what_was_parsed_before() {
    let good = record(b"good", 60, &POINT);
    let table: &[(Vec<u8>, &str, usize)] = &[
        (b"\x01".to_vec(), UNKNOWN_CONTENT, 1),
        (b"garbage".to_vec(), UNKNOWN_CONTENT, 1),
        // Takes the first byte of what follows for its own.
        (good[..good.len() - 1].to_vec(), UNKNOWN_CONTENT, 2),
        (good[..5].to_vec(), UNKNOWN_CONTENT, 1),
        (
            record(b"m", 60, &[1; 8]),
            "the data of a block are not points of nine bytes",
            2,
        ),
        (record(b"m", u64::MAX, &POINT), "a time or a name is out of range", 2),
        (
            record(b"m", 9_223_372_036, &POINT),
            "a time or a name is out of range",
            2,
        ),
        (record(b"", 60, &POINT), "a metric has no name", 2),
        (record(b"\xff", 60, &POINT), "a name is not UTF-8", 2),
        (record(b"m", 60, &[7; 9]), "a point is neither set nor unset", 2),
        (
            record(b"m", 60, &[1; 9]),
            "an integer beyond 2^53 is not supported here",
            2,
        ),
    ];
    for (bad, what, samples) in table {
        let datagram = [good.as_slice(), bad, &good].concat();
        let mut heap = Heap::default();
        let mut decoder = JulyDecoder::new(&clock());
        assert_eq!(decoder.decode(&datagram, &mut heap), Ok(datagram.len()));
        assert_eq!(
            (heap.problems(), heap.samples.len()),
            (vec![*what], *samples),
            "{bad:?}"
        );
        // The next datagram is another matter.
        assert_eq!(decoder.decode(&good, &mut heap), Ok(good.len()));
        assert_eq!(heap.samples.len(), samples + 1);
    }
}

const UNKNOWN_CONTENT: &str = "unknown content";

#[test]
fn points_are_consecutive_seconds_and_an_unset_one_is_none() {
    let data = [POINT, [0; 9], POINT].concat();
    let (heap, _) = decode(Protocol::DalmatinerJuly, &record(b"m", 60, &data));
    let times: Vec<i64> = heap.samples.iter().map(|(_, at, _)| at.as_secs()).collect();
    assert_eq!((times, heap.problems()), (vec![60, 62], vec![]));
    let (heap, _) = decode(Protocol::DalmatinerJuly, &record(b"m", 60, &[]));
    assert!(heap.samples.is_empty() && heap.malformed.is_empty());
}

#[test]
fn a_connection_of_august_dies_of_what_cannot_be_parsed() {
    let block = &record(b"good", 60, &POINT)[1..];
    let block = [&block[..8], &block[16..]].concat();
    let frame = |body: &[u8]| [&(body.len() as u32).to_be_bytes(), body].concat();
    let good = frame(&[b"\x00\x07tachyon", block.as_slice()].concat());
    let (heap, result) = decode(
        Protocol::DalmatinerAugust,
        &[good.as_slice(), &frame(&[0]), &good].concat(),
    );
    assert_eq!((heap.samples.len(), heap.problems(), result), (2, vec![], Ok(())));
    let parse = "a frame cannot be parsed";
    let table: &[(Vec<u8>, &str)] = &[
        (frame(&[]), parse),
        (frame(&[2]), parse),
        (frame(b"\x00\x07tach"), parse),
        (frame(&[b"\x00\x07tachyon", &block[..block.len() - 1]].concat()), parse),
        (frame(&[b"\x00\x07tachyon", block.as_slice(), b"x"].concat()), parse),
        (
            (MAX_RECORD as u32).to_be_bytes().to_vec(),
            "a frame is longer than 64 KiB",
        ),
    ];
    for (bad, what) in table {
        let (heap, result) = decode(Protocol::DalmatinerAugust, &[good.as_slice(), bad, &good].concat());
        assert_eq!(result.unwrap_err().what, *what, "{bad:?}");
        assert_eq!(heap.problems(), [*what]);
        assert!((1..=2).contains(&heap.samples.len()));
    }
    let (heap, result) = decode(Protocol::DalmatinerAugust, &[good.as_slice(), &good[..20]].concat());
    assert_eq!(
        (heap.samples.len(), heap.problems(), result),
        (1, vec!["the last frame is cut short"], Ok(()))
    );
}

#[test]
fn a_stream_dies_of_what_cannot_be_parsed() {
    let enter = vector("enter stream mode, delay 2");
    let entry = vector("a stream entry");
    let batch = vector("a batch of one");
    let after = |bytes: &[u8]| [enter.as_slice(), &entry, bytes].concat();
    let with_metric = |metric: &[u8], word: [u8; 8]| {
        let length = (metric.len() as u16).to_be_bytes();
        after(&[b"\x05".as_slice(), &entry[1..9], &length, metric, &[0, 0, 0, 8], &word].concat())
    };
    let one = [1, 0, 0, 0, 0, 0, 0, 1];
    let fatal: &[(Vec<u8>, &str)] = &[
        (vec![0, 0, 0, 1, 3], "a command is not the one that enters stream mode"),
        (vec![0, 0, 0, 0], "a command is not the one that enters stream mode"),
        (vec![0, 0, 0, 4, 4, 2, 7, 7], "a frame cannot be parsed"),
        (vec![0, 1, 0, 0], "a frame is longer than 64 KiB"),
        (after(&[4]), "a message in stream mode is unknown"),
        (after(&[0]), "a message in stream mode is unknown"),
        (with_metric(&[], one), "an entry cannot be parsed"),
        (
            after(&[&entry[..42], [0, 0, 0, 7].as_slice()].concat()),
            "an entry cannot be parsed",
        ),
        (
            after(&[&entry[..42], [1, 0, 0, 0].as_slice()].concat()),
            "an entry cannot be parsed",
        ),
        (
            after(&[&entry[..9], [0xff, 0xff].as_slice()].concat()),
            "a metric is longer than 24 KiB",
        ),
        (after(&batch[..50]), "the stream ends within a message"),
        (after(&entry[..53]), "the stream ends within a message"),
    ];
    for (bytes, what) in fatal {
        let (heap, result) = decode(Protocol::DalmatinerStream, bytes);
        let ends = *what == "the stream ends within a message";
        assert_eq!((heap.problems(), result.is_ok()), (vec![*what], ends), "{bytes:?}");
    }
    // What a server takes and we do not costs the record.
    let lives: &[(Vec<u8>, &str)] = &[
        (with_metric(b"\x05ab", one), "a metric's element is cut short"),
        (with_metric(b"\x00", one), "a metric has no name"),
        (with_metric(b"\x01\xff", one), "a name is not UTF-8"),
        (with_metric(b"\x01a", [3; 8]), "a point has an unknown form"),
        (
            with_metric(b"\x01a", [1, 0x7f, 0, 0, 0, 0, 0, 0]),
            "an integer beyond 2^53 is not supported here",
        ),
    ];
    for (bytes, what) in lives {
        let (heap, result) = decode(Protocol::DalmatinerStream, &[bytes.as_slice(), &entry].concat());
        assert_eq!(
            (heap.problems(), heap.samples.len(), result),
            (vec![*what], 2, Ok(())),
            "{what}"
        );
    }
}

#[test]
fn keys_and_names_are_told_apart() {
    let refused: &[(SeriesKey, &[Form])] = &[
        (SeriesKey::new(""), &FORMS),
        (SeriesKey::new("x".repeat(MAX_METRIC + 1)), &FORMS),
        (SeriesKey::with_labels("a", [("host", "h")]), &FORMS),
        (SeriesKey::with_labels("a", [("bucket", "")]), &FORMS),
        (SeriesKey::with_labels("a", [("bucket", DEFAULT_BUCKET)]), &FORMS),
        (SeriesKey::with_labels("a", [("bucket", "b".repeat(256))]), &FORMS),
        (SeriesKey::new("x".repeat(256)), &[Form::Stream, Form::Batch]),
        (SeriesKey::new("a\\b"), &[Form::Stream, Form::Batch]),
        (SeriesKey::new("a\\"), &[Form::Stream, Form::Batch]),
    ];
    for (key, forms) in refused {
        for form in FORMS {
            let made = DalmatinerEncoder::new(form, &[key.clone()].into_iter().collect());
            assert_eq!(made.is_err(), forms.contains(&form), "{form:?} {key}");
        }
    }
    let two = [SeriesKey::new("a"), SeriesKey::with_labels("b", [("bucket", "other")])];
    let error = DalmatinerEncoder::new(Form::Stream, &two.into_iter().collect()).unwrap_err();
    assert_eq!(error.why, "it is in another bucket, and a connection has one");
    assert_eq!(
        elements(&SeriesKey::new("a\\.b.c..\\\\")).unwrap(),
        b"\x03a.b\x01c\x00\x01\\"
    );
}

#[test]
fn samples_that_the_wire_cannot_carry_are_skipped_and_counted() {
    let catalog = catalog(&["a", "b", "c", "d"]);
    let values = [1.5, f64::NAN, 1e300, -0.0];
    for form in [Form::July, Form::August] {
        let (bytes, skipped) = encode(form, &catalog, &Batch::tick(SeriesId(0), AT, &values));
        assert_eq!((bytes, skipped), (vec![], 4), "{form:?}");
    }
    for form in FORMS {
        let early = Batch::tick(SeriesId(0), Timestamp(-1), &[1.0]);
        assert_eq!(encode(form, &catalog, &early).1, 1);
        assert_eq!(encode(form, &catalog, &Batch::tick(SeriesId(9), AT, &[1.0, 2.0])).1, 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        names in proptest::collection::btree_set("[a-z0-9._-]{1,60}", 1..80), bucketed in any::<bool>(),
        samples in any_samples(80, true), pieces in proptest::collection::vec(1..700_usize, 0..60),
    ) {
        let key = |name: &String| if bucketed {
            SeriesKey::with_labels(name, [("bucket", "other")])
        } else {
            SeriesKey::new(name)
        };
        let catalog: Catalog = names.iter().map(key).collect();
        let known = catalog.len() as u32;
        for form in FORMS {
            let mut encoder = DalmatinerEncoder::new(form, &catalog).unwrap();
            let (mut payload, mut expected, mut left_out) = (Vec::new(), Vec::new(), 0);
            for _ in 0..2 {
                let mut buffer = BatchBuf::new();
                for &(id, at, value) in samples.iter().filter(|(id, ..)| id.0 < known) {
                    buffer.push(id, at, value);
                    let is_whole = point::integer(value).is_some();
                    let fits = is_whole || (matches!(form, Form::Stream | Form::Batch) && point::write8(value).is_some());
                    if at.0 >= 0 && fits { expected.push((id, at, value)) } else { left_out += 1 }
                }
                encoder.encode(&buffer.as_batch(), &mut payload);
            }
            prop_assert_eq!(encoder.skipped(), left_out);
            let mut heap = Heap::default();
            let mut decoder = form.protocol().decoder(clock());
            let sizes = if form == Form::July { vec![] } else { pieces.clone() };
            let result = feed(&mut *decoder, &payload, sizes.into_iter(), &mut heap);
            prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
            prop_assert_eq!(heap.named(), named(&catalog, &expected));
        }
    }

    #[test]
    fn a_key_survives_the_wire(name in "[ -~\u{e9}]{0,12}(\\\\[.\\\\])?", bucket in proptest::option::of("[a-z]{1,9}")) {
        let key = SeriesKey::with_labels(name, bucket.iter().map(|bucket| ("bucket", bucket)));
        if let (Ok(bucket), Ok(wire)) = (super::bucket(&key), metric(&key)) {
            prop_assert_eq!(key_of_metric(bucket.as_bytes(), &wire), Ok(key.clone()));
            if let Ok(wire) = elements(&key) {
                prop_assert_eq!(key_of_elements(bucket.as_bytes(), &wire), Ok(key.clone()));
            }
        }
    }
}
