//! The medium against short traces, written as strace writes them.

use super::super::trace;
use super::*;

fn hex(text: &str) -> String {
    text.bytes()
        .fold(String::new(), |hex, byte| hex + &format!("\\x{byte:02x}"))
}

/// `OPEN` makes `/m/a` as descriptor 5, `FOLDER` has `/m` as 6.
fn script(calls: &[&str]) -> Trace {
    let (file, folder) = (format!("5<{}>", hex("/m/a")), format!("6<{}>", hex("/m")));
    let line = |call: &&str| {
        let call = call.replace("FILE", &file).replace("FOLDER", &folder);
        let call = call.replace(
            "OPEN",
            &format!("openat(AT_FDCWD<{}>, \"{}\", O_RDWR|O_CREAT", hex("/"), hex("/m/a")),
        );
        let words = call.split('\'').enumerate();
        let words = words.map(|(index, word)| {
            if index % 2 == 1 {
                format!("\"{}\"", hex(word))
            } else {
                word.to_owned()
            }
        });
        format!("{}\n", words.collect::<String>())
    };
    trace::read(&calls.iter().map(line).collect::<String>()).expect("a trace")
}

/// What all cuts leave of `/m/a` after the first `events`; `None` where it is not there.
fn left(trace: &Trace, events: usize) -> Vec<Option<Vec<u8>>> {
    let mut medium = Medium::new(Path::new("/m"));
    for &event in &trace.events[..events] {
        medium.apply(trace, event).expect("an event");
    }
    let cut = |seed: u64| {
        let folder = tempfile::tempdir().expect("a folder");
        let leaves = UnsyncedKept::ALL[seed as usize % UnsyncedKept::ALL.len()];
        medium
            .cut(leaves, None, &mut Rng::new(seed), folder.path())
            .expect("a cut");
        fs::read(folder.path().join("a")).ok()
    };
    (0..100).map(cut).collect()
}

#[test]
fn writes_before_a_sync_are_certain_once_it_ends() {
    let trace = script(&[
        "1 OPEN) = 5",
        "1 write(FILE, 'ab', 2) = 2",
        "1 fsync(FILE <unfinished ...>",
        "2 write(FILE, 'cd', 2) = 2",
        "1 <... fsync resumed>) = 0",
        "1 fsync(FOLDER) = 0",
    ]);
    let all = trace.events.len();
    let certain = left(&trace, all);
    assert!(
        certain
            .iter()
            .all(|bytes| bytes.as_ref().is_some_and(|bytes| bytes.starts_with(b"ab")))
    );
    // What was written while the sync ran is there only sometimes.
    for expected in [&b"ab"[..], b"abcd", b"ab\0\0"] {
        assert!(
            certain.iter().any(|bytes| bytes.as_deref() == Some(expected)),
            "{expected:?}"
        );
    }
    // Before the sync of the folder the name is there only sometimes.
    let before = left(&trace, all - 2);
    assert!(before.iter().any(Option::is_none) && before.iter().any(Option::is_some));
    // Before the sync has ended its bytes are there only sometimes.
    let before = left(&trace, all - 3);
    assert!(before.iter().flatten().any(|bytes| !bytes.starts_with(b"ab")));
}

#[test]
fn a_rename_is_there_whole_or_not() {
    let trace = script(&[
        "1 OPEN) = 5",
        "1 pwrite64(FILE, 'old', 3, 0) = 3",
        "1 fdatasync(FILE) = 0",
        "1 fsync(FOLDER) = 0",
        "1 close(FILE) = 0",
        "1 openat(FOLDER, 'b', O_WRONLY|O_CREAT|O_TRUNC, 0644) = 7",
        "1 rename('/m/b', '/m/a') = 0",
    ]);
    let seen = left(&trace, trace.events.len());
    for expected in [&b"old"[..], b""] {
        assert!(
            seen.iter().any(|bytes| bytes.as_deref() == Some(expected)),
            "{expected:?}"
        );
    }
    assert!(seen.iter().all(Option::is_some));
}

#[test]
fn appends_seeks_copies_and_lengths_are_followed() {
    let trace = script(&[
        "1 OPEN|O_APPEND) = 5",
        "1 write(FILE, 'ab', 2) = 2",
        "1 ftruncate(FILE, 1) = 0",
        "1 fcntl(FILE, F_DUPFD_CLOEXEC, 3) = 8",
        "1 write(FILE, 'c', 1) = 1",
        "1 fsync(FILE) = 0",
        "1 syncfs(FOLDER) = 0",
    ]);
    assert!(
        left(&trace, trace.events.len())
            .iter()
            .all(|bytes| bytes.as_deref() == Some(b"ac"))
    );
}

#[test]
fn a_torn_write_has_whole_sectors() {
    let change = Change::Write(100, vec![7; 2000]);
    for seed in 0..50 {
        let mut bytes = vec![0; 2100];
        change.torn(&mut Rng::new(seed), &mut bytes);
        for from in [100, 512, 1024, 1536] {
            let end = (from / SECTOR * SECTOR + SECTOR).min(2100);
            let first = bytes[from];
            assert!(bytes[from..end].iter().all(|&byte| byte == first));
        }
    }
}
