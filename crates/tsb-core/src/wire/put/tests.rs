//! Golden lines, both receivers line by line, and round trips.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf};
use crate::series::{Catalog, SeriesId};
use crate::time::Timestamp;
use crate::wire::testing::{Heap, any_samples, clock, feed, named};
use crate::wire::{Decoder, Encoder, Fatal, Next, Peer};

const BOTH: [Dialect; 2] = [Dialect::Opentsdb, Dialect::Kairosdb];

fn encode(dialect: Dialect, catalog: &Catalog, batch: &Batch<'_>) -> (String, u64) {
    let mut encoder = PutEncoder::new(dialect, catalog).unwrap();
    let mut out = Vec::new();
    encoder.encode(batch, &mut out);
    (String::from_utf8(out).unwrap(), encoder.skipped())
}

fn decode(dialect: Dialect, payload: &[u8]) -> (Heap, Result<(), Fatal>) {
    let mut heap = Heap::default();
    let mut decoder = PutDecoder::new(dialect, &clock());
    let result = feed(&mut decoder, payload, std::iter::empty(), &mut heap);
    (heap, result)
}

#[test]
fn the_golden_lines_go_both_ways() {
    let golden = include_str!("../../../fixtures/wire/put.txt");
    for dialect in BOTH {
        let (heap, result) = decode(dialect, golden.as_bytes());
        assert_eq!((result, heap.problems()), (Ok(()), vec![]));
        let mut buffer = BatchBuf::new();
        heap.samples
            .iter()
            .for_each(|(id, at, value)| buffer.push(*id, *at, *value));
        assert_eq!(
            encode(dialect, &heap.catalog, &buffer.as_batch()),
            (golden.to_owned(), 0)
        );
        let name = "cloud.zones.cpu.usage{zone=f242021c-c5eb-4c53-a609-64bee4}";
        let first = (name.to_owned(), 1_404_770_400_000_000_000, 42.0_f64.to_bits());
        assert_eq!(heap.named()[0], first);
    }
}

#[test]
fn a_series_without_labels_has_the_tag_that_kairosdb_adds() {
    let catalog: Catalog = [SeriesKey::new("m")].into_iter().collect();
    let tick = Batch::tick(SeriesId(0), Timestamp::from_secs(60), &[-0.0]);
    assert_eq!(
        encode(Dialect::Kairosdb, &catalog, &tick),
        ("put m 60 -0.0\n".to_owned(), 0)
    );
    assert_eq!(
        encode(Dialect::Opentsdb, &catalog, &tick),
        ("put m 60 -0.0 add=tag\n".to_owned(), 0)
    );
    for line in ["put m 60 -0.0\n", "put m 60 -0.0 add=tag\n"] {
        let (heap, _) = decode(Dialect::Kairosdb, line.as_bytes());
        assert_eq!(heap.named(), [("m".to_owned(), 60_000_000_000, (-0.0_f64).to_bits())]);
    }
}

/// Value and nanoseconds, or what is said.
type Expected = Result<(f64, i64), &'static str>;

const SECOND: i64 = 1_000_000_000;

fn check(dialect: Dialect, line: &str, expected: Expected) {
    let good = |value| format!("put good 60 {value} a=b\n");
    let payload = format!("{}{line}\n{}", good(1), good(2));
    let (heap, result) = decode(dialect, payload.as_bytes());
    let mut samples = vec![("good{a=b}".to_owned(), 60 * SECOND, 1.0_f64.to_bits())];
    match expected {
        Ok((value, at)) => samples.push(("m{a=b}".to_owned(), at, value.to_bits())),
        Err(what) => assert_eq!(heap.malformed, [(what, line.as_bytes().to_vec())], "{line}"),
    }
    samples.push(("good{a=b}".to_owned(), 60 * SECOND, 2.0_f64.to_bits()));
    assert_eq!((heap.named(), result), (samples, Ok(())), "{line}");
    assert_eq!(heap.malformed.len(), usize::from(expected.is_err()), "{line}");
}

const NUMBER: &str = "the value is not a number";
const TIME: &str = "the timestamp is not a number";
const RANGE: &str = "the timestamp is out of range";
const WORDS: &str = "a line has too few words";
const TAG: &str = "a tag is not name=value";
const NAME: &str = "a name has a character that is not allowed";
const UNHELD: &str = "an integer that no f64 holds is not supported here";

