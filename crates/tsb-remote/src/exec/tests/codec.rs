//! Both forms: answers come back whole however their bytes are cut, and garbage is an error.

use proptest::collection::vec;
use proptest::prelude::*;
use tsb_core::bytes::{u32_at, u64_at};
use tsb_core::{Batch, Durability, Ids, SeriesId, SeriesKey, Times, Timestamp};
use tsb_stores::store::TimeRange;

use super::super::key::word_of;
use super::super::message::{Answer, Body, Decoder, Form, Malformed, REASONS, Request};
use super::super::text::LINE_MAX;
use crate::Chunk;

/// The answer as a program would write it.
fn written(answer: &Answer, form: Form) -> Vec<u8> {
    match form {
        Form::Text => written_text(answer).into_bytes(),
        Form::Binary => written_binary(answer),
    }
}

fn written_text(Answer { number, body }: &Answer) -> String {
    let verb = body.verb();
    match body {
        Body::Ok => format!("{verb} {number} 0\n"),
        Body::Refused(list) => {
            let lines = list
                .iter()
                .map(|(index, reason)| format!("{index} {}\n", reason.name()));
            format!("{verb} {number} {}\n{}", list.len(), lines.collect::<String>())
        }
        Body::Rows(chunk) => {
            let lines = chunk.times.iter().zip(&chunk.values);
            let lines = lines.map(|(at, value)| format!("{} {value:e}\r\n", at.0));
            let (count, id) = (chunk.times.len(), chunk.series.0);
            format!("{verb} {number} {count} {id}\n{}", lines.collect::<String>())
        }
        Body::Newest(list) => {
            let lines = list
                .iter()
                .map(|at| at.map_or("-\n".to_owned(), |at| format!("{}\n", at.0)));
            format!("{verb} {number} {}\n{}", list.len(), lines.collect::<String>())
        }
        Body::Stats { samples, bytes } => format!("{verb} {number} 0 {samples} {bytes}\n"),
        Body::Error(what) => format!("{verb} {number} 0 {what}\n"),
    }
}

fn written_binary(Answer { number, body }: &Answer) -> Vec<u8> {
    let mut payload = Vec::new();
    let (verb, count) = match body {
        Body::Ok => (16, 0),
        Body::Refused(list) => {
            for (index, reason) in list {
                let code = 1 + REASONS.iter().position(|known| known == reason).unwrap() as u32;
                payload.extend([index.to_le_bytes(), code.to_le_bytes()].concat());
            }
            (17, list.len())
        }
        Body::Rows(chunk) => {
            payload.extend([chunk.series.0.to_le_bytes(), [0; 4]].concat());
            chunk.times.iter().for_each(|at| payload.extend(at.0.to_le_bytes()));
            chunk
                .values
                .iter()
                .for_each(|value| payload.extend(value.to_le_bytes()));
            (18, chunk.times.len())
        }
        Body::Newest(list) => {
            let times = list.iter().map(|at| at.map_or(i64::MAX, |at| at.0));
            times.for_each(|at| payload.extend(at.to_le_bytes()));
            (19, list.len())
        }
        Body::Stats { samples, bytes } => {
            payload.extend([samples.to_le_bytes(), bytes.to_le_bytes()].concat());
            (20, 0)
        }
        Body::Error(what) => {
            payload.extend(what.as_bytes());
            (21, 0)
        }
    };
    let header = [payload.len() as u32, verb, *number, count as u32];
    let mut bytes: Vec<u8> = header.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(payload);
    bytes
}

fn bodies() -> impl Strategy<Value = Body> {
    let times = || vec(any::<i64>().prop_map(|at| Timestamp(at.min(i64::MAX - 1))), 0..20);
    let rows = (any::<u32>(), times()).prop_flat_map(|(id, times)| {
        let values = vec(
            any::<f64>().prop_filter("finite", |value| value.is_finite()),
            times.len(),
        );
        values.prop_map(move |values| {
            Body::Rows(Chunk {
                series: SeriesId(id),
                times: times.clone(),
                values,
            })
        })
    });
    prop_oneof![
        Just(Body::Ok),
        vec((any::<u32>(), proptest::sample::select(&REASONS[..])), 0..20).prop_map(Body::Refused),
        rows,
        vec(
            proptest::option::of(any::<i64>().prop_map(|at| Timestamp(at.min(i64::MAX - 1)))),
            0..20
        )
        .prop_map(Body::Newest),
        (any::<u64>(), any::<u64>()).prop_map(|(samples, bytes)| Body::Stats { samples, bytes }),
        "[a-z]{1,9}( [a-z]{1,9}){0,9}".prop_map(Body::Error),
    ]
}

fn forms() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::Text), Just(Form::Binary)]
}

/// All answers in bytes that arrive in pieces of `piece` bytes.
fn read(form: Form, bytes: &[u8], piece: usize) -> Result<Vec<Answer>, Malformed> {
    let mut decoder = Decoder::new(form);
    let mut answers = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        while let Some(answer) = decoder.next()? {
            answers.push(answer);
        }
    }
    Ok(answers)
}

