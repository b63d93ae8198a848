//! Programs that misbehave: each is a clear error, within the deadline, and leaves no process.

use std::time::Duration;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::error::chain;
use tsb_stores::store::{Refusals, Scope, Store, StoreExt, TimeRange};

use super::super::{ExecClient, ExecOptions, open};
use crate::Bridge;

/// A shell script as a program. `$n` is the number of the request that was read last.
fn script(text: &str) -> Result<Bridge<ExecClient>, String> {
    let text = format!("next() {{ read verb n count rest; for i in $(seq $count); do read line; done; }}\n{text}");
    let options = ExecOptions {
        command: ["sh", "-c", &text].map(str::to_owned).to_vec(),
        timeout: Duration::from_secs(20),
        ..ExecOptions::new("sh").unwrap()
    };
    open(&options).map_err(|error| chain(&error))
}

/// A script that greets, tells its sizes, and defines series.
fn greeted(text: &str) -> Bridge<ExecClient> {
    let start = "echo tsb-exec 1 text reaches=synced; next; echo stats $n 0 0 0; next; echo ok $n 0";
    let store = script(&format!("{start}\n{text}")).unwrap();
    store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
    store
}

fn write(store: &Bridge<ExecClient>) -> Result<(), tsb_stores::Error> {
    let batch = Batch::tick(SeriesId(0), Timestamp(5), &[1.5]);
    store.write(&batch, &mut Refusals::new()).map(drop)
}

#[test]
fn a_program_that_cannot_be_started_or_does_not_greet_is_named() {
    let none = open(&ExecOptions::new("/no/such/program").unwrap()).unwrap_err();
    assert!(
        chain(&none).contains("cannot start the program /no/such/program"),
        "{none}"
    );
    for (text, says) in [
        ("exit 3", "it ended with exit code 3 before its greeting"),
        ("echo no database >&2; exit 1", "its last words: no database"),
        ("kill -9 $$", "signal 9 ended it before its greeting"),
        (
            "echo hello; cat",
            "the first line \"hello\" does not begin with tsb-exec 1",
        ),
        ("head -c 9999 /dev/zero", "the first line has more than 4096 bytes"),
    ] {
        let why = script(text).unwrap_err();
        assert!(why.contains(says), "{text}: {why}");
    }
}

#[test]
fn a_silent_program_is_given_up_after_the_deadline() {
    let options = ExecOptions {
        timeout: Duration::from_millis(200),
        ..ExecOptions::new("cat").unwrap()
    };
    let why = chain(&open(&options).unwrap_err());
    assert!(why.contains("no line came within 0.2 s"), "{why}");
}

#[test]
fn what_breaks_the_protocol_ends_the_conversation() {
    for (text, says) in [
        ("next; echo nonsense", "no known verb begins an answer"),
        ("next; echo ok 999 0", "it answered request 999, which is not open"),
        ("next; echo ok $n 0; echo ok $n 0; cat", "is not open"),
        (
            "next; echo stats $n 0 1 1; cat",
            "it answered a request with stats and not with ok or refused",
        ),
        (
            "next; echo refused $n 1; echo 1 late; cat",
            "or one beyond the 1 that were written",
        ),
        (
            "next; echo died >&2; exit 7",
            "it ended with exit code 7; its last words: died",
        ),
        (
            "next; printf 'refused %d 1\\n' $n; exit 0",
            "exit code 0 within an answer",
        ),
    ] {
        let store = greeted(text);
        let first = write(&store);
        // The second answer to one request may come after the first write has ended.
        let error = match first {
            Err(error) => error,
            Ok(()) => loop {
                if let Err(error) = write(&store) {
                    break error;
                }
            },
        };
        let why = chain(&error);
        assert!(error.is_silence() && why.contains(says), "{text}: {why}");
        let later = write(&store).unwrap_err();
        assert!(matches!(later, tsb_stores::Error::Unreachable { .. }), "{later}");
        assert!(chain(&later).contains(says), "{later}");
    }
}

#[test]
fn rows_that_do_not_fit_their_query_are_refused() {
    for (rows, says) in [
        ("rows $n 1 7; echo 5 1", "rows of series 7, which was not asked for"),
        ("rows $n 2 0; echo 6 1; echo 5 1", "the times of series 0 do not ascend"),
        ("rows $n 1 0; echo 100 1", "the time 100 of series 0 is not in [0, 100)"),
        ("newest $n 0", "it answered a query with newest"),
    ] {
        let store = greeted(&format!("next; echo {rows}; cat"));
        let range = TimeRange {
            start: Timestamp(0),
            end: Timestamp(100),
        };
        let why = chain(&store.samples(SeriesId(0), range).unwrap_err());
        assert!(why.contains(says), "{rows}: {why}");
    }
}

#[test]
fn an_error_ends_its_request_only() {
    let store = greeted("next; echo error $n 0 disk full; next; echo ok $n 0; cat");
    let why = chain(&write(&store).unwrap_err());
    assert!(why.contains("it answered: disk full"), "{why}");
    write(&store).unwrap();
    assert_eq!(store.durable(Durability::Volatile).0, 1);
}

#[test]
fn answers_may_come_in_any_order() {
    let store = greeted("next; one=$n; next; echo ok $n 0; echo ok $one 0; cat");
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|_| scope.spawn(|| write(&store)));
        for writer in writers {
            writer.join().unwrap().unwrap();
        }
    });
    assert_eq!(store.durable(Durability::Volatile).0, 2);
}

#[test]
fn a_late_answer_is_ignored() {
    let text = "echo tsb-exec 1 text; next; echo stats $n 0 0 0; next; echo ok $n 0; next; late=$n; next; \
        echo ok $late 0; echo ok $n 0; cat";
    let text = format!("next() {{ read verb n count rest; for i in $(seq $count); do read line; done; }}\n{text}");
    let options = ExecOptions {
        command: ["sh", "-c", &text].map(str::to_owned).to_vec(),
        // Long enough for everything but the answer that does not come.
        timeout: Duration::from_secs(3),
        ..ExecOptions::new("sh").unwrap()
    };
    let store = open(&options).unwrap();
    store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
    let unknown = write(&store).unwrap_err();
    assert!(matches!(unknown, tsb_stores::Error::Unknown { .. }), "{unknown}");
    assert!(chain(&unknown).contains("no answer came within 3 s"), "{unknown}");
    write(&store).unwrap();
}

#[test]
fn the_process_is_gone_with_the_store() {
    let store = greeted("next; echo stats $n 0 1 1; exec sleep 1000");
    let process = store.stats().processes[0];
    assert!(std::path::Path::new(&format!("/proc/{process}")).exists());
    drop(store);
    assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
}

#[test]
fn a_close_waits_for_the_end_of_the_program() {
    let to_the_end = "while next && [ -n \"$verb\" ]; do \
        if [ $verb = stats ]; then echo stats $n 0 1 8; else echo ok $n 0; fi; done; ";
    let store = greeted(&format!("{to_the_end} echo bye >&2"));
    write(&store).unwrap();
    store.flush(Scope::All, Durability::Synced).unwrap();
    assert_eq!(store.durable(Durability::Synced).0, 1);
    store.close().unwrap();
    store.close().unwrap();
    let stats = store.stats();
    assert_eq!((stats.samples, stats.footprint.total_bytes()), (1, 8));
    assert!(matches!(write(&store), Err(tsb_stores::Error::Closed)));
    let store = greeted(&format!("{to_the_end} exit 9"));
    let why = chain(&store.close().unwrap_err());
    assert!(
        why.contains("cannot close the program") && why.contains("exit code 9"),
        "{why}"
    );
}
