//! The golden frames of docs/formats/tsb-wire.md, hostile frames, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf, Ids, Times};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::wire::testing::{Heap, any_samples, feed, named};
use crate::wire::{Decoder, Encoder, Fatal, MAX_RECORD, Sequence};

fn catalog() -> Catalog {
    let keys = [
        SeriesKey::new("cloud.zones.cpu.usage"),
        SeriesKey::with_labels("cpu", [("host", "h1"), ("zone", "z")]),
        SeriesKey::new(""),
    ];
    keys.into_iter().collect()
}

/// A payload of three frames: the first two series, a row of them, columns of all three.
fn payload() -> Vec<u8> {
    let mut encoder = TsbEncoder::new(&catalog()).unwrap();
    let mut out = Vec::new();
    let at = Timestamp(1_404_770_400_000_000_000);
    encoder.encode(&Batch::tick(SeriesId(0), at, &[42.0, -0.5]), &mut out);
    let ids = [SeriesId(1), SeriesId(0), SeriesId(2)];
    let times = [at, at + 1, Timestamp(-1)];
    let values = [f64::NAN, f64::INFINITY, 0.1];
    encoder.encode(&Batch::new(Ids::Each(&ids), Times::Each(&times), &values), &mut out);
    assert_eq!((encoder.skipped(), encoder.next_sequence()), (0, 4));
    out
}

/// The frames of a payload.
fn frames(payload: &[u8]) -> Vec<Vec<u8>> {
    let (mut frames, mut rest) = (Vec::new(), payload);
    while let Some(header) = frame::open(rest).unwrap() {
        let (first, behind) = rest.split_at(frame::HEADER + header.length);
        frames.push(first.to_vec());
        rest = behind;
    }
    assert!(rest.is_empty());
    frames
}

fn decode(payload: &[u8]) -> (Heap, Result<(), Fatal>, Sequence) {
    let mut heap = Heap::default();
    let mut decoder = TsbDecoder::new();
    let result = feed(&mut decoder, payload, std::iter::empty(), &mut heap);
    assert_eq!(decoder.sequence(), Some(decoder.account()));
    (heap, result, decoder.account())
}

/// Changes a frame and puts length and checksum right.
fn rewrite(frame: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = frame[frame::HEADER..].to_vec();
    change(&mut body);
    let mut whole = [&frame[..frame::HEADER], &body].concat();
    whole[8..12].copy_from_slice(&(body.len() as u32).to_le_bytes());
    frame::seal(&mut whole);
    whole
}

/// Gives a frame another number.
fn number(frame: &[u8], sequence: u64) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[16..24].copy_from_slice(&sequence.to_le_bytes());
    frame::seal(&mut frame);
    frame
}

#[test]
fn the_golden_payload_goes_both_ways() {
    let golden = include_str!("../../../fixtures/wire/tsb.hex");
    let lines = golden.lines().filter(|line| !line.starts_with('#'));
    let bytes: Vec<u8> = lines
        .flat_map(str::split_whitespace)
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    let shown: Vec<String> = payload().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(bytes, payload(), "{}", shown.join(" "));
    let (heap, result, sequence) = decode(&bytes);
    assert_eq!((result, heap.problems(), sequence.next), (Ok(()), vec![], 4));
    assert_eq!(heap.catalog.keys(), catalog().keys());
    let at = 1_404_770_400_000_000_000;
    let key = "cpu{host=h1,zone=z}".to_owned();
    let expected = [
        ("cloud.zones.cpu.usage".to_owned(), at, 42.0_f64.to_bits()),
        (key.clone(), at, (-0.5_f64).to_bits()),
        (key, at, f64::NAN.to_bits()),
        ("cloud.zones.cpu.usage".to_owned(), at + 1, f64::INFINITY.to_bits()),
        (String::new(), -1, 0.1_f64.to_bits()),
    ];
    assert_eq!(heap.named(), expected);
    assert_eq!(heap.shapes, [("tick", 2), ("columns", 3)]);
}