#[test]
#[expect(clippy::too_many_lines, reason = "a table, a row for each line")]
fn bad_lines_are_treated_as_opentsdb_treats_them() {
    // The line, what it gives, and what is written back.
    let table: &[(&str, Expected, &str)] = &[
        ("put m 60 1 a=b", Ok((1.0, 60 * SECOND)), ""),
        ("put m 60 1 a=b\r", Ok((1.0, 60 * SECOND)), ""),
        ("put m 60 1  a=b ", Ok((1.0, 60 * SECOND)), ""),
        ("put m 60 1 a=b a=b", Ok((1.0, 60 * SECOND)), ""),
        ("put m +60 +1 a=b", Ok((1.0, 60 * SECOND)), ""),
        ("put m 1404770400123 1 a=b", Ok((1.0, 1_404_770_400_123_000_000)), ""),
        ("put m 1404770400.123 1 a=b", Ok((1.0, 1_404_770_400_123_000_000)), ""),
        ("put m 60 -1.5 a=b", Ok((-1.5, 60 * SECOND)), ""),
        ("put m 60 1e3 a=b", Ok((1000.0, 60 * SECOND)), ""),
        (
            "put",
            Err(WORDS),
            "put: illegal argument: not enough arguments (need least 4, got 0)",
        ),
        (
            "put m",
            Err(WORDS),
            "put: illegal argument: not enough arguments (need least 4, got 1)",
        ),
        (
            "put m 60",
            Err(WORDS),
            "put: illegal argument: not enough arguments (need least 4, got 2)",
        ),
        (
            "put m 60 1",
            Err(WORDS),
            "put: illegal argument: not enough arguments (need least 4, got 3)",
        ),
        (
            "put  60 1 a=b",
            Err("the metric is empty"),
            "put: illegal argument: empty metric name",
        ),
        (
            "put m 60  a=b",
            Err("the value is empty"),
            "put: illegal argument: empty value",
        ),
        (
            "put m noon 1 a=b",
            Err(TIME),
            "put: invalid value: Invalid character 'n' in noon",
        ),
        ("put m  1 a=b", Err(TIME), "put: invalid value: Empty string"),
        (
            "put m - 1 a=b",
            Err(TIME),
            "put: invalid value: Just a sign, no value: -",
        ),
        (
            "put m 0 1 a=b",
            Err(RANGE),
            "put: illegal argument: invalid timestamp: 0",
        ),
        (
            "put m -1 1 a=b",
            Err(RANGE),
            "put: illegal argument: invalid timestamp: -1",
        ),
        (
            "put m 4294967296 1 a=b",
            Err(RANGE),
            "put: illegal argument: invalid timestamp: 4294967296",
        ),
        (
            "put m 99999999999999 1 a=b",
            Err(RANGE),
            "put: illegal argument: invalid timestamp: 99999999999999",
        ),
        (
            "put m 9999999999999 1 a=b",
            Err(RANGE),
            "put: illegal argument: invalid timestamp: 9999999999999",
        ),
        (
            "put m 60 one a=b",
            Err(NUMBER),
            "put: invalid value: For input string: \"one\"",
        ),
        (
            "put m 60 nan a=b",
            Err(NUMBER),
            "put: invalid value: Invalid character 'n' in nan",
        ),
        (
            "put m 60 1x a=b",
            Err(NUMBER),
            "put: invalid value: Invalid character 'x' in 1x",
        ),
        (
            "put m 60 1.x a=b",
            Err(NUMBER),
            "put: invalid value: For input string: \"1.x\"",
        ),
        (
            "put m 60 1e999 a=b",
            Err(NUMBER),
            "put: invalid value: For input string: \"1e999\"",
        ),
        (
            "put m 60 99999999999999999999 a=b",
            Err(NUMBER),
            "put: invalid value: Value too long: 99999999999999999999",
        ),
        (
            "put m 60 9999999999999999999 a=b",
            Err(NUMBER),
            "put: invalid value: Overflow in 9999999999999999999",
        ),
        ("put m 60 9007199254740993 a=b", Err(UNHELD), ""),
        ("put m 60 1 a", Err(TAG), "put: illegal argument: invalid tag: a"),
        ("put m 60 1 a=", Err(TAG), "put: illegal argument: invalid tag: a="),
        ("put m 60 1 =b", Err(TAG), "put: illegal argument: invalid tag: =b"),
        (
            "put m 60 1 a=b=c",
            Err(TAG),
            "put: illegal argument: invalid tag: a=b=c",
        ),
        (
            "put m 60 1 a=b a=c",
            Err("a tag occurs twice"),
            "put: illegal argument: duplicate tag: a=c",
        ),
        (
            "put m 60 1 ",
            Err("a line has no tag"),
            "put: illegal argument: Need at least one tag",
        ),
        (
            "put m 60 1 a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1",
            Err("a line has more than eight tags"),
            "put: illegal argument: Too many tags: 9 maximum allowed: 8",
        ),
        (
            "put m,n 60 1 a=b",
            Err(NAME),
            "put: illegal argument: Invalid metric name (\"m,n\"): illegal character: ,",
        ),
        (
            "put m 60 1 a=b;c",
            Err(NAME),
            "put: illegal argument: Invalid tag value (\"b;c\"): illegal character: ;",
        ),
        ("", Err("a command is unknown"), "unknown command: .  Try `help'."),
        (
            "get m 60 1 a=b",
            Err("a command is unknown"),
            "unknown command: get.  Try `help'.",
        ),
    ];
    for (line, expected, said) in table {
        check(Dialect::Opentsdb, line, *expected);
        let said = (!said.is_empty()).then(|| format!("{said}\n"));
        assert_eq!(reply(line.as_bytes()), said, "{line}");
    }
    let (heap, _) = decode(Dialect::Opentsdb, b"version\nstats\nhelp\ndropcaches\n");
    assert!(heap.malformed.is_empty() && heap.samples.is_empty());
}

