//! A server of a few scripted answers: what a real one answers only while a cluster is in
//! trouble, and what those of 2013 answered.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use tsb_stores::keyed::KeyedStore;

use super::*;
use crate::etcd::open_keyed_v2;

/// What the server does with a request.
enum Act {
    Answer(u16, String),
    /// Redirects to this port.
    Redirect(u16),
    HangUp,
}

/// Answers one connection after the other, and returns the requests.
fn serve(acts: Vec<Act>) -> (u16, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = move |act| {
        let (mut stream, _) = listener.accept().unwrap();
        let request = request_of(&mut stream);
        let head = match &act {
            Act::Answer(status, _) => format!("HTTP/1.1 {status} Any\r\n"),
            Act::Redirect(to) => {
                let path = request.split(' ').nth(1).unwrap();
                format!("HTTP/1.1 307 Any\r\nLocation: http://127.0.0.1:{to}{path}\r\n")
            }
            Act::HangUp => return request,
        };
        let body = if let Act::Answer(_, body) = act {
            body
        } else {
            String::new()
        };
        let rest = format!("Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        stream.write_all(format!("{head}{rest}").as_bytes()).unwrap();
        request
    };
    let server = std::thread::spawn(move || acts.into_iter().map(answer).collect());
    (port, server)
}

/// A whole request, as text.
fn request_of(stream: &mut TcpStream) -> String {
    let (mut text, mut part) = (String::new(), [0; 1024]);
    loop {
        let read = stream.read(&mut part).unwrap();
        text.push_str(std::str::from_utf8(&part[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) || read == 0 {
            return text;
        }
    }
}

fn answer(status: u16, body: &str) -> Act {
    Act::Answer(status, body.to_owned())
}

/// The two questions of opening, and then these.
fn after_opening(acts: Vec<Act>) -> (u16, JoinHandle<Vec<String>>) {
    let opening = [
        answer(200, r#"{"action":"get","node":{"dir":true}}"#),
        answer(200, r#"{"members":[{},{},{}]}"#),
    ];
    serve(opening.into_iter().chain(acts).collect())
}

fn open(port: u16) -> Result<crate::Bridge<EtcdKeyedV2>> {
    let address = Address::parse("etcd", "prefix", &format!("//127.0.0.1:{port}/runs"))?;
    open_keyed_v2(&address, &EtcdOptions::default())
}

fn put(store: &impl KeyedStore) -> Result<PutAck> {
    let put = Put::new(Key::new("v1/a,b/c").unwrap(), "0,RUNNING 1").expiring(29 * SECOND_NS + 1);
    store.put(&[put], &mut Refusals::new())
}

#[test]
fn a_put_follows_the_leader_and_is_what_go_etcd_sent() {
    let (leader, at_leader) = serve(vec![answer(
        201,
        r#"{"action":"set","key":"/runs/v1/a,b/c","value":"x"}"#,
    )]);
    let (port, at_follower) = after_opening(vec![Act::Redirect(leader)]);
    let store = open(port).unwrap();
    // Two of three members.
    assert_eq!(store.capabilities().copies, 2);
    assert_eq!(put(&store).unwrap().accepted, 1);
    at_follower.join().unwrap();
    let request = &at_leader.join().unwrap()[0];
    assert!(
        request.starts_with("PUT /v2/keys/runs/v1/a,b/c HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("content-type: application/x-www-form-urlencoded; param=value\r\n"),
        "{request}"
    );
    assert!(request.ends_with("\r\n\r\nttl=30&value=0%2CRUNNING+1"), "{request}");
}

#[test]
fn a_put_without_a_clear_answer_is_unknown_and_not_repeated() {
    let raft = r#"{"errorCode":300,"message":"Raft Internal Error","cause":"etcdserver: request timed out","index":3}"#;
    let (port, server) = after_opening(vec![answer(500, raft), Act::HangUp, answer(400, "nonsense")]);
    let store = open(port).unwrap();
    let error = put(&store).unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }));
    let text = tsb_stores::error::chain(&error);
    assert!(
        text.contains("300: Raft Internal Error (etcdserver: request timed out)"),
        "{text}"
    );
    assert!(text.contains(&format!("etcd at 127.0.0.1:{port}/runs")), "{text}");
    assert!(matches!(put(&store).unwrap_err(), Error::Unknown { .. }));
    let text = tsb_stores::error::chain(&put(&store).unwrap_err());
    assert!(
        text.contains("status 400 Bad Request without an error of etcd"),
        "{text}"
    );
    assert_eq!(server.join().unwrap().len(), 5);
    // Nobody listens any more.
    assert!(matches!(put(&store).unwrap_err(), Error::Unreachable { .. }));
}

#[test]
fn a_read_without_an_answer_is_repeated_and_takes_the_replies_of_2013() {
    let flat = r#"{"action":"get","key":"/runs/v1","dir":true,"index":9,"kvs":[{"key":"/runs/v1/a","value":"x"}]}"#;
    let (port, server) = after_opening(vec![Act::HangUp, answer(200, flat)]);
    let store = open(port).unwrap();
    let mut found = Vec::new();
    let visit = &mut |key: &Key, value: &str| {
        found.push(format!("{key}={value}"));
        std::ops::ControlFlow::Continue(())
    };
    store.list(Some(&Key::new("v1").unwrap()), visit).unwrap();
    assert_eq!(found, ["v1/a=x"]);
    let requests = server.join().unwrap();
    assert_eq!(requests[2], requests[3]);
    let path = "GET /v2/keys/runs/v1?consistent=true&quorum=true&sorted=false&recursive=true HTTP/1.1\r\n";
    assert!(requests[3].starts_with(path), "{}", requests[3]);
}

#[test]
fn a_server_without_version_2_is_refused_with_its_option() {
    let (port, server) = serve(vec![answer(404, "404 page not found\n")]);
    let error = open(port).unwrap_err().to_string();
    assert!(
        error.contains("does not speak version 2") && error.contains("--enable-v2=true"),
        "{error}"
    );
    server.join().unwrap();
}