#[test]
fn hostile_frames_are_named() {
    let [announce, row, more, columns] = <[Vec<u8>; 4]>::try_from(frames(&payload())).unwrap();
    let set =
        |at: usize, bytes: &'static [u8]| move |body: &mut Vec<u8>| body[at..at + bytes.len()].copy_from_slice(bytes);
    let cut = |length: usize| move |body: &mut Vec<u8>| body.truncate(length);
    let mut kind = row.clone();
    kind[12] = 9;
    let mut shape = row.clone();
    shape[13] = 4;
    // The frame in the place of the row, and what is said of it.
    let table = [
        ("a frame's kind is unknown", rewrite(&kind, |_| ())),
        ("a frame's shape is unknown", rewrite(&shape, |_| ())),
        ("a frame of samples is cut short", rewrite(&row, cut(15))),
        ("a frame of samples is not as long as it says", rewrite(&row, cut(31))),
        (
            "a frame of samples is not as long as it says",
            rewrite(&row, |body| body.push(0)),
        ),
        (
            "a frame of samples is not as long as it says",
            rewrite(&row, set(0, &[3])),
        ),
        (
            "a frame of samples is not as long as it says",
            rewrite(&row, set(0, &[0xff; 4])),
        ),
        (
            "a frame of samples is not as long as it says",
            rewrite(&row, |body| {
                body.truncate(16);
                body[0] = 0;
            }),
        ),
        ("a series is not announced", rewrite(&row, set(4, &[1]))),
        ("a series is not announced", rewrite(&row, set(4, &[0xff; 4]))),
    ];
    for (what, frame) in table {
        let payload = [&announce, &frame, &more, &columns].map(Vec::as_slice).concat();
        let (heap, result, _) = decode(&payload);
        assert_eq!(
            (result, heap.malformed.as_slice()),
            (Ok(()), [(what, frame)].as_slice())
        );
        assert_eq!(heap.samples.len(), 3, "{what}");
    }
}

#[test]
fn hostile_announcements_are_named() {
    let [announce, row, _, _] = <[Vec<u8>; 4]>::try_from(frames(&payload())).unwrap();
    let set =
        |at: usize, bytes: &'static [u8]| move |body: &mut Vec<u8>| body[at..at + bytes.len()].copy_from_slice(bytes);
    let cut = |length: usize| move |body: &mut Vec<u8>| body.truncate(length);
    // Its series are not known then.
    let unknown = "a series is not announced";
    let table = [
        ("an announcement is cut short", rewrite(&announce, cut(7))),
        ("an announced key is damaged", rewrite(&announce, cut(20))),
        ("an announced key is damaged", rewrite(&announce, set(8, &[0xff; 2]))),
        ("an announced key is damaged", rewrite(&announce, set(10, &[0xff]))),
        ("an announcement leaves out series", rewrite(&announce, set(0, &[1]))),
        (
            "an announcement leaves out series",
            rewrite(&announce, set(0, &[0xff; 4])),
        ),
    ];
    for (what, frame) in table {
        let (heap, result, _) = decode(&[frame.as_slice(), &row].concat());
        assert_eq!((result, heap.samples.len()), (Ok(()), 0));
        assert_eq!(heap.problems(), [what, unknown]);
    }
    // The keys before the offence count.
    let more = rewrite(&announce, set(4, &[0xff; 4]));
    let (heap, _, _) = decode(&[more.as_slice(), &row].concat());
    assert_eq!(
        (heap.problems(), heap.samples.len()),
        (vec!["an announced key is damaged"], 2)
    );
    let long = rewrite(&announce, |body| body.push(0));
    let (heap, _, _) = decode(&[long.as_slice(), &row].concat());
    assert_eq!(
        (heap.problems(), heap.samples.len()),
        (vec!["an announcement is too long"], 2)
    );
}

#[test]
fn labels_out_of_order_are_damage() {
    let swapped = b"\x01\0m\x02\0\x01\0b\x01\0v\x01\0a\x01\0v";
    let twice = b"\x01\0m\x02\0\x01\0a\x01\0v\x01\0a\x01\0w";
    assert_eq!((announce::read_key(swapped), announce::read_key(twice)), (None, None));
}

