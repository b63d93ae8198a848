//! Updates as nearly all are written have a way of their own: what it takes, and what it says,
//! must be what the other way does. A command in small letters goes that other way.

use std::fmt::Write as _;
use std::sync::Arc;

use tsb_core::time::ManualClock;

use super::OurServer;

const FILES: [&str; 9] = [
    "a.rrd",
    "sub/b.rrd",
    "a.rrd/",
    "./a.rrd",
    "ROOT/a.rrd",
    "a\\.rrd",
    "no.rrd",
    "../a.rrd",
    "",
];
const VALUES: [&str; 16] = [
    ":1", ":1.5", ":U", ":-3", ":1e3", ":", "", ":1:2", ":x", ":\\1", ":1 ", " ", ":1\t2", ":nan", ":1.2.3", "@:1",
];

/// What a client may say next: mostly good and in order, one update or two at once.
fn commands(seed: &mut u64, now_s: &mut i64) -> Vec<String> {
    let mut next = |limit: usize| {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as usize % limit
    };
    let count = 1 + next(90);
    let one = |_: usize| {
        if next(12) == 0 {
            return format!("FLUSH {}", FILES[next(2)]);
        }
        let file = FILES[if next(3) > 0 { next(2) } else { next(FILES.len()) }];
        let (blank, more) = ([" ", "  ", "\t"][next(8).saturating_sub(5)], next(6) == 0);
        let mut line = format!("UPDATE{blank}{file}");
        for _ in 0..=usize::from(more) {
            let value = VALUES[if next(4) > 0 { next(2) } else { next(VALUES.len()) }];
            *now_s += i64::from(next(4) > 0);
            let _ = write!(line, "{blank}{}{value}", *now_s - (next(8) / 7) as i64);
        }
        line
    };
    (0..count).map(one).collect()
}

pub(super) fn a_plain_update_is_accepted_like_any_other() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let options = super::options();
    let mut both = folders.each_ref().map(|folder| {
        std::fs::create_dir_all(folder.path().join("base/sub")).unwrap();
        let mut ours = OurServer::with_clock(folder.path(), &options, Arc::new(ManualClock::new()));
        ours.create("a.rrd");
        ours.create("sub/b.rrd");
        ours
    });
    let (mut seed, mut now_s, mut accepted) = (5, 1_700_000_000, 0);
    for round in 0..400 {
        let lines = commands(&mut seed, &mut now_s);
        let text = match round % 2 {
            0 => lines.join("\n"),
            _ => format!("BATCH\n{}\n.", lines.join("\n")),
        };
        let mut said = [text.clone(), text.replace("UPDATE", "update")].into_iter();
        let replies = both.each_mut().map(|ours| {
            let root = ours.cache.folder().display().to_string();
            let text = said.next().unwrap().replace("ROOT", &root);
            let replies = ours.ask(&text).join("\n").replace(&root, "ROOT");
            let pending = ["a.rrd", "sub/b.rrd"].map(|file| ours.cache.pending(file).unwrap());
            let stats = ours.cache.stats();
            let counted = (stats.updates_received, stats.values_rejected, stats.account);
            (replies, pending, counted)
        });
        assert_eq!(replies[0], replies[1], "{text}");
        accepted = replies[0].2.2.accepted;
    }
    assert!(accepted > 1_000, "{accepted}");
}
