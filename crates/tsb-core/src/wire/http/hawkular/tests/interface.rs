//! The paths, the words and the errors of each server.

use super::*;

fn servers() -> [Server; 3] {
    Behaviour::ALL.map(|behaviour| Server::new(behaviour, Backend::Memory))
}

const BODY: &str =
    r#"[{"id":"a","data":[{"timestamp":1499999000000,"value":1.5},{"timestamp":1499999060000,"value":2}]}]"#;

#[test]
fn the_status_names_the_version_and_the_backend() {
    let mut old = Server::new(Behaviour::Mohawk0154, Backend::Sqlite3);
    let request = b"GET /hawkular/metrics/status HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_eq!(
        old.talk(request, 9),
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 122\r\nConnection: close\r\n\r\n\
         {\"MetricsService\":\"STARTED\",\"Implementation-Version\":\"0.21.0\",\
         \"MohawkVersion\":\"0.15.4\",\"MohawkBackend\":\"Backend-Sqlite3\"}\n"
    );
    let mut head = Server::new(Behaviour::Head, Backend::Mongo);
    let (status, body) = head.get("status/");
    assert_eq!(status, 200, "one slash at the end is ignored");
    assert!(body.contains("\"MohawkVersion\":\"0.33.3\",\"MohawkStorage\":\"Storage-Mongo\""));
    let answer = head.talk(request, 9);
    assert!(answer.contains("\r\nAccess-Control-Allow-Origin: *\r\n"), "{answer}");
    let mut corrected = Server::new(Behaviour::Corrected, Backend::Memory);
    assert_eq!(corrected.ask_as("", "GET", "status", "").0, 200);
}