#[test]
fn a_key_may_be_announced_again_but_not_changed() {
    let [first, row, _, _] = <[Vec<u8>; 4]>::try_from(frames(&payload())).unwrap();
    let same = [number(&first, 0), number(&first, 1), number(&row, 2)].concat();
    let (heap, result, _) = decode(&same);
    assert_eq!(
        (result, heap.problems(), heap.samples.len(), heap.asked),
        (Ok(()), vec![], 2, 2)
    );
    let other = rewrite(&number(&first, 1), |body| body[10] ^= 1);
    let changed = [number(&first, 0), other, number(&row, 2)].concat();
    let (heap, result, _) = decode(&changed);
    assert_eq!((result, heap.samples.len()), (Ok(()), 2));
    assert_eq!(heap.problems(), ["an id is announced again with another key"]);
}

#[test]
fn an_invalid_frame_ends_the_connection() {
    let good = payload();
    let mut table = vec![
        (
            "a frame does not begin with the magic of version 1",
            b"GET / HTTP/1.1\r\n".to_vec(),
        ),
        ("a frame does not begin with the magic of version 1", b"x".to_vec()),
        (
            "a frame does not begin with the magic of version 1",
            b"tsb\x02".to_vec(),
        ),
    ];
    let mut long = good.clone();
    long[8..12].copy_from_slice(&((MAX_RECORD - frame::HEADER + 1) as u32).to_le_bytes());
    table.push(("a frame is longer than 64 KiB", long));
    for at in [4, 12, 14, 16, 24, 30] {
        let mut damaged = good.clone();
        damaged[at] ^= 1;
        table.push(("a frame's checksum is wrong", damaged));
    }
    for (what, bytes) in table {
        let (heap, result, _) = decode(&[good.as_slice(), &bytes].concat());
        assert_eq!(
            (result, heap.problems(), heap.samples.len()),
            (Err(Fatal { what }), vec![what], 5)
        );
    }
    let (heap, result, _) = decode(&good[..good.len() - 1]);
    assert_eq!(
        (result, heap.problems(), heap.samples.len()),
        (Ok(()), vec!["the last frame is cut short"], 2)
    );
}

#[test]
fn missing_and_repeated_frames_are_counted() {
    let frames = frames(&payload());
    let (heap, result, sequence) = decode(&[frames[0].as_slice(), &frames[3], &frames[1]].concat());
    assert_eq!(result, Ok(()));
    let problems = ["frames are missing", "a series is not announced", "a frame came before"];
    assert_eq!((heap.problems(), heap.samples.len()), (problems.to_vec(), 0));
    let expected = Sequence {
        next: 4,
        gaps: 1,
        missing: 2,
        repeated: 1,
        has_ended: false,
    };
    assert_eq!(sequence, expected);
    let payload = [frames[0].clone(), number(&frames[1], u64::MAX)].concat();
    let (heap, _, sequence) = decode(&payload);
    assert_eq!(
        (heap.samples.len(), sequence.next, sequence.missing),
        (2, u64::MAX, u64::MAX - 1)
    );
}

#[test]
fn samples_of_refused_series_are_taken_out_and_counted() {
    let catalog: Catalog = ["a", "b", "c"].into_iter().map(SeriesKey::new).collect();
    let mut encoder = TsbEncoder::new(&catalog).unwrap();
    let (at, mut out) = (Timestamp(1), Vec::new());
    encoder.encode(&Batch::tick(SeriesId(0), at, &[1.0, 2.0, 3.0]), &mut out);
    encoder.encode(&Batch::tick(SeriesId(1), at, &[4.0, 5.0]), &mut out);
    let ids = [SeriesId(2), SeriesId(0), SeriesId(0)];
    let times = [Timestamp(2), Timestamp(3), Timestamp(4)];
    encoder.encode(
        &Batch::new(Ids::Each(&ids), Times::Each(&times), &[6.0, 7.0, 8.0]),
        &mut out,
    );
    let mut heap = Heap {
        limit: 1,
        ..Heap::default()
    };
    let result = feed(&mut TsbDecoder::new(), &out, std::iter::empty(), &mut heap);
    assert_eq!((result, heap.refused, heap.problems()), (Ok(()), 5, vec![]));
    let a = SeriesId(0);
    assert_eq!(
        heap.samples,
        [(a, at, 1.0), (a, Timestamp(3), 7.0), (a, Timestamp(4), 8.0)]
    );
}

