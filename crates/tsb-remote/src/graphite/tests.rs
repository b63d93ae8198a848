//! The client against servers of the tests' own, which stall, close, and answer what they are told.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Error, Reason, Refusals, Store, StoreExt, TimeRange};

use super::*;

/// Listens at a free port, and hands every connection to `serve`, one after the other.
fn listen(mut serve: impl FnMut(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            serve(connection);
        }
    });
    port
}

/// A carbon that takes everything; what it got comes when a connection ends.
fn carbon() -> (u16, Receiver<Vec<u8>>) {
    let (tell, told) = sync_channel(64);
    let port = listen(move |mut connection| {
        let tell = tell.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = connection.read_to_end(&mut bytes);
            let _ = tell.send(bytes);
        });
    });
    (port, told)
}

/// A render API that answers each request with the next of `bodies`, the last one again and again;
/// `500` is a failure.
fn render(bodies: &'static [&'static str]) -> u16 {
    let mut next = 0;
    listen(move |mut connection| {
        let mut request = [0; 8_192];
        // One read has the head; a body that is longer is of no interest.
        let _ = connection.read(&mut request);
        let body = bodies[next.min(bodies.len() - 1)];
        next += 1;
        let status = if body == "500" { "500 Failed" } else { "200 OK" };
        let head = format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let _ = connection.write_all(format!("{head}{body}").as_bytes());
        // Reads to the end, so that nothing unread resets the connection.
        let _ = connection.shutdown(std::net::Shutdown::Write);
        let _ = connection.read(&mut request);
    })
}

fn options(render: Option<u16>) -> GraphiteOptions {
    GraphiteOptions {
        render: render.map(|port| format!("127.0.0.1:{port}")),
        timeout: Duration::from_secs(2),
        visibility_delay: Duration::ZERO,
        ..GraphiteOptions::default()
    }
}

/// A slot for every minute since the epoch, so that any time is within the retention.
fn since_the_epoch(render: u16) -> GraphiteOptions {
    let mut options = options(Some(render));
    options.archives.archives[0] = Some(tsb_stores::SlotArchive {
        slot_s: 60,
        slots: 60_000_000,
    });
    options
}

fn opened(ports: &[u16], options: &GraphiteOptions) -> Bridge<GraphiteClient> {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let address = Address::parse("graphite", "prefix", &format!("//{}/runs", hosts.join(","))).unwrap();
    let store = open(&address, options).unwrap();
    let series: Vec<_> = (0..8)
        .map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))))
        .collect();
    store.define(&series).unwrap();
    store
}

fn tick(store: &dyn Store, second: i64) -> tsb_stores::Result<tsb_stores::Ack> {
    let values: Vec<f64> = (0..8).map(f64::from).collect();
    store.write_all(&Batch::tick(SeriesId(0), Timestamp::from_secs(second), &values))
}

#[test]
fn every_series_goes_to_one_of_the_daemons() {
    let ((one, from_one), (other, from_other)) = (carbon(), carbon());
    let store = opened(&[one, other], &options(None));
    for second in [60, 120] {
        assert_eq!(tick(&store, second).unwrap().accepted, 8);
    }
    store.close().unwrap();
    let text = |from: Receiver<Vec<u8>>| String::from_utf8(from.recv().unwrap()).unwrap();
    let (one, other) = (text(from_one), text(from_other));
    let mut lines: Vec<&str> = one.lines().chain(other.lines()).collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = (0..8)
        .flat_map(|id| [60, 120].map(|second| format!("runs.s{id} {id} {second}")))
        .collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    for id in 0..8 {
        let path = format!("runs.s{id} ");
        assert!(one.contains(&path) != other.contains(&path), "{path} came to both");
    }
}

#[test]
fn what_carbon_does_not_take_is_refused_and_the_rest_is_sent() {
    let (port, told) = carbon();
    let store = opened(&[port], &options(None));
    let mut refused = Refusals::new();
    let values = [1.0, f64::NAN, f64::INFINITY, 4.0];
    let ack = store.write(
        &Batch::tick(SeriesId(0), Timestamp::from_secs(60), &values),
        &mut refused,
    );
    assert_eq!(ack.unwrap().accepted, 2);
    let reasons: Vec<_> = refused
        .as_slice()
        .iter()
        .map(|refusal| (refusal.index, refusal.reason))
        .collect();
    assert_eq!(reasons, [(1, Reason::Unrepresentable), (2, Reason::Unrepresentable)]);
    store.close().unwrap();
    assert_eq!(told.recv().unwrap(), b"runs.s0 1 60\nruns.s3 4 60\n");
}