#[test]
fn bad_lines_are_treated_as_kairosdb_treats_them() {
    let table: &[(&str, Expected)] = &[
        ("put m 60 1 a=b", Ok((1.0, 60 * SECOND))),
        ("put m 60 1 a=b\r", Ok((1.0, 60 * SECOND))),
        ("put m -60 1 a=b", Ok((1.0, -60 * SECOND))),
        ("put m 2999999999 1 a=b", Ok((1.0, 2_999_999_999 * SECOND))),
        ("put m 3000000000 1 a=b", Ok((1.0, 3_000_000 * SECOND))),
        ("put m 1404770400123 1 a=b", Ok((1.0, 1_404_770_400_123_000_000))),
        ("put m 60 1.5 a=b", Ok((1.5, 60 * SECOND))),
        ("put m 60 1.0e3 a=b", Ok((1000.0, 60 * SECOND))),
        ("put m 60 1 a=c a=b", Ok((1.0, 60 * SECOND))),
        ("put m 60 1e3 a=b", Err(NUMBER)),
        ("put m 60 one a=b", Err(NUMBER)),
        ("put m 60 1.x a=b", Err(NUMBER)),
        ("put m 60 1.0e999 a=b", Err(NUMBER)),
        ("put m 60 9223372036854775808 a=b", Err(NUMBER)),
        ("put m 60 9007199254740993 a=b", Err(UNHELD)),
        ("put m 60.5 1 a=b", Err(TIME)),
        ("put m noon 1 a=b", Err(TIME)),
        ("put m 9223372036854775807 1 a=b", Err(RANGE)),
        ("put m 60", Err(WORDS)),
        ("put", Err(WORDS)),
        ("put m 60 1 a", Err(TAG)),
        ("put m 60 1 a=", Err(TAG)),
        ("put m 60 1 ", Err(TAG)),
        ("put m 60 1  a=b", Err(TAG)),
        ("put m,n 60 1 a=b", Err(NAME)),
        ("put m 60 1 a=\u{e9}", Err(NAME)),
        ("", Err("a command is unknown")),
        ("putm m 60 1 a=b", Err("a command is unknown")),
    ];
    for (line, expected) in table {
        check(Dialect::Kairosdb, line, *expected);
    }
}