proptest! {
    #[test]
    fn answers_come_back_in_pieces_of_any_length(
        form in forms(),
        numbered in vec((any::<u32>(), bodies()), 1..6),
        piece in 1_usize..100,
    ) {
        let answers: Vec<_> = numbered.into_iter().map(|(number, body)| Answer { number, body }).collect();
        let bytes: Vec<u8> = answers.iter().flat_map(|answer| written(answer, form)).collect();
        prop_assert_eq!(read(form, &bytes, piece), Ok(answers));
    }

    /// No bytes make the reader panic, and how they are cut changes nothing.
    #[test]
    fn damaged_answers_are_the_same_in_one_piece_and_in_many(
        form in forms(),
        number in any::<u32>(),
        body in bodies(),
        at in any::<proptest::sample::Index>(),
        with in any::<u8>(),
        piece in 1_usize..20,
    ) {
        let mut bytes = written(&Answer { number, body }, form);
        let at = at.index(bytes.len());
        bytes[at] = with;
        prop_assert_eq!(read(form, &bytes, piece), read(form, &bytes, bytes.len()));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(form in forms(), bytes in vec(any::<u8>(), 0..300), piece in 1_usize..50) {
        prop_assert_eq!(read(form, &bytes, piece).is_ok(), read(form, &bytes, 300).is_ok());
    }

    #[test]
    fn different_keys_have_different_lines(
        one in ("[a-c= %\n]{0,3}", vec(("[a= %]{0,2}", "[b=\u{a0} %]{0,2}"), 0..3)),
        other in ("[a-c= %\n]{0,3}", vec(("[a= %]{0,2}", "[b=\u{a0} %]{0,2}"), 0..3)),
    ) {
        let (one, other) = (SeriesKey::with_labels(one.0, one.1), SeriesKey::with_labels(other.0, other.1));
        let lines = (word_of(&one), word_of(&other));
        prop_assert_eq!(one == other, lines.0 == lines.1);
        let words = lines.0.split_whitespace().collect::<Vec<_>>();
        prop_assert_eq!(words.len(), 1 + one.labels().len());
        prop_assert!(words.join(" ") == lines.0);
    }
}

#[test]
fn requests_are_as_documented() {
    let keys = [(SeriesId(3), SeriesKey::with_labels("cpu load", [("host", "a=b")]))];
    let (ids, times) = ([SeriesId(3), SeriesId(9)], [Timestamp(-5), Timestamp(1_700)]);
    let batch = Batch::new(Ids::Each(&ids), Times::Each(&times), &[0.1, -0.0]);
    let range = TimeRange {
        start: Timestamp(0),
        end: Timestamp(60),
    };
    let requests = [
        (Request::Define(&keys), "define 7 1\n3 cpu%20load host=a%3Db\n"),
        (Request::Write(batch), "write 7 2\n3 -5 0.1\n9 1700 -0.0\n"),
        (Request::Query { series: &ids, range }, "query 7 2 0 60\n3\n9\n"),
        (Request::Newest(&ids), "newest 7 2\n3\n9\n"),
        (Request::Flush(Durability::Synced), "flush 7 0 synced\n"),
        (Request::Stats, "stats 7 0\n"),
        (Request::Close, "close 7 0\n"),
    ];
    for (verb, (request, text)) in (1..).zip(requests) {
        let (mut out, mut bytes) = (Vec::new(), Vec::new());
        Form::Text.put(7, &request, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), text);
        Form::Binary.put(7, &request, &mut bytes);
        assert_eq!(u32_at(&bytes, 0), Some(bytes.len() as u32 - 16));
        assert_eq!((u32_at(&bytes, 4), u32_at(&bytes, 8)), (Some(verb), Some(7)));
    }
    let mut bytes = Vec::new();
    Form::Binary.put(7, &Request::Write(batch), &mut bytes);
    assert_eq!(u32_at(&bytes, 12), Some(2));
    assert_eq!(u64_at(&bytes, 16).map(|at| at as i64), Some(-5));
    assert_eq!(u64_at(&bytes, 40), Some((-0.0_f64).to_bits()));
    assert_eq!(
        (u32_at(&bytes, 48), u32_at(&bytes, 52), bytes.len()),
        (Some(3), Some(9), 56)
    );
}

#[test]
fn what_is_wrong_is_named() {
    let text = |bytes: &str| read(Form::Text, bytes.as_bytes(), 7).unwrap_err().0;
    for (bytes, says) in [
        ("hello\n", "no known verb begins an answer in the line \"hello\""),
        ("ok\n", "the number of the request is missing"),
        ("ok 1\n", "the number of following lines is missing"),
        ("ok 1 2\n", "no lines can follow this verb"),
        ("rows 1 2\n", "the id of the series is missing"),
        ("rows 1 1000001 5\n", "more than 1000000 lines"),
        ("rows 1 1 5\n7 nan\n", "the line \"7 nan\" is not TIME VALUE"),
        ("rows 1 1 5\n7 1 2\n", "is not TIME VALUE"),
        ("refused 1 1\n0 lost\n", "the line \"0 lost\" is not INDEX REASON"),
        ("newest 1 1\nnone\n", "is not TIME or -"),
        ("stats 1 0 5\n", "the number of bytes is missing"),
    ] {
        let why = text(bytes);
        assert!(why.contains(says), "{bytes:?}: {why}");
    }
    assert!(text(&"x".repeat(LINE_MAX + 1)).contains("more than 8192 bytes"));
    let why = read(Form::Text, b"ok \xff\n", 9).unwrap_err().0;
    assert_eq!(why, "a line is not UTF-8");
    let binary = |header: [u32; 4]| {
        let bytes: Vec<u8> = header.iter().flat_map(|number| number.to_le_bytes()).collect();
        read(Form::Binary, &[&bytes[..], &[0; 12]].concat(), 5).unwrap_err().0
    };
    for (header, says) in [
        ([0, 15, 1, 0], "unknown verb 15"),
        ([u32::MAX, 18, 1, 0], "announces 4294967295 bytes"),
        ([12, 18, 1, 1_000_001], "and 1000001 rows"),
        ([12, 18, 1, 3], "the bytes end within a value"),
        ([12, 17, 1, 1], "a value is invalid"),
        ([12, 16, 1, 0], "12 bytes too many"),
    ] {
        let why = binary(header);
        assert!(why.contains(says), "{header:?}: {why}");
    }
}
