//! What is asked and what is answered, byte by byte, however the bytes are cut.

use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::bytes::percent;
use crate::time::{ManualClock, Timestamp};
use crate::wire::testing::Heap;
use crate::wire::{Next, Peer};

fn decoder(protocol: Protocol) -> Box<dyn Decoder> {
    let databases = Databases::default();
    assert!(databases.create("d"));
    let clock = Arc::new(ManualClock::new());
    super::decoder(protocol, clock, &Room::default(), &databases).unwrap()
}

/// Presents `bytes` in pieces of at most `step`, and returns what was answered.
fn talk(decoder: &mut dyn Decoder, bytes: &[u8], step: usize, heap: &mut Heap) -> (String, Next) {
    let (mut out, mut waiting, mut last) = (Vec::new(), Vec::new(), Next::More);
    for piece in bytes.chunks(step.max(1)) {
        waiting.extend_from_slice(piece);
        loop {
            let taken = decoder.decode(&waiting, heap).unwrap();
            waiting.drain(..taken);
            let peer = Peer {
                rejected: 0,
                is_listening: true,
            };
            last = decoder.answer(peer, &mut out);
            if last != Next::Again {
                break;
            }
        }
    }
    decoder.finish(&waiting, heap);
    (String::from_utf8(out).unwrap(), last)
}

