//! What each backend returns: the ranges, the order, the buckets, and the rows of the benchmark.

use super::*;

/// The client of the benchmark at `cf205b2`: a request with `urllib2`, for which every request is
/// a connection.
fn classic(method: &str, target: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {target} HTTP/1.1\r\nAccept-Encoding: identity\r\nContent-Length: {length}\r\n\
         Hawkular-Tenant: python_test\r\nUser-Agent: Python-urllib/2.7\r\nConnection: close\r\n\
         Host: localhost\r\nContent-Type: application/json\r\n\r\n{body}"
    )
}

/// Runs the benchmark as it was; returns the requests, the samples read, and the empty answers.
fn benchmark(behaviour: Behaviour, backend: Backend) -> (usize, usize, usize) {
    const T0: i64 = 1_498_595_865_123;
    let mut server = Server::new(behaviour, backend);
    let (mut requests, mut rows, mut empty) = (0, 0, 0);
    let mut ask = |request: String, requests: &mut usize| {
        *requests += 1;
        // The pieces in which bytes arrive change nothing.
        parsed(&server.talk(request.as_bytes(), 7 + *requests % 300))
    };
    let status = ask(classic("GET", "/hawkular/metrics/status", "null"), &mut requests);
    assert!(status.0 == 200 && status.1.contains("\"MetricsService\":\"STARTED\""));
    for i in 1..=999 {
        let at = T0 - i * 60_000;
        let body = format!(
            "[\n  {{\n    \"data\": [\n      {{\n        \"timestamp\": {at}, \n        \"value\": {}.27, \n        \
             \"tags\": {{}}\n      }}\n    ], \n    \"id\": \"example.doc.1\"\n  }}\n]",
            i % 100
        );
        let written = ask(classic("POST", "/hawkular/metrics/gauges/raw", &body), &mut requests);
        assert_eq!(written.0, 200, "{}", written.1);
    }
    for i in 1..=999 {
        let (end, start) = (T0 - i * 60_000, T0 - i * 60_000 - 90_000);
        let target = format!("/hawkular/metrics/gauges/example.doc.1/raw?start={start}&end={end}");
        let answer = ask(classic("GET", &target, "null"), &mut requests);
        if answer.0 == 204 {
            empty += 1;
        } else {
            rows += items(&answer, 0).len();
        }
    }
    assert!(server.problems().is_empty(), "nothing of it is malformed");
    (requests, rows, empty)
}

#[test]
fn the_benchmark_reads_as_many_rows_as_its_backend_returned() {
    use Behaviour::{Corrected, Head, Mohawk0154};
    assert_eq!(benchmark(Mohawk0154, Backend::Memory), (1_999, 998, 0));
    assert_eq!(benchmark(Mohawk0154, Backend::Mongo), (1_999, 998, 0));
    assert_eq!(benchmark(Mohawk0154, Backend::Sqlite3), (1_999, 1_997, 0));
    // As Hawkular: every window has a row but the last, which is 204.
    assert_eq!(benchmark(Corrected, Backend::Memory), (1_999, 998, 1));
    // Ends are cut to whole seconds, so each window still has one.
    assert_eq!(benchmark(Head, Backend::Memory), (1_999, 998, 0));
}

#[test]
fn ranges_include_what_their_backend_includes() {
    use Behaviour::{Corrected, Head, Mohawk0154};
    let base = NOW - 600_500;
    for (behaviour, backend, expected) in [
        (Mohawk0154, Backend::Memory, vec![120_000, 60_000]),
        (Mohawk0154, Backend::Sqlite3, vec![180_000, 120_000, 60_000]),
        (Mohawk0154, Backend::Mongo, vec![0, 60_000, 120_000]),
        (Head, Backend::Memory, vec![0, 60_000, 120_000]),
        (Head, Backend::Sqlite3, vec![0, 60_000, 120_000]),
        (Corrected, Backend::Memory, vec![0, 60_000, 120_000]),
    ] {
        let mut server = Server::new(behaviour, backend);
        server.write("a", &[0, 60_000, 120_000, 180_000].map(|at| (base + at, 1.0)));
        // The last sample keeps the newest second away from the end.
        server.write("a", &[(base + 300_000, 1.0)]);
        let (start, end) = (base, base + 180_000);
        let answer = server.get(&format!("gauges/a/raw?start={start}&end={end}"));
        assert_eq!(times(&answer, base), expected, "{behaviour:?} {backend:?}");
    }
}

