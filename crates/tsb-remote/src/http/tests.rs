//! The module against servers of a few lines that answer, stall, break off and talk nonsense.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use tsb_stores::secret::{Credentials, Secret};

/// What a server does with a connection whose first request it has read.
#[derive(Clone, Copy)]
enum Manner {
    Answers(&'static str),
    /// Answers, and sends nothing further.
    Stalls(&'static str),
    Closes,
}

/// A server; it returns its port and counts its connections.
async fn server(manner: Manner) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(stream, manner));
        }
    });
    (port, connections)
}

async fn serve(mut stream: TcpStream, manner: Manner) {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {
        match manner {
            Manner::Answers(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
            }
            Manner::Stalls(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
                std::future::pending::<()>().await;
            }
            Manner::Closes => return,
        }
    }
}

fn access(timeout: Duration) -> Access {
    Access {
        authorization: None,
        tls: None,
        timeout,
    }
}

fn client(port: u16, timeout_ms: u64) -> HttpServer {
    let timeout = Duration::from_millis(timeout_ms);
    HttpServer::new("Thing", "127.0.0.1", port, access(timeout)).unwrap()
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

#[tokio::test]
async fn answers_come_over_one_connection() {
    let (port, connections) = server(Manner::Answers(OK)).await;
    let client = client(port, 60_000);
    for _ in 0..3 {
        let answer = client.ask("greet", &Request::get("/")).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.body()), (200, &b"hello"[..]));
    }
    let mut chunks = client.stream("greet", &Request::post("/", "x")).await.unwrap();
    assert_eq!(chunks.next().await.unwrap().as_deref(), Some(&b"hello"[..]));
    assert_eq!(chunks.next().await.unwrap(), None);
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn silence_is_unknown_for_a_change_and_unanswered_for_a_read() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel";
    let manners = [
        Manner::Stalls(""),
        Manner::Stalls(half),
        Manner::Closes,
        Manner::Answers("\u{1}garbage\n\n"),
    ];
    for manner in manners {
        let (port, _) = server(manner).await;
        let client = client(port, 300);
        let write = client.ask("write", &Request::post("/", "x")).await.unwrap_err();
        assert!(matches!(write, Error::Unknown { .. }), "{write:?}");
        let read = client.ask("read", &Request::get("/")).await.unwrap_err();
        assert!(matches!(read, Error::Unanswered { .. }), "{read:?}");
        assert!(read.to_string().contains("read (Thing at 127.0.0.1:"), "{read}");
    }
}

#[tokio::test]
async fn a_read_is_repeated_and_a_change_is_not() {
    for (request, is_once) in [(Request::get("/"), false), (Request::post("/", "x"), true)] {
        let (port, connections) = server(Manner::Closes).await;
        client(port, 500).ask("try", &request).await.unwrap_err();
        assert_eq!(connections.load(Ordering::Relaxed) == 1, is_once);
    }
}

#[tokio::test]
async fn a_stream_that_stalls_ends_within_the_deadline() {
    let (port, _) = server(Manner::Stalls("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel")).await;
    let mut chunks = client(port, 300).stream("read", &Request::get("/")).await.unwrap();
    assert_eq!(chunks.next().await.unwrap().as_deref(), Some(&b"hel"[..]));
    assert!(matches!(chunks.next().await, Err(Error::Unanswered { .. })));
}

#[tokio::test]
async fn without_a_listener_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = client(port, 60_000)
        .ask("write", &Request::post("/", "x"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}

#[test]
fn no_credential_is_printed_and_a_host_is_checked() {
    let basic = Authorization::basic(&Credentials::parse("me:hunter2").unwrap()).unwrap();
    assert_eq!(basic.header().to_str().unwrap(), "Basic bWU6aHVudGVyMg==");
    let timeout = Duration::from_secs(1);
    let with_basic = Access {
        authorization: Some(basic),
        ..access(timeout)
    };
    let server = HttpServer::new("Thing", "a:1", 2, with_basic).unwrap();
    let text = format!("{server:?} {:?}", server.authorization);
    assert!(text.contains("Thing at a:1") && !text.contains("bWU6"), "{text}");
    let broken = Authorization::new("Bearer", &Secret::new("hunter2\n"))
        .unwrap_err()
        .to_string();
    assert!(
        broken.contains("without line breaks") && !broken.contains("hunter2"),
        "{broken}"
    );
    for wrong in ["", "a b", "me@a", "a:x", "a:70000", "[::1"] {
        assert!(HttpServer::new("Thing", wrong, 1, access(timeout)).is_err(), "{wrong}");
    }
    assert_eq!(
        HttpServer::new("T", "[::1]", 7, access(timeout)).unwrap().name(),
        "T at [::1]:7"
    );
}

#[test]
fn a_form_is_encoded() {
    let form = Request::form("/query", &[("db", "a b"), ("q", "x=\"1\"&\u{e9}")]);
    assert_eq!(form.body, "db=a%20b&q=x%3D%221%22%26%C3%A9");
    assert!(form.changes && !form.reading().changes);
}