#[test]
fn a_line_of_1024_bytes_passes_and_a_longer_one_is_left_out() {
    for dialect in BOTH {
        let line = |length: usize| format!("put {} 60 1 a=b\n", "x".repeat(length - 13));
        for pieces in [1, 7, 5_000] {
            for (length, samples) in [(1024, 3), (1025, 2), (4_000, 2)] {
                let payload = [line(20), line(length), line(20)].concat();
                let mut heap = Heap::default();
                let mut decoder = PutDecoder::new(dialect, &clock());
                let result = feed(&mut decoder, payload.as_bytes(), std::iter::repeat(pieces), &mut heap);
                assert_eq!((heap.samples.len(), result), (samples, Ok(())), "{length}");
                assert_eq!(heap.malformed.len(), 3 - samples);
            }
        }
    }
    let (heap, _) = decode(Dialect::Opentsdb, b"put m 60 1 a=b\nput m 6");
    assert_eq!(
        (heap.samples.len(), heap.problems()),
        (1, vec!["the last line has no end"])
    );
}

#[test]
fn keys_and_names_are_told_apart() {
    let nine = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|label| (label, "v"));
    let refused: &[(SeriesKey, &[Dialect])] = &[
        (SeriesKey::new(""), &BOTH),
        (SeriesKey::new("a b"), &BOTH),
        (SeriesKey::new("a:b"), &BOTH),
        (SeriesKey::new("\u{e9}"), &BOTH),
        (SeriesKey::new("x".repeat(1_000)), &BOTH),
        (SeriesKey::with_labels("a", [("", "v")]), &BOTH),
        (SeriesKey::with_labels("a", [("l", "")]), &BOTH),
        (SeriesKey::with_labels("a", [("l", "v=w")]), &BOTH),
        (SeriesKey::with_labels("a", [DEFAULT_TAG]), &BOTH),
        (SeriesKey::with_labels("a", nine), &[Dialect::Opentsdb]),
    ];
    for (key, dialects) in refused {
        for dialect in BOTH {
            let made = PutEncoder::new(dialect, &[key.clone()].into_iter().collect());
            assert_eq!(made.is_err(), dialects.contains(&dialect), "{dialect:?} {key}");
        }
    }
}