#[test]
fn series_are_announced_when_they_first_occur() {
    let catalog: Catalog = (0..20_000)
        .map(|index| SeriesKey::new(format!("series.{index}")))
        .collect();
    let mut encoder = TsbEncoder::new(&catalog).unwrap();
    let (mut out, mut heap) = (Vec::new(), Heap::default());
    let mut decoder = TsbDecoder::new();
    let values = vec![1.0; 20_000];
    let mut send = |first: u32, count: usize| {
        out.clear();
        encoder.encode(&Batch::tick(SeriesId(first), Timestamp(0), &values[..count]), &mut out);
        assert_eq!(decoder.decode(&out, &mut heap), Ok(out.len()));
        let shapes = std::mem::take(&mut heap.shapes);
        (
            heap.asked,
            shapes.len(),
            shapes.iter().all(|(shape, _)| *shape == "tick"),
        )
    };
    assert_eq!(send(10_000, 54), (54, 1, true));
    assert_eq!(send(10_000, 54), (54, 1, true));
    assert_eq!(send(0, 54), (108, 1, true));
    // Half of these are known: their ids on the wire are not in a row.
    assert_eq!(send(9_973, 54), (135, 1, false));
    assert_eq!(send(0, 20_000), (20_000, 10, false));
}

#[test]
fn ids_beyond_the_catalog_are_left_out_and_counted() {
    let mut encoder = TsbEncoder::new(&catalog()).unwrap();
    let mut out = Vec::new();
    encoder.encode(&Batch::tick(SeriesId(2), Timestamp(0), &[1.0, 2.0, 3.0]), &mut out);
    let ids = [SeriesId(u32::MAX), SeriesId(0)];
    encoder.encode(
        &Batch::new(Ids::Each(&ids), Times::One(Timestamp(0)), &[4.0, 5.0]),
        &mut out,
    );
    assert_eq!(encoder.skipped(), 3);
    let (heap, result, _) = decode(&out);
    assert_eq!((result, heap.samples.len(), heap.problems()), (Ok(()), 2, vec![]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        samples in any_samples(120, false), split in 1..300_usize,
        pieces in proptest::collection::vec(1..3_000_usize, 0..30),
    ) {
        let catalog: Catalog = (0..120).map(|index| SeriesKey::with_labels("m", [("i", format!("{index}"))])).collect();
        let mut encoder = TsbEncoder::new(&catalog).unwrap();
        let (mut payload, mut buffer) = (Vec::new(), BatchBuf::new());
        for part in samples.chunks(split) {
            buffer.clear();
            for (id, at, value) in part {
                buffer.push(*id, *at, *value);
            }
            encoder.encode(&buffer.as_batch(), &mut payload);
        }
        let mut heap = Heap::default();
        let mut decoder = TsbDecoder::new();
        let result = feed(&mut decoder, &payload, pieces.into_iter(), &mut heap);
        prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
        prop_assert_eq!(heap.named(), named(&catalog, &samples));
        prop_assert_eq!(decoder.account().next, encoder.next_sequence());
    }

    #[test]
    fn a_changed_bit_is_noticed(bit in 0..8_usize * 240) {
        let mut damaged = payload();
        let at = bit / 8 % damaged.len();
        damaged[at] ^= 1 << (bit % 8);
        let (heap, _, _) = decode(&damaged);
        let (whole, _, _) = decode(&payload());
        prop_assert!(!heap.malformed.is_empty());
        let bits = |heap: &Heap| heap.named();
        prop_assert!(bits(&whole).starts_with(&bits(&heap)));
    }
}
