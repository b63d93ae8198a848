//! A consolidating store behind a wire that loses samples: rows that depend on what was lost
//! are not held against it, and the others are.

use std::path::Path;

use serde_json::Value;

use crate::program::tsb;

/// Twenty hosts send at the same moment what a receive buffer of a few datagrams cannot hold.
const LOSSY: &str = "--quiet --no-calibrate --workload mix --series 1080 --interval 1s --phase aligned --rate 5400 \
                     --duration 2s --transport udp --protocol graphite --receive-buffer 4KiB";

/// The report of a lossy run into a store, which is kept in the folder. It takes less than half of
/// what is sent, so the rest finds no room.
fn run(folder: &Path, wrapper: &str, options: &str) -> Value {
    let out = folder.join("report.json");
    let place = folder.join("store");
    let store = format!(
        "throttle+{wrapper}rrd:{}?step=1s&throttle.rate=2k{options}",
        place.display()
    );
    let mut arguments = vec!["run", "--store", &store, "--out", out.to_str().unwrap()];
    arguments.extend(LOSSY.split_whitespace());
    let output = tsb(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap_or_else(|_| panic!("{said}"));
    let run = report["runs"].get(0).unwrap_or(&report).clone();
    let ledger = &run["ledger"];
    let lost = count(ledger, "kernel_dropped") + count(ledger, "lost_in_transport");
    assert!(lost > 0, "{ledger}");
    run
}

fn count(ledger: &Value, name: &str) -> u64 {
    ledger[name].as_u64().unwrap_or_default()
}

/// Something was lost and something came, and the ledger says that it is sound.
fn is_lossy_and_sound(run: &Value) {
    let (ledger, verdict) = (&run["ledger"], &run["verdict"]);
    assert_ne!(verdict["status"], "INVALID", "{verdict:#}");
    assert_eq!(ledger["balanced"], true, "{ledger}");
    assert_eq!(
        (
            count(ledger, "altered"),
            count(ledger, "lost"),
            count(ledger, "duplicated")
        ),
        (0, 0, 0)
    );
    // The first hosts of each moment find room; which others do is a matter of chance.
    assert!(count(ledger, "verified") > 0, "{ledger}");
    let known = count(ledger, "verified") + count(ledger, "uncompared");
    assert_eq!(known, count(ledger, "accepted"), "{ledger}");
    assert_eq!(run["exceptions"]["never_arrived_unnamed"], 0, "{verdict:#}");
}

#[test]
fn losses_in_transport_are_no_losses_of_a_store_of_rows() {
    for wrapper in ["", "write-cache+"] {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path(), wrapper, "");
        is_lossy_and_sound(&run);
        if wrapper.is_empty() {
            // Nor on another day.
            let report = folder.path().join("report.json");
            let verified = tsb(&["verify", report.to_str().unwrap(), "--format", "json"])
                .output()
                .unwrap();
            let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
            for name in ["verified", "uncompared", "lost", "altered"] {
                let (then, now) = (count(&run["ledger"], name), &verified["stores"][0]["ledger"]);
                assert_eq!(count(now, name), then, "{name}: {now}");
            }
        }
    }
}

#[test]
fn a_row_that_is_altered_is_seen_beside_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path(), "", "&throttle.alter_one_in=50");
    let (ledger, verdict) = (&run["ledger"], &run["verdict"]);
    assert_eq!(verdict["status"], "INVALID", "{verdict:#}");
    assert!(
        count(ledger, "altered") > 0 && count(ledger, "verified") > 0,
        "{ledger}"
    );
    assert_eq!(ledger["balanced"], true, "{ledger}");
}