#[test]
fn samples_that_the_wire_cannot_carry_are_skipped_and_counted() {
    let catalog: Catalog = [SeriesKey::new("a")].into_iter().collect();
    let left_out = |dialect, at, value| encode(dialect, &catalog, &Batch::tick(SeriesId(0), Timestamp(at), &[value])).1;
    for dialect in BOTH {
        assert_eq!(left_out(dialect, 60 * SECOND, f64::NAN), 1);
        assert_eq!(left_out(dialect, 60 * SECOND, f64::INFINITY), 1);
        assert_eq!(left_out(dialect, 60 * SECOND, 1.0), 0);
        // Milliseconds that would be taken for seconds.
        assert_eq!(left_out(dialect, 60 * SECOND + 1_000_000, 1.0), 1);
    }
    assert_eq!(left_out(Dialect::Opentsdb, -60 * SECOND, 1.0), 1);
    assert_eq!(left_out(Dialect::Kairosdb, -60 * SECOND, 1.0), 0);
    let far = Batch::tick(SeriesId(1), Timestamp(0), &[1.0]);
    assert_eq!(encode(Dialect::Kairosdb, &catalog, &far).1, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn encoded_batches_decode_to_the_same_samples(
        names in proptest::collection::btree_map("[a-z0-9._/-]{1,60}", proptest::collection::btree_map("[a-z]{1,4}", "[a-z0-9._/-]{1,9}", 0..8), 1..80),
        samples in any_samples(80, true), pieces in proptest::collection::vec(1..700_usize, 0..60), millis in 0..1_000_i64,
    ) {
        let catalog: Catalog = names.iter().map(|(name, labels)| SeriesKey::with_labels(name, labels)).collect();
        let known = catalog.len() as u32;
        for dialect in BOTH {
            let mut encoder = PutEncoder::new(dialect, &catalog).unwrap();
            let (mut payload, mut expected) = (Vec::new(), Vec::new());
            let mut buffer = BatchBuf::new();
            for &(id, at, value) in samples.iter().filter(|(id, ..)| id.0 < known) {
                // Half of them finer than a second, where that can be said.
                let at = if id.0 % 2 == 0 && at.as_secs() > 1_000_000_000 { at + millis * 1_000_000 } else { at };
                buffer.push(id, at, value);
                let has_time = dialect == Dialect::Kairosdb || (1..=0xffff_ffff).contains(&at.as_secs());
                if value.is_finite() && has_time { expected.push((id, at, value)) }
            }
            encoder.encode(&buffer.as_batch(), &mut payload);
            // 2^53 and more as digits is refused by nobody: an f64 holds what an f64 says.
            let mut heap = Heap::default();
            let mut decoder = PutDecoder::new(dialect, &clock());
            let result = feed(&mut decoder, &payload, pieces.iter().copied(), &mut heap);
            prop_assert_eq!((result, heap.problems()), (Ok(()), vec![]));
            prop_assert_eq!(encoder.skipped() as usize, buffer.len() - expected.len());
            prop_assert_eq!(heap.named(), named(&catalog, &expected));
        }
    }
}

/// What is written back for lines in one read.
fn answered(dialect: Dialect, lines: &str, is_listening: bool) -> (String, Next) {
    let mut decoder = PutDecoder::new(dialect, &clock());
    let mut heap = Heap::default();
    decoder.decode(lines.as_bytes(), &mut heap).unwrap();
    let peer = Peer {
        rejected: 0,
        is_listening,
    };
    let mut out = Vec::new();
    let next = decoder.answer(peer, &mut out);
    (String::from_utf8(out).unwrap(), next)
}

#[test]
fn opentsdb_answers_errors_and_questions_and_kairosdb_questions() {
    let lines = "put m 60 1 a=b\nput m 60\nversion\nget x\n";
    let opentsdb = "put: illegal argument: not enough arguments (need least 4, got 2)\n\
        net.opentsdb 2.4, as tsb speaks it\nunknown command: get.  Try `help'.\n";
    assert_eq!(
        answered(Dialect::Opentsdb, lines, true),
        (opentsdb.to_owned(), Next::More)
    );
    assert_eq!(answered(Dialect::Opentsdb, lines, false), (String::new(), Next::More));
    let kairosdb = "KairosDB 0.9.3\n".to_owned();
    assert_eq!(answered(Dialect::Kairosdb, lines, true), (kairosdb, Next::More));
    let (said, next) = answered(Dialect::Opentsdb, "exit\nput m 60\n", true);
    assert_eq!((said.as_str(), next), ("", Next::Over));
}

#[test]
fn opentsdb_says_which_good_samples_are_not_kept() {
    for dialect in BOTH {
        let mut decoder = PutDecoder::new(dialect, &clock());
        let mut heap = Heap {
            limit: 1,
            ..Heap::default()
        };
        // The second time they are known, and read on the fast path.
        for _ in 0..2 {
            decoder.decode(b"put m 60 1 a=b\nput n 60 2 a=b\n", &mut heap).unwrap();
            let (mut out, rejected) = (Vec::new(), 2);
            let is_listening = true;
            decoder.answer(Peer { rejected, is_listening }, &mut out);
            let refused = "put: HBase error: the store refused the sample\n";
            let expected = format!("put: unknown metric: No such name for 'metrics': 'n'\n{refused}{refused}");
            let said = String::from_utf8(out).unwrap();
            assert_eq!(
                said,
                if dialect == Dialect::Opentsdb {
                    expected.as_str()
                } else {
                    ""
                }
            );
        }
        assert_eq!((heap.samples.len(), heap.refused, heap.problems()), (2, 2, vec![]));
    }
}

#[test]
fn answers_about_refused_samples_are_bounded() {
    let mut out = Vec::new();
    let (rejected, is_listening) = (u64::MAX, true);
    PutDecoder::new(Dialect::Opentsdb, &clock()).answer(Peer { rejected, is_listening }, &mut out);
    assert!((super::decode::MAX_ANSWERS..super::decode::MAX_ANSWERS + 100).contains(&out.len()));
}

#[test]
fn a_flood_of_bad_lines_is_not_answered_without_end() {
    let (said, _) = answered(Dialect::Opentsdb, &"x\n".repeat(200_000), true);
    assert!((super::decode::MAX_ANSWERS..super::decode::MAX_ANSWERS + 100).contains(&said.len()));
}