#[test]
fn order_and_limit() {
    let base = NOW - 600_500;
    let samples: Vec<(i64, f64)> = (1..=5).map(|i| (base + i * 60_000, i as f64)).collect();
    for (behaviour, backend, query, expected) in [
        (Behaviour::Mohawk0154, Backend::Memory, "limit=2", vec![5, 4]),
        (Behaviour::Mohawk0154, Backend::Memory, "limit=x", vec![5, 4, 3, 2, 1]),
        (Behaviour::Mohawk0154, Backend::Sqlite3, "limit=2&order=ASC", vec![1, 2]),
        (Behaviour::Mohawk0154, Backend::Mongo, "limit=2&order=ASC", vec![5, 4]),
        (Behaviour::Mohawk0154, Backend::Mongo, "limit=2&order=DESC", vec![1, 2]),
        (Behaviour::Head, Backend::Memory, "limit=2", vec![1, 2]),
        (Behaviour::Head, Backend::Mongo, "limit=2&order=DESC", vec![5, 4]),
        (Behaviour::Corrected, Backend::Memory, "limit=2&order=DESC", vec![5, 4]),
        (Behaviour::Corrected, Backend::Memory, "limit=3", vec![1, 2, 3]),
    ] {
        let mut server = Server::new(behaviour, backend);
        server.write("a", &samples);
        server.write("other", &[(base + 400_000, 0.0)]);
        let (start, end) = (base, base + 400_000);
        let answer = server.get(&format!("gauges/a/raw?start={start}&end={end}&{query}"));
        let found: Vec<i64> = items(&answer, base).into_iter().map(|item| item.1 as i64).collect();
        assert_eq!(found, expected, "{behaviour:?} {backend:?} {query}");
    }
}

#[test]
fn the_default_range_ends_now() {
    let hour = 3_600_000;
    for (behaviour, expected) in [
        (Behaviour::Mohawk0154, vec![-hour, -7 * hour]),
        (Behaviour::Head, vec![-600_000]),
        (Behaviour::Corrected, vec![-7 * hour, -hour, -600_000]),
    ] {
        let mut server = Server::new(behaviour, Backend::Memory);
        let mut samples = vec![(NOW - 9 * hour, 0.0), (NOW - 7 * hour, 0.0), (NOW - hour, 0.0)];
        if behaviour != Behaviour::Mohawk0154 {
            samples.push((NOW - 600_000, 0.0));
        }
        server.write("a", &samples);
        // 0.15.4 does not show what is within the newest second.
        server.write("other", &[(NOW, 0.0)]);
        assert_eq!(times(&server.get("gauges/a/raw"), NOW), expected, "{behaviour:?}");
    }
}

