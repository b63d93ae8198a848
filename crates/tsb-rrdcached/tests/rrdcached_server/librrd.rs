//! What our own engine leaves to librrd: done where that is built in, else refused by name.

use std::path::Path;

use super::{OurServer, START_S, options};

/// What each refusal ends with.
const REFUSED: &str = "needs librrd, which this build of tsb does not have (cargo feature librrd)";

/// Whether librrd is built in.
const IS_LINKED: bool = cfg!(feature = "librrd");

fn ours(folder: &Path) -> OurServer {
    OurServer::open(folder, &options())
}

/// The rows of a reply to `FETCH`, without its head.
fn rows(lines: &[String]) -> Vec<&str> {
    let starts_with_time = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    lines
        .iter()
        .skip(1)
        .map(String::as_str)
        .filter(starts_with_time)
        .collect()
}

pub(super) fn a_file_of_too_many_bytes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = ours(folder.path());
    let check = |ours: &mut OurServer, archive: &str, bytes: &str| {
        let reply = ours.first(&format!("CREATE a.rrd DS:v:GAUGE:20:U:U {archive}"));
        let expected =
            format!("-1 RRD Error: the archives would take {bytes} bytes, and max_file_bytes allows 1073741824");
        assert_eq!(reply, expected, "{archive}");
        assert!(!folder.path().join("base/a.rrd").exists());
    };
    check(&mut ours, "RRA:AVERAGE:0.5:1:4294967296", "34359738368");
    check(&mut ours, "RRA:AVERAGE:0.5:1:134217728 RRA:MAX:0.5:1:1", "1073741832");
    check(&mut ours, "RRA:HWPREDICT:134217728:0.1:0.1:10", "5368709120");
    check(
        &mut ours,
        "RRA:AVERAGE:0.5:1:18446744073709551615",
        "18446744073709551615",
    );
    let reply = ours.first("CREATE a.rrd DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:1000");
    assert_eq!(reply, "0 RRD created OK");
}

pub(super) fn features_of_librrd_are_left_to_it_or_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = ours(folder.path());
    let create = format!(
        "CREATE hw.rrd -b {START_S} -s 10 DS:a:GAUGE:20:U:U DS:b:GAUGE:20:U:U DS:sum:COMPUTE:a,b,+ \
         RRA:AVERAGE:0.5:1:50 RRA:HWPREDICT:50:0.1:0.0035:10"
    );
    let created = ours.first(&create);
    if !IS_LINKED {
        assert_eq!(created, format!("-1 RRD Error: a COMPUTE data source {REFUSED}"));
        existing_files_are_refused_by_name(&mut ours, folder.path());
        return;
    }
    assert_eq!(created, "0 RRD created OK");
    for tick in 0..20 {
        let at = START_S + 1 + tick * 10;
        let reply = ours.first(&format!("UPDATE hw.rrd {at}:{tick}:{}", 2 * tick));
        assert_eq!(reply, "0 errors, enqueued 1 value(s).");
    }
    let refused = ours.first(&format!("UPDATE hw.rrd {}:1", START_S + 500));
    assert!(refused.starts_with("-1 "), "a COMPUTE source takes no value: {refused}");
    let late = ours.first(&format!("UPDATE hw.rrd {START_S}:1:1"));
    assert!(late.contains("illegal attempt to update"), "{late}");
    let (from, to) = (START_S + 100, START_S + 120);
    let fetched = ours.ask(&format!("FETCH hw.rrd AVERAGE {from} {to}"));
    assert!(fetched.iter().any(|line| line == "DSName: a b sum"), "{fetched:?}");
    let sums: Vec<f64> = rows(&fetched)
        .iter()
        .filter_map(|row| row.rsplit(' ').next()?.parse().ok())
        .filter(|sum: &f64| !sum.is_nan())
        .collect();
    assert_eq!(sums[..2], [30.0, 33.0], "{fetched:?}");
    let predicted = ours.ask(&format!("FETCH hw.rrd HWPREDICT {from} {to}"));
    assert!(predicted[0].ends_with("Success"), "{predicted:?}");
    assert_eq!(ours.newest("hw.rrd"), START_S + 191);
    let info = ours.ask("INFO hw.rrd");
    for fact in ["ds[sum].type 2 COMPUTE", "rra[1].cf 2 HWPREDICT"] {
        assert!(info.iter().any(|line| line == fact), "{fact}: {info:?}");
    }
    assert!(ours.first("FIRST hw.rrd 0").starts_with("0 "));
    assert!(ours.first("LAST hw.rrd").starts_with(&format!("0 {}", START_S + 191)));
    assert!(
        ours.first("FETCH hw.rrd AVERAGE 1 2000000000")
            .contains("more than 1000000 values")
    );
    let account = ours.cache.stats().account;
    assert_eq!((account.accepted, account.written, account.failed), (20, 20, 0));
}