#[test]
fn a_daemon_that_does_not_read_ends_a_write_within_its_deadline() {
    let mut held = Vec::new();
    let port = listen(move |connection| held.push(connection));
    let store = opened(&[port], &options(None));
    // Longer than the buffers of both sockets.
    let values = [0.125; 8];
    let times = [Timestamp::from_secs(60); 8];
    let ids: Vec<SeriesId> = (0..8).map(SeriesId).collect();
    let (mut batch, mut error) = (tsb_core::BatchBuf::new(), None);
    for _ in 0..20_000 {
        for place in 0..8 {
            batch.push(ids[place], times[place], values[place]);
        }
    }
    for _ in 0..20 {
        if let Err(failed) = store.write_all(&batch.as_batch()) {
            error = Some(failed);
            break;
        }
    }
    assert!(matches!(error, Some(Error::Unknown { .. })), "{error:?}");
}

#[test]
fn a_daemon_that_has_ended_a_connection_is_connected_to_again() {
    let (tell, connected) = sync_channel(64);
    // Each connection is ended at once.
    let port = listen(move |connection| {
        let _ = tell.send(());
        drop(connection);
    });
    let store = opened(&[port], &options(None));
    connected.recv().unwrap();
    // A write may be taken before the end of the connection is known.
    let is_back = (1..1_000).any(|minute| {
        let _ = tick(&store, 60 * minute);
        connected.recv_timeout(Duration::from_millis(10)).is_ok()
    });
    assert!(is_back, "it did not connect again");
}

#[test]
fn an_answer_that_is_none_is_silence_and_a_later_one_is_read() {
    static BODIES: [&str; 3] = [
        "[]",
        "<html>busy</html>",
        r#"[{"target":"runs.s1","datapoints":[[1.5,1699999980]]}]"#,
    ];
    let (port, _told) = carbon();
    let store = opened(&[port], &since_the_epoch(render(&BODIES)));
    let error = store.samples(SeriesId(1), TimeRange::ALL).unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }), "{error:?}");
    let rows = store.samples(SeriesId(1), TimeRange::ALL).unwrap();
    assert_eq!(rows, [(Timestamp::from_secs(1_699_999_980), 1.5)]);
}

#[test]
fn a_file_that_cannot_be_read_is_damage_and_the_others_are_read() {
    static BODIES: [&str; 5] = [
        "[]",
        "500",
        // About a path that nobody has.
        "[]",
        "500",
        r#"[{"target":"runs.s1","datapoints":[[1.5,1699999980]]}]"#,
    ];
    let (port, _told) = carbon();
    let store = opened(&[port], &since_the_epoch(render(&BODIES)));
    let query = tsb_stores::Query {
        series: &[SeriesId(1), SeriesId(2)],
        range: TimeRange::ALL,
        resample: None,
    };
    let mut read = Vec::new();
    let done = store.query(&query, &mut |id, _, values| {
        read.push((id, values.to_vec()));
        std::ops::ControlFlow::Continue(())
    });
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(read, [(SeriesId(1), vec![1.5])]);
    let damage: Vec<String> = store.stats().damage.iter().map(ToString::to_string).collect();
    assert!(
        damage.len() == 1 && damage[0].starts_with("runs.s2 is damaged"),
        "{damage:?}"
    );
}

#[test]
fn a_render_api_that_fails_about_every_path_is_an_error() {
    static BODIES: [&str; 2] = ["[]", "500"];
    let (port, _told) = carbon();
    let store = opened(&[port], &options(Some(render(&BODIES))));
    let error = store.samples(SeriesId(1), TimeRange::ALL).unwrap_err();
    assert!(matches!(error, Error::Backend { .. }), "{error:?}");
    assert!(store.stats().damage.is_empty());
}

#[test]
fn slots_of_another_length_than_stated_are_an_error_that_says_so() {
    static BODIES: [&str; 2] = [
        "[]",
        r#"[{"target":"runs.s1","datapoints":[[1.5,1699999990],[null,1700000000]]}]"#,
    ];
    let (port, _told) = carbon();
    let store = opened(&[port], &options(Some(render(&BODIES))));
    let error = store.samples(SeriesId(1), TimeRange::ALL).unwrap_err();
    let words = format!("{error:?}");
    assert!(
        words.contains("of 10 s") && words.contains("?archives= says 60 s"),
        "{words}"
    );
}

#[test]
fn without_a_render_api_nothing_is_read() {
    let (port, _told) = carbon();
    let store = opened(&[port], &options(None));
    assert!(!store.capabilities().query);
    let error = store.samples(SeriesId(1), TimeRange::ALL).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    let address = Address::parse("graphite", "prefix", "//h/runs").unwrap();
    assert!(matches!(
        series(&address, &options(None)),
        Err(Error::Unsupported { .. })
    ));
}