#[test]
fn the_last_version_cuts_times_to_seconds_and_knows_units() {
    let mut server = Server::new(Behaviour::Head, Backend::Memory);
    server.write("a", &[(NOW - 120_500, 1.0), (NOW - 60_500, 2.0)]);
    let end = NOW - 60_000;
    // 1,499,999,940,500 is cut to 1,499,999,940,000, which excludes the second.
    assert_eq!(times(&server.get(&format!("gauges/a/raw?end={end}")), NOW), [-120_500]);
    for (start, expected) in [("-2mn", 2), ("-121s", 2), ("-1h", 2), ("-1d", 2), ("-119000ms", 1)] {
        let answer = server.get(&format!("gauges/a/raw?start={start}"));
        assert_eq!(items(&answer, NOW).len(), expected, "{start}");
    }
    let (status, body) = server.get("gauges/a/raw?start=soon");
    assert_eq!(status, 500);
    assert_eq!(body, r#"{"code":500,"message":"Can't parse timestamp: soon"}"#);
    assert_eq!(server.problems(), ["Can't parse timestamp"]);
    let mut exact = Server::new(Behaviour::Corrected, Backend::Memory);
    exact.write("a", &[(NOW - 120_500, 1.0), (NOW - 60_500, 2.0)]);
    assert_eq!(
        times(&exact.get(&format!("gauges/a/raw?end={end}")), NOW),
        [-120_500, -60_500]
    );
    assert_eq!(
        times(&exact.get("gauges/a/raw?start=-120501ms&end=-2mn"), NOW),
        [-120_500]
    );
}

/// Samples of four minutes: 1 and 3 in the first, none in the second, 5 in the third and 7 in the
/// fourth.
fn of_minutes(server: &mut Server, base: i64) {
    server.write(
        "a",
        &[
            (base + 1_000, 1.0),
            (base + 31_000, 3.0),
            (base + 125_000, 5.0),
            (base + 185_000, 7.0),
        ],
    );
    server.write("other", &[(base + 600_000, 0.0)]);
}

/// The buckets of an answer, with times in seconds from the base.
fn stats(server: &mut Server, query: &str) -> String {
    let (start, end) = (MINUTE, MINUTE + 240_000);
    let (status, body) = server.get(&format!("gauges/a/stats?start={start}&end={end}&{query}"));
    assert_eq!(status, 200, "{body}");
    let mut buckets: Vec<serde_json::Value> = serde_json::from_str(&body).unwrap();
    for bucket in &mut buckets {
        for name in ["start", "end"] {
            bucket[name] = ((bucket[name].as_i64().unwrap() - MINUTE) / 1_000).into();
        }
    }
    serde_json::to_string(&buckets).unwrap().replace('"', "")
}

/// A whole minute, where a slot begins.
const MINUTE: i64 = 1_499_999_400_000;

fn server(behaviour: Behaviour, backend: Backend) -> Server {
    let mut server = Server::new(behaviour, backend);
    of_minutes(&mut server, MINUTE);
    server
}

#[test]
fn buckets_of_0154() {
    // From the slot after the end back, few statistics, and an empty bucket counts twice.
    let mut memory = server(Behaviour::Mohawk0154, Backend::Memory);
    assert_eq!(
        stats(&mut memory, "bucketDuration=60s&limit=3"),
        "[{empty:true,end:270,start:210},\
         {avg:7,empty:false,end:210,last:7,samples:1,start:150,sum:7}]"
    );
    let all = stats(&mut memory, "bucketDuration=100s&order=ASC");
    assert!(
        all.contains("end:270,") && all.contains("start:180"),
        "100 s are three slots: {all}"
    );
    // Gaps are filled; the order and the limit are ignored.
    let mut sqlite = server(Behaviour::Mohawk0154, Backend::Sqlite3);
    assert_eq!(
        stats(&mut sqlite, "bucketDuration=60s&limit=1&order=DESC"),
        "[{avg:2,empty:false,end:60,max:3,min:1,samples:2,start:0,sum:4},\
         {empty:true,end:120,start:60},\
         {avg:5,empty:false,end:180,max:5,min:5,samples:1,start:120,sum:5},\
         {avg:7,empty:false,end:240,max:7,min:7,samples:1,start:180,sum:7}]"
    );
    assert_eq!(
        sqlite
            .get("gauges/none/stats?start=1000&end=99000&bucketDuration=60s")
            .1,
        "[]"
    );
    // Not swapped, as raw data is, and without gaps.
    let mut mongo = server(Behaviour::Mohawk0154, Backend::Mongo);
    assert_eq!(
        stats(&mut mongo, "bucketDuration=60s&limit=2"),
        "[{avg:7,empty:false,end:240,first:7,last:7,max:7,min:7,samples:1,start:180,sum:7},\
         {avg:5,empty:false,end:180,first:5,last:5,max:5,min:5,samples:1,start:120,sum:5}]"
    );
    // One second is not more than one, so it asks for raw data.
    assert!(stats(&mut mongo, "bucketDuration=2s").contains("avg"));
    let raw = mongo.get("gauges/a/stats?bucketDuration=1s");
    assert!(!raw.1.contains("avg"), "{}", raw.1);
}

#[test]
fn buckets_of_the_last_version_and_the_corrected_one() {
    let mut memory = server(Behaviour::Head, Backend::Memory);
    let expected = "[{avg:2,empty:false,end:60,first:1,last:3,max:3,min:1,samples:2,start:0,sum:4},\
                    {avg:5,empty:false,end:180,first:5,last:5,max:5,min:5,samples:1,start:120,sum:5}]";
    assert_eq!(stats(&mut memory, "bucketDuration=60s&limit=2"), expected);
    let mut sqlite = server(Behaviour::Head, Backend::Sqlite3);
    assert_eq!(
        stats(&mut sqlite, "bucketDuration=2mn&order=DESC&limit=1"),
        "[{avg:6,empty:false,end:240,max:7,min:5,samples:2,start:120,sum:12}]"
    );
    let mut corrected = server(Behaviour::Corrected, Backend::Memory);
    assert_eq!(
        stats(&mut corrected, "bucketDuration=60s&limit=2"),
        "[{avg:2,empty:false,end:60,first:1,last:3,max:3,median:2,min:1,samples:2,start:0,std:1,sum:4},\
         {empty:true,end:120,start:60}]"
    );
    assert_eq!(
        corrected.get("gauges/a/stats"),
        (400, r#"{"errorMsg":"statistics need a bucketDuration"}"#.to_owned())
    );
    let (status, body) = corrected.get("gauges/a/stats?start=0&end=1500000000000&bucketDuration=1s");
    assert!(status == 400 && body.contains("shorter range"), "{body}");
}

#[test]
fn an_answer_has_a_bound() {
    let mut server = Server::new(Behaviour::Mohawk0154, Backend::Sqlite3);
    let key = metrics::key("t", "a");
    let many = (0..600_000).map(|i| (Timestamp::from_millis(MINUTE + i), 1.0));
    server.sink.samples.lock().insert(key, many.collect());
    let range = format!("start={MINUTE}&end={NOW}");
    assert_eq!(items(&server.get(&format!("gauges/a/raw?{range}")), 0).len(), 20_000);
    let (status, body) = server.get(&format!("gauges/a/raw?{range}&limit=1000000"));
    assert!(status == 500 && body.contains("500,000"), "{body}");
    let [problem] = server.problems()[..] else { panic!() };
    assert!(problem.contains("shorter range"), "{problem}");
    // Long answers come out of one budget for all connections.
    assert!(server.room.held.take(Room::default().held.left() - (1 << 20)));
    let reader = Box::new(ModelReader {
        samples: Arc::clone(&server.sink.samples),
        fails: false,
    });
    let mut decoder = server.endpoint.decoder(&server.clock, reader);
    let request = format!("GET /hawkular/metrics/gauges/a/raw?{range} HTTP/1.1\r\nHawkular-Tenant: t\r\n\r\n");
    let mut statuses = Vec::new();
    for _ in 0..3 {
        assert_eq!(
            decoder.decode(request.as_bytes(), &mut server.sink).unwrap(),
            request.len()
        );
        let mut out = Vec::new();
        let peer = Peer {
            rejected: 0,
            is_listening: false,
        };
        assert_eq!(decoder.answer(peer, &mut out), Next::Again);
        statuses.push(parsed(&String::from_utf8(out).unwrap()).0);
        if statuses.len() == 2 {
            decoder.answers_taken();
        }
    }
    assert_eq!(statuses, [200, 503, 200], "until the peer has taken the first");
}