/// A file of librrd's that our own engine cannot handle: ours, with another kind of source.
fn existing_files_are_refused_by_name(ours: &mut OurServer, folder: &Path) {
    ours.create("a.rrd");
    let path = folder.join("base/a.rrd");
    let mut bytes = std::fs::read(&path).unwrap();
    // The kind of the first data source, as docs/formats describes the file.
    bytes[148..156].copy_from_slice(b"COMPUTE\0");
    std::fs::write(&path, bytes).unwrap();
    for line in [
        "UPDATE a.rrd 1700000000:1",
        "FETCH a.rrd AVERAGE 1700000000 1700000010",
        "INFO a.rrd",
        "FIRST a.rrd 0",
        "LAST a.rrd",
    ] {
        let reply = ours.first(line);
        assert!(
            reply.starts_with("-1 ") && reply.ends_with(&format!("a COMPUTE data source {REFUSED}")),
            "{line}: {reply}"
        );
    }
}

pub(super) fn a_file_is_created_from_others_or_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = ours(folder.path());
    ours.create("a.rrd");
    let updates: Vec<String> = (1..=6)
        .map(|tick| format!("{}:{tick}", START_S + 1 + tick * 10))
        .collect();
    ours.first(&format!("UPDATE a.rrd {}", updates.join(" ")));
    let copied = ours.first("CREATE b.rrd -s 10 -r a.rrd -t a.rrd");
    if !IS_LINKED {
        assert_eq!(copied, format!("-1 RRD Error: creation from other files {REFUSED}"));
        return;
    }
    assert_eq!(copied, "0 RRD created OK");
    let window = format!("AVERAGE {START_S} {}", START_S + 60);
    let fetched = ["a.rrd", "b.rrd"].map(|file| ours.ask(&format!("FETCH {file} {window}")));
    assert_eq!(rows(&fetched[0]), rows(&fetched[1]));
    assert!(
        rows(&fetched[1])
            .iter()
            .any(|row| row.contains("4.00000000000000000e+00")),
        "{fetched:?}"
    );
    // In place of itself; and only below the folder.
    assert_eq!(ours.first("CREATE a.rrd -s 10 -r a.rrd -t a.rrd"), "0 RRD created OK");
    let outside = ours.first("CREATE c.rrd -r ../a.rrd DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:10");
    assert!(outside.ends_with("Permission denied"), "{outside}");
}

pub(super) fn a_file_is_tuned_and_dumped() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = ours(folder.path());
    ours.create("a.rrd");
    ours.first(&format!("UPDATE a.rrd {}:7", START_S + 11));
    let tuned = ours.first("TUNE a.rrd 2 --heartbeat value:77");
    if !IS_LINKED {
        assert_eq!(tuned, format!("-1 Got error TUNE {REFUSED}"));
        assert_eq!(
            ours.first("DUMP a.rrd"),
            format!("-1 a.rrd: failed to relay dump: DUMP {REFUSED}")
        );
        assert!(!ours.is_over);
        return;
    }
    assert_eq!(tuned, "0 Success");
    assert_eq!(ours.newest("a.rrd"), START_S + 11, "what was pending was written first");
    let info = ours.ask("INFO a.rrd");
    assert!(
        info.iter().any(|line| line == "ds[value].minimal_heartbeat 1 77"),
        "{info:?}"
    );
    for (line, expected) in [
        ("TUNE", "-1 Usage: TUNE <filename> [options]"),
        ("TUNE a.rrd", "-1 Usage: TUNE <filename> [options]"),
        ("TUNE a.rrd -1", "-1 Invalid argument count specified (-1)"),
        (
            "TUNE a.rrd 1 --daemon=unix:/x",
            "-1 Got error unknown option '--daemon=unix:/x'",
        ),
        (
            "DUMP nope.rrd",
            "-1 nope.rrd: failed to stat: No such file or directory",
        ),
        ("DUMP", "-1 Usage: DUMP <filename> [-h none|xsd|dtd]"),
    ] {
        assert_eq!(ours.first(line), expected, "{line}");
    }
    // The new heartbeat counts for what comes next.
    ours.first(&format!("UPDATE a.rrd {}:8", START_S + 81));
    ours.first("FLUSH a.rrd");
    let fetched = ours.ask(&format!("FETCH a.rrd AVERAGE {} {}", START_S + 30, START_S + 60));
    assert!(rows(&fetched)[0].ends_with("8.00000000000000000e+00"), "{fetched:?}");
    let xml = ours.ask("DUMP a.rrd");
    assert!(
        xml[0].starts_with("<?xml") && xml.last().unwrap().contains("</rrd>"),
        "{xml:?}"
    );
    assert!(ours.is_over, "the end of the connection is the end of the file");
}