fn post(target: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: h\r\n{more}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn chunked(target: &str, pieces: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("POST {target} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
    for piece in pieces {
        bytes.extend_from_slice(format!("{:x};odd=1\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
    bytes
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// The status and the body of one answer.
fn ask(protocol: Protocol, request: &[u8]) -> (u16, String, Heap) {
    let mut heap = Heap::default();
    let (answer, _) = talk(&mut *decoder(protocol), request, usize::MAX, &mut heap);
    let (answer, length) = Answer::read(answer.as_bytes())
        .unwrap()
        .unwrap_or_else(|| panic!("{answer}"));
    assert!(length > 0);
    (answer.status, String::from_utf8(answer.body).unwrap(), heap)
}

const LINE: &[u8] = b"cpu,host=a value=1 5\n";

/// What InfluxDB answers to a request, and how many samples it takes.
fn check(request: &[u8], status: u16, body: &str, samples: usize) {
    let (was, text, heap) = ask(Protocol::Influx, request);
    let shown = request.escape_ascii();
    assert_eq!(
        (was, text.trim_end(), heap.samples.len()),
        (status, body, samples),
        "{shown}"
    );
}

fn error(text: &str) -> String {
    format!("{{\"error\":{}}}", serde_json::json!(text))
}

#[test]
fn influx_answers_writes_as_the_server_does() {
    let write = |body: &[u8]| post("/write?db=d", "", body);
    check(&write(LINE), 204, "", 1);
    check(&write(b"cpu value=1"), 204, "", 1);
    check(&write(b"# nothing\n"), 204, "", 0);
    check(&write(b""), 200, "", 0);
    check(&post("/write", "", LINE), 400, &error("database is required"), 0);
    check(&post("/write?db=", "", LINE), 400, &error("database is required"), 0);
    check(
        &post("/write?db=e", "", LINE),
        404,
        &error("database not found: \"e\""),
        0,
    );
    check(
        &write(b"cpu\n"),
        400,
        &error("unable to parse 'cpu': missing fields"),
        0,
    );
    check(
        &write(b"cpu value=1\ncpu\nmem value=x\n"),
        400,
        &error(
            "partial write: unable to parse 'cpu': missing fields\nunable to parse 'mem value=x': invalid boolean dropped=0",
        ),
        1,
    );
    check(
        &write(b"cpu value=1,up=true 7\n"),
        400,
        &error("partial write: a boolean is not supported here dropped=1"),
        1,
    );
    check(
        &post("/write?db=d&precision=x", "", LINE),
        400,
        &error("invalid precision \"x\" (use n, u, ms, s, m or h)"),
        0,
    );
}

#[test]
fn influx_answers_other_requests_as_the_server_does() {
    check(b"GET /ping HTTP/1.1\r\n\r\n", 204, "", 0);
    check(
        b"GET /write?db=d HTTP/1.1\r\n\r\n",
        405,
        &error("Method Not Allowed"),
        0,
    );
    check(b"GET /nowhere HTTP/1.1\r\n\r\n", 404, &error("not found"), 0);
    check(
        b"GET /query HTTP/1.1\r\n\r\n",
        400,
        &error("missing required parameter \"q\""),
        0,
    );
    let gzipped = post("/write?db=d", "Content-Encoding: gzip\r\n", &gzip(LINE));
    check(&gzipped, 204, "", 1);
    let cut = post("/write?db=d", "Content-Encoding: gzip\r\n", &gzip(LINE)[..15]);
    check(&cut, 400, &error("a compressed body is not gzip"), 0);
    check(
        &chunked("/write?db=d", &[b"cpu va", b"lue=1\nmem value=", b"2"]),
        204,
        "",
        2,
    );
    let long = format!("POST /write?db=d HTTP/1.1\r\nContent-Length: {}\r\n\r\n", MAX_BODY + 1);
    check(long.as_bytes(), 413, &error("Request Entity Too Large"), 0);
    check(b"hello\r\n\r\n", 400, &error("the head of a request is not HTTP/1"), 0);
    let both = b"POST /write?db=d HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(both, 400, &error("a body has both a length and chunks"), 0);
}

#[test]
fn databases_are_created_shown_and_dropped() {
    let mut decoder = decoder(Protocol::Influx);
    let mut query = |text: &str| {
        let request = post(
            "/query",
            "Content-Type: application/x-www-form-urlencoded\r\n",
            format!("q={}", percent::encoded(text)).as_bytes(),
        );
        let (answer, next) = talk(&mut *decoder, &request, 7, &mut Heap::default());
        assert_eq!(next, Next::More);
        answer.split_once("\r\n\r\n").unwrap().1.trim_end().to_owned()
    };
    assert_eq!(
        query("CREATE DATABASE \"a b\" WITH REPLICATION 1; show databases"),
        r#"{"results":[{"statement_id":0},{"series":[{"columns":["name"],"name":"databases","values":[["a b"],["d"]]}],"statement_id":1}]}"#
    );
    // A client of Python says of all its requests that they are zipped, this one too.
    let zipped = b"POST /query?q=CREATE+DATABASE+x HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n";
    assert_eq!(ask(Protocol::Influx, zipped).0, 200);
    assert_eq!(query("DROP DATABASE d"), r#"{"results":[{"statement_id":0}]}"#);
    assert!(query("SHOW DATABASES").contains(r#"[["a b"]]"#));
    assert!(query("CREATE DATABASE").contains("expected identifier"));
    assert!(query("SELECT * FROM cpu").contains("not known to tsb"));
}

#[test]
fn the_precision_is_that_of_its_request() {
    let mut heap = Heap::default();
    let requests: Vec<u8> = [
        ("n", 1_i64),
        ("u", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ]
    .iter()
    .flat_map(|(name, _)| {
        post(
            &format!("/write?db=d&precision={name}"),
            "",
            b"cpu value=1 3\ncpu value=2 3\n",
        )
    })
    .collect();
    let (answers, _) = talk(&mut *decoder(Protocol::Influx), &requests, 11, &mut heap);
    assert_eq!(answers.matches("204 No Content").count(), 6);
    let times: Vec<i64> = heap.samples.iter().step_by(2).map(|(_, at, _)| at.0).collect();
    let units = [1, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000];
    assert_eq!(times, units.map(|unit| 3 * unit));
    let (status, _, heap) = ask(Protocol::Influx, &post("/write?db=d&precision=h", "", b"cpu value=1\n"));
    assert_eq!((status, heap.samples[0].1), (204, Timestamp(0)));
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on() {
    let mut heap = Heap::default();
    let request = post(
        "/write?db=d",
        "Expect: 100-continue\r\nConnection: close\r\n",
        b"cpu value=1 5\n",
    );
    let (answer, next) = talk(&mut *decoder(Protocol::Influx), &request, 40, &mut heap);
    assert!(
        answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n"),
        "{answer}"
    );
    assert_eq!((next, heap.samples.len()), (Next::Over, 1));
    let request = post("/write", "Expect: 100-continue\r\n", b"cpu value=1 5\n");
    let (answer, _) = talk(&mut *decoder(Protocol::Influx), &request, 40, &mut heap);
    assert!(
        answer.starts_with("HTTP/1.1 400 Bad Request\r\n") && answer.contains("Connection: close"),
        "{answer}"
    );
}

#[test]
fn refused_samples_are_not_confirmed() {
    let mut decoder = decoder(Protocol::Influx);
    let mut out = Vec::new();
    decoder
        .decode(&post("/write?db=d", "", b"cpu value=1 5\n"), &mut Heap::default())
        .unwrap();
    let peer = Peer {
        rejected: 1,
        is_listening: true,
    };
    assert_eq!(decoder.answer(peer, &mut out), Next::Again);
    let answer = Answer::read(&out).unwrap().unwrap().0;
    let client = Client::new(Protocol::Influx, "h", "d").unwrap();
    assert_eq!(
        (answer.status, client.outcome(&answer)),
        (400, WriteOutcome::Taken { refused: 1 })
    );
}

#[test]
fn a_line_without_end_is_counted_once_and_ends_the_connection() {
    let request = post(
        "/write?db=d",
        "",
        &[b"cpu value=1 5\n".as_slice(), b"x".repeat(70_000).as_slice()].concat(),
    );
    let (status, _, heap) = ask(Protocol::Influx, &request);
    assert_eq!((status, heap.samples.len()), (400, 1));
    assert_eq!(heap.problems(), ["a line is longer than 65535 bytes"]);
}

#[test]
fn a_bomb_of_zeros_is_cut_off() {
    let bomb = gzip(&vec![b'\n'; 1 << 20]).repeat(26);
    let request = post("/write?db=d", "Content-Encoding: gzip\r\n", &bomb);
    let (status, ..) = ask(Protocol::Influx, &request);
    assert_eq!(status, 413);
}

#[test]
fn kairosdb_answers_as_the_server_does() {
    let check = |body: &str, status: u16, answer: &str, samples: usize| {
        let (was, text, heap) = ask(Protocol::KairosdbJson, &post("/api/v1/datapoints", "", body.as_bytes()));
        assert_eq!(
            (was, text.as_str(), heap.samples.len()),
            (status, answer, samples),
            "{body}"
        );
    };
    let good = r#"{"name":"m","datapoints":[[1000,4.5]],"tags":{"a":"b"}}"#;
    check(good, 204, "", 1);
    let second = r#"{"name":"m","datapoints":[[1,2]],"tags":{}}"#;
    check(
        &format!("[{good},{second},{good}]"),
        400,
        r#"{"errors":["a metric has no tag"]}"#,
        1,
    );
    check("{", 400, r#"{"errors":["a body is not JSON of the expected form"]}"#, 0);
    let zipped = gzip(good.as_bytes());
    let request = post("/api/v1/datapoints", "Content-Type: application/gzip\r\n", &zipped);
    assert_eq!(ask(Protocol::KairosdbJson, &request).0, 204);
    assert_eq!(
        ask(Protocol::KairosdbJson, b"GET /api/v1/version HTTP/1.1\r\n\r\n").0,
        200
    );
    assert_eq!(ask(Protocol::KairosdbJson, b"GET / HTTP/1.1\r\n\r\n").0, 404);
}

/// A remote write of `samples` samples of the series `m`, and its snappy block.
fn write_request(samples: usize) -> (Vec<u8>, Vec<u8>) {
    let catalog: crate::series::Catalog = [crate::series::SeriesKey::new("m")].into_iter().collect();
    let mut body = Vec::new();
    let mut encoder = Protocol::RemoteWrite.encoder(&catalog).unwrap();
    for second in 0..samples {
        let at = Timestamp::from_secs(second as i64);
        encoder.encode(
            &crate::batch::Batch::tick(crate::series::SeriesId(0), at, &[1.0]),
            &mut body,
        );
    }
    let mut packed = body.clone();
    BodyPacker::from(Packing::Snappy).pack(&mut packed, 0);
    (body, packed)
}

#[test]
fn remote_write_answers_as_its_specification_asks() {
    const SNAPPY: &str = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";
    let (plain, packed) = write_request(3);
    let write = |more: &str, body: &[u8]| ask(Protocol::RemoteWrite, &post("/api/v1/write", more, body));
    let check = |(status, text, heap): (u16, String, Heap), wanted: u16, samples: usize, said: &str| {
        assert_eq!((status, heap.samples.len()), (wanted, samples), "{text}");
        assert!(text.contains(said), "{text}");
    };
    check(write(SNAPPY, &packed), 204, 3, "");
    check(write("", &plain), 204, 3, "");
    check(write("Content-Encoding: gzip\r\n", &gzip(&plain)), 204, 3, "");
    check(
        ask(Protocol::RemoteWrite, &post("/api/v1/push", SNAPPY, &packed)),
        204,
        3,
        "",
    );
    check(
        ask(Protocol::RemoteWrite, &post("/", SNAPPY, &packed)),
        404,
        0,
        "/api/v1/write",
    );
    check(
        ask(Protocol::RemoteWrite, b"GET /api/v1/write HTTP/1.1\r\n\r\n"),
        405,
        0,
        "",
    );
    let second = "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request\r\n";
    check(write(second, &packed), 415, 0, "send 1.0");
    check(write(SNAPPY, &packed[..packed.len() - 1]), 400, 0, "no snappy block");
    check(write(SNAPPY, b""), 400, 0, "no snappy block");
    let bad = [plain.as_slice(), b"\x0a\xff"].concat();
    check(
        write("", &bad),
        400,
        3,
        "1 invalid: a body is not a WriteRequest in protobuf",
    );
    let influx = post("/write?db=d", "Content-Encoding: snappy\r\n", LINE);
    check(ask(Protocol::Influx, &influx), 415, 0, "");
}

#[test]
fn otlp_answers_with_what_was_rejected() {
    const KIND: &str = "Content-Type: application/x-protobuf\r\n";
    let catalog: crate::series::Catalog = [crate::series::SeriesKey::new("m")].into_iter().collect();
    let mut body = Vec::new();
    let batch = crate::batch::Batch::tick(crate::series::SeriesId(0), Timestamp(7), &[1.0]);
    Protocol::Otlp.encoder(&catalog).unwrap().encode(&batch, &mut body);
    let client = Client::new(Protocol::Otlp, "h", "").unwrap();
    let check = |request: &[u8], status: u16, samples: usize, verdict: WriteOutcome| {
        let (was, body, heap) = ask(Protocol::Otlp, request);
        let answer = Answer {
            status: was,
            body: body.into_bytes(),
            keeps_alive: true,
        };
        let shown = request.escape_ascii();
        assert_eq!((was, heap.samples.len()), (status, samples), "{shown}");
        assert_eq!(client.outcome(&answer), verdict, "{shown}");
    };
    let taken = |refused| WriteOutcome::Taken { refused };
    check(&post("/v1/metrics", KIND, &body), 200, 1, taken(0));
    let zipped = format!("{KIND}Content-Encoding: gzip\r\n");
    check(&post("/v1/metrics", &zipped, &gzip(&body)), 200, 1, taken(0));
    let histogram = b"\x0a\x0b\x12\x09\x12\x07\x0a\x01h\x4a\x02\x0a\x00";
    let both = [body.as_slice(), histogram].concat();
    check(&post("/v1/metrics", KIND, &both), 200, 1, taken(1));
    check(&post("/v1/metrics", KIND, &body[..9]), 400, 0, WriteOutcome::Unknown);
    let json = "Content-Type: application/json\r\n";
    check(&post("/v1/metrics", json, b"{}"), 415, 0, WriteOutcome::Refused);
    check(&post("/v1/traces", KIND, &body), 404, 0, WriteOutcome::Refused);
    check(b"GET /v1/metrics HTTP/1.1\r\n\r\n", 405, 0, WriteOutcome::Refused);
}

/// Five bytes state a gigabyte: it is refused before anything is inflated.
#[test]
fn a_snappy_block_is_refused_by_the_length_that_it_states() {
    let bomb = |length: u64| {
        let mut body = Vec::new();
        crate::bytes::varint::put(&mut body, length);
        body.extend_from_slice(&[0xfe, 1, 0]);
        post("/api/v1/write", "Content-Encoding: snappy\r\n", &body)
    };
    assert_eq!(ask(Protocol::RemoteWrite, &bomb(1 << 30)).0, 413);
    assert_eq!(ask(Protocol::RemoteWrite, &bomb(MAX_BODY + 1)).0, 413);
    assert_eq!(ask(Protocol::RemoteWrite, &bomb(MAX_BODY)).0, 400);
    // What all connections hold together is bounded, too.
    let room = Room {
        held: crate::wire::Budget::new(1 << 20),
        ..Room::default()
    };
    let clock = Arc::new(ManualClock::new());
    let databases = Databases::default();
    let mut decoder = super::decoder(Protocol::RemoteWrite, clock, &room, &databases).unwrap();
    let (answers, _) = talk(&mut *decoder, &bomb(2 << 20), 7, &mut Heap::default());
    assert!(answers.starts_with("HTTP/1.1 503"), "{answers}");
    drop(decoder);
    assert_eq!(room.held.left(), 1 << 20);
}

#[test]
fn a_server_understands_every_command_of_the_client() {
    for is_gzip in [false, true] {
        let client = Client::new(Protocol::Influx, "h:1", "a b").unwrap();
        understood(&if is_gzip { client.with_gzip() } else { client });
    }
    assert!(Client::new(Protocol::Graphite, "h", "d").is_none());
}

fn understood(client: &Client) {
    let mut decoder = decoder(Protocol::Influx);
    let (mut heap, mut request) = (Heap::default(), Vec::new());
    client.begin(&mut request);
    assert_eq!(request.len(), client.body());
    request.extend_from_slice(b"cpu value=1 5\n");
    BodyPacker::from(client.packing()).pack(&mut request, client.body());
    assert_eq!(client.end(&mut request), request.len() - client.body());
    let both = [client.prelude().unwrap().as_bytes(), &request].concat();
    let (answers, _) = talk(&mut *decoder, &both, 9, &mut heap);
    let (first, length) = Answer::read(answers.as_bytes()).unwrap().unwrap();
    let (second, _) = Answer::read(&answers.as_bytes()[length..]).unwrap().unwrap();
    assert_eq!((first.status, second.status, heap.samples.len()), (200, 204, 1));
    assert_eq!(client.outcome(&second), WriteOutcome::Taken { refused: 0 });
}

#[test]
fn answers_are_judged_by_what_is_known_of_the_samples() {
    let client = Client::new(Protocol::Influx, "h", "d").unwrap();
    let check = |status: u16, body: &str, verdict: WriteOutcome| {
        let answer = Answer {
            status,
            body: body.as_bytes().to_vec(),
            keeps_alive: true,
        };
        assert_eq!(client.outcome(&answer), verdict, "{status} {body}");
    };
    check(204, "", WriteOutcome::Taken { refused: 0 });
    check(
        400,
        r#"{"error":"unable to parse 'x': missing fields"}"#,
        WriteOutcome::Refused,
    );
    check(
        400,
        r#"{"error":"partial write: field type conflict dropped=3"}"#,
        WriteOutcome::Taken { refused: 3 },
    );
    check(
        400,
        r#"{"error":"partial write: unable to parse 'x': bad timestamp dropped=0"}"#,
        WriteOutcome::Unknown,
    );
    check(404, r#"{"error":"database not found: \"d\""}"#, WriteOutcome::Refused);
    check(503, "", WriteOutcome::Unknown);
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    for end in 0..chunked.len() {
        assert_eq!(Answer::read(&chunked[..end]), Ok(None), "{end}");
    }
    let (answer, length) = Answer::read(chunked).unwrap().unwrap();
    assert_eq!(
        (answer.body.as_slice(), answer.keeps_alive, length),
        (b"abc".as_slice(), false, chunked.len())
    );
    assert!(Answer::read(b"SSH-2.0\r\n").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However bytes are cut, and whatever the framing, the same samples and answers.
    #[test]
    fn framing_changes_nothing(
        lines in prop::collection::vec((0_u32..40, -1000_i32..1000, 1_i64..1000), 0..60),
        cuts in prop::collection::vec(1_usize..50, 1..8),
        step in 1_usize..200,
        zipped in any::<bool>(),
    ) {
        let body: Vec<String> = lines.iter().map(|(name, value, at)| format!("m{name} value={value} {at}\n")).collect();
        let body = body.concat();
        let content = if zipped { gzip(body.as_bytes()) } else { body.clone().into_bytes() };
        let more = if zipped { "Content-Encoding: gzip\r\n" } else { "" };
        let (mut pieces, mut rest, mut turn) = (Vec::new(), content.as_slice(), 0);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(cuts[turn % cuts.len()].min(rest.len()));
            pieces.push(piece);
            (rest, turn) = (behind, turn + 1);
        }
        let mut cut = chunked("/write?db=d", &pieces);
        if zipped {
            let at = cut.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            cut.splice(at..at, b"\r\nContent-Encoding: gzip".iter().copied());
        }
        let both = [post("/write?db=d", more, &content), cut].concat();
        let mut heap = Heap::default();
        let (answers, _) = talk(&mut *decoder(Protocol::Influx), &both, step, &mut heap);
        let status = if body.is_empty() { "200 OK" } else { "204 No Content" };
        prop_assert_eq!(answers.matches(status).count(), 2, "{}", answers);
        prop_assert_eq!(heap.samples.len(), 2 * lines.len());
        for (sample, line) in heap.samples.iter().zip(lines.iter().chain(&lines)) {
            prop_assert_eq!((sample.1, sample.2), (Timestamp(line.2), f64::from(line.1)));
        }
    }

    #[test]
    fn any_bytes_are_survived(
        start in prop::sample::select(vec!["", "POST /write?db=d HTTP/1.1\r\n", "POST /write?db=d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"]),
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        step in 1_usize..500,
    ) {
        let bytes = [start.as_bytes(), &bytes].concat();
        let mut heap = Heap::default();
        talk(&mut *decoder(Protocol::Influx), &bytes, step, &mut heap);
        prop_assert!(heap.samples.len() < 2000);
    }
}
