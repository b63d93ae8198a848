//! Mutations of the SQLite store that a crash, a damaged byte or a second generation must
//! reveal.

use super::list::Mutation;

const TICKS: &str = "crates/tsb-stores/src/sqlite/ticks.rs";
const COMMIT: &str = "crates/tsb-stores/src/sqlite/ticks/commit.rs";
const GENERATIONS: &str = "crates/tsb-stores/src/sqlite/ticks/generations.rs";
const FILE: &str = "crates/tsb-stores/src/sqlite/file.rs";

/// A break noticed by the store's unit tests.
const fn unit(what: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation {
        what,
        file,
        from,
        to,
        package: "tsb-stores",
        tests: &["--lib", "sqlite"],
    }
}

/// A break noticed by kills, power cuts and failing media.
const fn crash(what: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation {
        tests: &["--test", "crash"],
        ..unit(what, file, from, to)
    }
}

pub(super) const MUTATIONS: &[Mutation] = &[
    crash(
        "the SQLite store says that what was only accepted is synced",
        TICKS,
        "Durability::Synced => &self.shared.synced,",
        "Durability::Synced => &self.shared.accepted,",
    ),
    crash(
        "the SQLite store does not have a commit wait for the medium",
        FILE,
        "Synchronous::Full => \"EXTRA\",",
        "Synchronous::Full => \"NORMAL\",",
    ),
    crash(
        "the SQLite store flushes without a sync",
        COMMIT,
        "self.run(shared, \"PRAGMA synchronous=FULL\")",
        "self.run(shared, \"PRAGMA synchronous=NORMAL\")",
    ),
    crash(
        "the SQLite store goes on after a failed commit",
        COMMIT,
        "shared.open.poison(|| format!(\"{what} failed: {}\", chain(&error)));",
        "let _ = (shared, what);",
    ),
    unit(
        "the SQLite store replays a damaged frame",
        "crates/tsb-stores/src/sqlite/log.rs",
        "if crc32fast::hash(&bytes[HEAD..]) != sum {",
        "if sum == 0 && false {",
    ),
    unit(
        "the SQLite store reads a damaged chunk",
        "crates/tsb-stores/src/sqlite/chunk.rs",
        "if crc32fast::hash(rest) != u32::from_le_bytes(sum) {",
        "if u32::from_le_bytes(sum) == 0 && false {",
    ),
    unit(
        "the SQLite store reads a damaged summary",
        "crates/tsb-stores/src/sqlite/summary.rs",
        "if checksum(key, rest) != u32::from_le_bytes(sum) {",
        "if u32::from_le_bytes(sum) == 0 && false {",
    ),
    unit(
        "the SQLite store lets a maximum stand for samples that were written over",
        "crates/tsb-stores/src/sqlite/ticks/collect.rs",
        "decoded.extend(overlapped_maxima(parts));",
        "",
    ),
    unit(
        "the SQLite store takes the maxima of a generation that the range cuts",
        "crates/tsb-stores/src/sqlite/ticks/collect.rs",
        "let whole = generation.oldest >= start && generation.newest < end;",
        "let whole = start <= end;",
    ),
    unit(
        "the SQLite store uses the file of another program",
        FILE,
        "if application != APPLICATION_ID {",
        "if false {",
    ),
    unit(
        "the SQLite store uses a file of a newer version",
        FILE,
        "if version != VERSION {",
        "if false {",
    ),
    unit(
        "the SQLite store never copies its write-ahead log back",
        "crates/tsb-stores/src/sqlite/wal.rs",
        "let is_due = self.bytes() >= bound && (pages - self.copied) * FRAME_BYTES >= bound / PARTS;",
        "let is_due = false;",
    ),
    unit(
        "the SQLite store keeps what has expired",
        COMMIT,
        "self.delete_expired_chunks(shared)",
        "Ok(())",
    ),
    unit(
        "the SQLite store waits with a commit for the next write",
        "crates/tsb-stores/src/sqlite/timer.rs",
        "if committed == seen && waits {",
        "if false {",
    ),
    unit(
        "the SQLite store finds a damaged tree sound",
        FILE,
        "PRAGMA quick_check(1)",
        "SELECT 'ok'",
    ),
    unit(
        "the SQLite store lets the first batch wait for the keys of a fleet",
        COMMIT,
        "while self.new_keys.len() >= KEYS_AT_ONCE {",
        "while false {",
    ),
    unit(
        "the SQLite store begins a generation one frame late",
        GENERATIONS,
        "self.head = HeadState::new(self.head.number + 1, self.seq);",
        "self.head = HeadState::new(self.head.number + 1, self.seq + 1);",
    ),
    unit(
        "the SQLite store replays what has moved into chunks",
        "crates/tsb-stores/src/sqlite/ticks/replay.rs",
        "let gone = (moved.saturating_sub(first.0) as usize).min(batch.len());",
        "let gone = 0;",
    ),
    unit(
        "the SQLite store lets the older generation hold",
        "crates/tsb-stores/src/sqlite/ticks/view.rs",
        "(number as u64) << 33",
        "(u32::MAX as u64 - number as u64) << 33",
    ),
    unit(
        "the SQLite store counts what lies over older generations twice",
        GENERATIONS,
        "aging.shadowed += self.count_shadowed(shared, aging, number, prior)?;",
        "",
    ),
];