#[test]
fn each_server_has_its_paths() {
    let [mut old, mut head, mut corrected] = servers();
    for server in [&mut old, &mut head, &mut corrected] {
        server.write("a", &[(NOW - 60_000, 1.0)]);
    }
    let tags = r#"{"x":"y"}"#;
    let query = r#"{"ids":["a"]}"#;
    for (method, path, body, expected) in [
        ("GET", "tenants", "", [200, 200, 200]),
        ("GET", "metrics", "", [200, 200, 200]),
        ("GET", "exports", "", [404, 200, 200]),
        ("GET", "gauges/a/raw", "null", [200, 200, 200]),
        ("GET", "gauges/a/data", "", [200, 200, 200]),
        ("GET", "gauges/a/stats?bucketDuration=60s", "", [200, 200, 200]),
        ("GET", "counters/a/raw", "", [200, 200, 200]),
        ("GET", "availability/a/raw", "", [200, 200, 200]),
        ("GET", "availability/a/data", "", [404, 404, 404]),
        ("POST", "gauges/data", BODY, [200, 200, 200]),
        ("POST", "counters/raw", BODY, [200, 200, 200]),
        ("POST", "availability/raw", BODY, [404, 404, 404]),
        ("POST", "gauges/raw/query", query, [200, 200, 200]),
        ("POST", "gauges/stats/query", query, [404, 200, 200]),
        ("POST", "m/stats/query", query, [404, 200, 200]),
        ("PUT", "gauges/a/tags", tags, [200, 200, 200]),
        ("PUT", "gauges/tags", r#"[{"id":"a","tags":{}}]"#, [404, 200, 200]),
        ("PUT", "counters/a/tags", tags, [200, 200, 200]),
        ("DELETE", "gauges/a/raw", "", [200, 200, 501]),
        ("DELETE", "gauges/a/tags/x", "", [200, 200, 200]),
        ("DELETE", "counters/a/raw", "", [404, 404, 404]),
        ("OPTIONS", "gauges/raw", "", [404, 200, 200]),
        ("OPTIONS", "status", "", [404, 404, 404]),
        ("POST", "status", "", [404, 404, 404]),
        ("GET", "gauges/a", "", [404, 404, 404]),
        ("GET", "gauges/a/b/raw", "", [404, 404, 404]),
        ("GET", "", "", [404, 404, 404]),
    ] {
        let found = [&mut old, &mut head, &mut corrected].map(|server| server.ask(method, path, body).0);
        assert_eq!(found, expected, "{method} {path}");
    }
    assert_eq!(old.get("x"), (404, "Page not found - 404\n".to_owned()));
    let error = r#"{"error":"404","message":"Page not found - 404"}"#;
    assert_eq!(head.get("x"), (404, error.to_owned()));
    assert!(
        old.problems()
            .iter()
            .all(|what| *what == "a path is none of Hawkular's")
    );
    let other = old.talk(b"GET / HTTP/1.0\r\n\r\n", 9);
    assert_eq!(parsed(&other).0, 404);
}

#[test]
fn a_write_is_answered_in_the_words_of_its_server() {
    let [mut old, mut head, mut corrected] = servers();
    assert_eq!(old.post("gauges/raw", BODY), (200, "{}\n".to_owned()));
    let received = r#"{"message":"Received 1 data items"}"#;
    assert_eq!(
        head.post("gauges/raw", BODY),
        (200, received.to_owned()),
        "metrics, not samples"
    );
    assert_eq!(corrected.post("gauges/raw", BODY), (200, "{}".to_owned()));
    for server in [&mut old, &mut head, &mut corrected] {
        let samples = server.sink.samples.lock();
        let of_a = &samples[&metrics::key("t", "a")];
        let expected = [(1_499_999_000_000, 1.5), (1_499_999_060_000, 2.0)];
        let expected = expected.map(|(at, value)| (Timestamp::from_millis(at), value));
        assert_eq!(*of_a, BTreeMap::from(expected));
    }
}

#[test]
fn bad_ids_are_answered_as_by_their_server_and_counted() {
    let [mut old, mut head, mut corrected] = servers();
    let body = r#"[{"id":"good","data":[{"timestamp":1,"value":1}]},{"id":"b&d","data":[]}]"#;
    let old_body = "<p>Error 504, Bad metrics ID</p>".to_owned();
    assert_eq!(old.post("gauges/raw", body), (504, old_body.clone()));
    assert_eq!(old.post("gauges/raw/query", r#"{"ids":["b&d"]}"#), (504, old_body));
    assert_eq!(old.get("gauges/b%26d/raw"), (504, String::new()));
    assert_eq!(old.ask("PUT", "gauges/a/tags", r#"{"a":"<"}"#), (504, String::new()));
    assert_eq!(old.get("metrics?tags=a:%3C"), (504, String::new()));
    let head_body = r#"{"code":500,"message":"Bad metrics ID"}"#.to_owned();
    assert_eq!(head.post("gauges/raw", body), (500, head_body.clone()));
    assert_eq!(head.get("gauges/b%26d/raw"), (500, head_body));
    assert_eq!(corrected.post("gauges/raw", body).0, 400);
    assert_eq!(corrected.get("gauges/b%26d/raw").0, 400);
    assert_eq!(
        (old.problems().len(), head.problems().len(), corrected.problems().len()),
        (5, 2, 2)
    );
    for server in [&old, &head, &corrected] {
        assert!(
            server.sink.samples.lock().is_empty(),
            "of such a body nothing is stored"
        );
    }
    // The last version allows one character more.
    assert_eq!((old.get("gauges/a@b/raw").0, head.get("gauges/a@b/raw").0), (504, 200));
    // Every allowed one, of which some are escaped in a path.
    let all = "gauges/a%20b+_,|:%2F[](.)*%2B-Z9/raw";
    assert_eq!((old.get(all).0, corrected.get(all).0), (200, 204));
    let long = format!(
        r#"[{{"id":"{}","data":[{{"timestamp":1,"value":1}}]}}]"#,
        "x".repeat(20_000)
    );
    assert_eq!(
        (old.post("gauges/raw", &long).0, corrected.post("gauges/raw", &long).0),
        (504, 400)
    );
    // As Go does, a bad escape is taken as no text.
    assert_eq!(
        (old.get("gauges/%zz/raw").0, corrected.get("gauges/%zz/raw").0),
        (200, 400)
    );
}

#[test]
fn bodies_that_are_none() {
    let [mut old, mut head, mut corrected] = servers();
    for body in [
        "",
        "[",
        "[{\"id\":\"a\",\"data\":[{\"timestamp\":1",
        "{}",
        "[1]",
        "x",
        "[{\"id\":{}}]",
    ] {
        assert_eq!(old.post("gauges/raw", body), (200, "{}\n".to_owned()), "{body}");
        assert_eq!(
            (head.post("gauges/raw", body).0, corrected.post("gauges/raw", body).0),
            (500, 400),
            "{body}"
        );
        let counted = [&mut old, &mut head, &mut corrected].map(|server| server.problems().len());
        assert_eq!(counted, [1, 1, 1], "{body}");
    }
    for body in ["null", "[]"] {
        assert_eq!(old.post("gauges/raw", body).0, 200);
        assert_eq!(
            (head.post("gauges/raw", body).0, corrected.post("gauges/raw", body).0),
            (200, 400)
        );
    }
    // Go's decoder does not look behind the value.
    let behind = format!("{BODY} x");
    assert_eq!(
        (
            old.post("gauges/raw", &behind).0,
            corrected.post("gauges/raw", &behind).0
        ),
        (200, 400)
    );
    let many = format!("[{}]", vec!["{}"; 1_000_001].join(","));
    assert_eq!(old.post("gauges/raw", &many).0, 500);
    assert_eq!(old.problems(), ["a body has more than 1,000,000 objects"]);
}

#[test]
fn numbers_that_are_none_become_0_and_are_counted() {
    let [mut old, mut head, mut corrected] = servers();
    let body = r#"[{"id":"a","data":[{"timestamp":"1499999000000","value":"2.5"},{"timestamp":60000,"value":"x"},
        {"timestamp":1.5,"value":3},{"timestamp":120000}]}]"#;
    for server in [&mut old, &mut head] {
        assert_eq!(server.post("gauges/raw", body).0, 200);
        let what = "a time or a value is no number, and is taken as 0";
        assert_eq!(server.problems(), [what; 3]);
        let samples = server.sink.samples.lock();
        let found: Vec<(i64, f64)> = samples[&metrics::key("t", "a")]
            .iter()
            .map(|(at, value)| (at.0, *value))
            .collect();
        let expected = [
            (0, 3.0),
            (60_000_000_000, 0.0),
            (120_000_000_000, 0.0),
            (1_499_999_000_000_000_000, 2.5),
        ];
        assert_eq!(found, expected);
    }
    assert_eq!(corrected.post("gauges/raw", body).0, 400);
    let body = r#"[{"id":"a","data":[{"timestamp":1,"value":true}]}]"#;
    assert_eq!(
        [
            old.post("gauges/raw", body).0,
            head.post("gauges/raw", body).0,
            corrected.post("gauges/raw", body).0
        ],
        [200, 500, 400]
    );
    let far = r#"[{"id":"a","data":[{"timestamp":9300000000000,"value":1}]}]"#;
    old.problems();
    assert_eq!(old.post("gauges/raw", far).0, 200);
    assert_eq!(old.problems(), ["a timestamp is beyond the year 2262"]);
    assert_eq!(
        (head.post("gauges/raw", far).0, corrected.post("gauges/raw", far).0),
        (500, 400)
    );
}

#[test]
fn what_the_store_does_not_take_is_said_but_by_0154() {
    let body = format!(
        r#"[{{"id":"a","data":[{{"timestamp":1499999000000,"value":{REJECTED}}},{{"timestamp":1499999000001,"value":1}}]}}]"#
    );
    let [mut old, mut head, mut corrected] = servers();
    assert_eq!(old.post("gauges/raw", &body).0, 200);
    let (status, said) = head.post("gauges/raw", &body);
    assert!(
        status == 500 && said.contains("1 of 2 samples were not taken: rejected by the store"),
        "{said}"
    );
    assert_eq!(corrected.post("gauges/raw", &body).0, 500);
    corrected.sink.heap.limit = 1;
    let (status, said) = corrected.post("gauges/raw", r#"[{"id":"b","data":[{"timestamp":1,"value":1}]}]"#);
    assert!(
        status == 500 && said.contains("1 of 1 samples were not taken"),
        "{said}"
    );
}

#[test]
fn a_store_that_cannot_be_read_is_an_error_everywhere() {
    for mut server in servers() {
        server.write("a", &[(NOW - 60_000, 1.0)]);
        server.reads_fail = true;
        let (status, body) = server.get("gauges/a/raw");
        assert!(status == 500 && body.contains("the disk is gone"), "{body}");
        assert!(server.problems().is_empty(), "the request was right");
    }
}

#[test]
fn tenants_keep_their_metrics_apart() {
    let mut server = Server::new(Behaviour::Mohawk0154, Backend::Memory);
    assert_eq!(server.ask_as("", "POST", "gauges/raw", BODY).0, 200);
    assert_eq!(
        server.ask_as("hawkular-tenant: u\r\n", "POST", "gauges/raw", BODY).0,
        200
    );
    assert_eq!(server.get("tenants").1, "[{\"id\":\"_ops\"},{\"id\":\"u\"}]\n");
    let names: Vec<String> = server.sink.samples.lock().keys().map(ToString::to_string).collect();
    assert_eq!(names, ["a", "a{tenant=u}"]);
    assert_eq!(server.get("gauges/a/raw").1, "[]");
    // The memory backend makes what is read.
    assert_eq!(
        server.get("tenants").1,
        "[{\"id\":\"_ops\"},{\"id\":\"t\"},{\"id\":\"u\"}]\n"
    );
    let mut mongo = Server::new(Behaviour::Mohawk0154, Backend::Mongo);
    assert_eq!(mongo.get("gauges/a/raw").1, "[]");
    assert_eq!(mongo.get("tenants").1, "[]\n");
    let mut corrected = Server::new(Behaviour::Corrected, Backend::Memory);
    let (status, body) = corrected.ask_as("", "GET", "metrics", "");
    assert!(status == 400 && body.contains("Use 'Hawkular-Tenant' header"), "{body}");
}

#[test]
fn lists_have_tags_and_last_values() {
    let [mut old, mut head, mut corrected] = servers();
    for server in [&mut old, &mut head, &mut corrected] {
        server.write("a", &[(NOW - 60_000, 1.0), (NOW - 90_000, 2.0)]);
        assert_eq!(
            server.ask("PUT", "gauges/b/tags", r#"{"host":"h1","zone":"eu"}"#).0,
            200
        );
        assert_eq!(server.ask("PUT", "counters/c/tags", r#"{"host":"h22"}"#).0, 200);
    }
    let a = format!(
        "{{\"id\":\"a\",\"type\":\"gauge\",\"tags\":{{}},\"data\":[{{\"timestamp\":{},\"value\":1}}]}}",
        NOW - 60_000
    );
    let b = "{\"id\":\"b\",\"type\":\"gauge\",\"tags\":{\"host\":\"h1\",\"zone\":\"eu\"},\"data\":[{\"timestamp\":0,\"value\":0}]}";
    let c = b.replace("\"b\"", "\"c\"").replace("h1\",\"zone\":\"eu", "h22");
    assert_eq!(old.get("metrics").1, format!("[{a},{b},{c}]\n"));
    assert_eq!(
        old.get("metrics?type=gauge&tags=host:h.").1,
        format!("[{b}]\n"),
        "anchored"
    );
    assert_eq!(
        old.get("metrics?tags=host:h.%2B,zone:.*").1,
        format!("[{b},{c}]\n"),
        "a missing tag is empty text"
    );
    assert_eq!(
        corrected.get("metrics?tags=host:h.%2B,zone:.*").1,
        format!("[{}]\n", b.replace(",\"data\":[{\"timestamp\":0,\"value\":0}]", ""))
    );
    assert_eq!(
        old.get("metrics?tags=none").1,
        format!("[{a},{b},{c}]\n"),
        "of another form: ignored"
    );
    assert_eq!(corrected.get("metrics?tags=none").0, 400);
    assert_eq!(
        (old.get("metrics?tags=host:(").0, corrected.get("metrics?tags=host:(").0),
        (500, 400)
    );
    assert_eq!(
        (old.get("metrics?type=counter").1, head.get("metrics?type=counter").1),
        ("[]\n".into(), "null\n".into())
    );
    let none = head.ask_as("Hawkular-Tenant: none\r\n", "GET", "metrics", "");
    assert_eq!(
        none,
        (500, r#"{"code":500,"message":"memory: Can't set tenant"}"#.to_owned())
    );
    assert_eq!(head.get("exports").1, "a{} 1.000000\n");
    assert_eq!(head.get("exports?start=-10s").1, "");
    // Only SQLite deleted tags.
    for (server, stays) in [(&mut old, true), (&mut corrected, false)] {
        assert_eq!(server.ask("DELETE", "gauges/b/tags/host,none", "").0, 200);
        assert_eq!(server.get("metrics").1.contains("h1"), stays);
    }
}

#[test]
fn queries_of_several_metrics() {
    let [mut old, mut head, mut corrected] = servers();
    let at = NOW - 60_500;
    for server in [&mut old, &mut head, &mut corrected] {
        server.write("a", &[(at, 1.0)]);
        server.write("b", &[(at, 2.0), (at + 30_000, 3.0)]);
        server.write("c", &[(NOW, 0.0)]);
        server.ask("PUT", "gauges/b/tags", r#"{"host":"h1"}"#);
    }
    let end = NOW - 500;
    let item = |at: i64, value: u8| format!("{{\"timestamp\":{at},\"value\":{value}}}");
    let body = format!(
        r#"{{"ids":["a","b"],"start":{},"end":"{end}","order":"DESC","limit":1}}"#,
        at - 60_000
    );
    let (a, b) = (item(at, 1), item(at + 30_000, 3));
    let expected = format!("[{{\"id\": \"a\", \"data\": [{a}]}},{{\"id\": \"b\", \"data\": [{b}]}}]");
    assert_eq!(old.post("gauges/raw/query", &body), (200, expected));
    let body = format!(r#"{{"ids":["a"],"tags":"host:h.","start":"-2mn","end":{end}}}"#);
    let first = item(at, 2);
    let keyed = format!("{{\"gauge\":{{\"a\":[{a}],\"b\":[{first},{b}]}}}}");
    assert_eq!(head.post("m/stats/query", &body), (200, keyed.clone()));
    assert_eq!(corrected.post("m/stats/query", &body), (200, keyed));
    // A body is in the order of time where a target is not.
    let body = format!(r#"{{"ids":["b"],"start":{},"end":{end}}}"#, at - 60_000);
    let ordered = format!("[{{\"id\": \"b\", \"data\": [{first},{b}]}}]");
    assert_eq!(old.post("gauges/raw/query", &body).1, ordered);
    assert_eq!(old.post("gauges/raw/query", "x").1, "[]");
    assert_eq!(
        (
            head.post("gauges/raw/query", "x").0,
            corrected.post("gauges/raw/query", "x").0
        ),
        (500, 400)
    );
    let long = format!(r#"{{"ids":["{}"]}}"#, "a".repeat(1 << 20));
    assert_eq!(corrected.post("gauges/raw/query", &long).0, 400);
}

#[test]
fn the_corrected_server_refuses_what_it_cannot_read() {
    let mut server = Server::new(Behaviour::Corrected, Backend::Memory);
    for query in [
        "start=x",
        "end=1y",
        "limit=0",
        "limit=x",
        "order=asc",
        "bucketDuration=0s",
        "start=5&end=5",
    ] {
        let (status, body) = server.get(&format!("gauges/a/raw?{query}"));
        assert!(status == 400 && body.starts_with("{\"errorMsg\":\""), "{query}: {body}");
    }
    assert_eq!(server.problems().len(), 7);
    assert_eq!(server.get("gauges/a/raw"), (204, String::new()));
    assert_eq!(server.get("metrics"), (204, String::new()));
}

#[test]
fn tags_take_memory_from_the_budget_for_names() {
    let mut server = Server::new(Behaviour::Mohawk0154, Backend::Memory);
    assert!(server.room.names.take(server.room.names.left() - 4_000));
    let mut statuses = Vec::new();
    for index in 0..100 {
        statuses.push(
            server
                .ask("PUT", &format!("gauges/g{index}/tags"), r#"{"host":"h1"}"#)
                .0,
        );
    }
    assert_eq!(statuses[0], 200);
    assert_eq!(statuses[99], 500);
}

#[test]
fn requests_follow_each_other_and_what_is_no_http_is_refused() {
    for mut server in servers() {
        let one = |method: &str, path: &str, body: &str| {
            let length = body.len();
            format!(
                "{method} /hawkular/metrics/{path} HTTP/1.1\r\nHawkular-Tenant: t\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        };
        let body = BODY.replace("060000", "120000");
        let both = one("POST", "gauges/raw", &body)
            + &one("GET", "gauges/a/raw?start=1499998900000&end=1499999090000", "null")
            + &one("GET", "status", "");
        for piece in [1, 10, both.len()] {
            let answers = server.talk(both.as_bytes(), piece);
            assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "{answers}");
            assert!(
                answers.contains("\"value\":1.5"),
                "a read sees what was written before: {answers}"
            );
        }
        assert!(server.problems().is_empty());
        let answer = server.talk(b"GET\0/ HTTP/1.1\r\n\r\n", 100);
        assert_eq!(parsed(&answer).0, 400);
        assert_eq!(server.problems().len(), 1);
    }
}
