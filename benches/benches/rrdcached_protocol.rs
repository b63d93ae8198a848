//! What does a command of rrdcached's protocol cost the server?
//!
//! UPDATE commands with two data sources for files of the published layout, given to the decoder
//! in one buffer as a connection would: parse the line, validate the update and queue it. No
//! socket, no journal, and nothing is written during the measurement. The pending updates are
//! counted once before timing. Parsing the lines alone is timed as the lower bound.

#![expect(clippy::expect_used, reason = "a benchmark may stop with a message")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use tsb_bench::rrd::{START_S, STEP_S, original_layout};
use tsb_core::time::MonotonicClock;
use tsb_core::wire::rrdcached::{Command, NoSeries, Words, line};
use tsb_core::wire::{Decoder, Next, Peer};
use tsb_rrdcached::{Conversation, FileBounds, FileCache};
use tsb_stores::write_cache::WriteCacheOptions;

const FILES: usize = 200;
/// Updates per file in one buffer.
const ROUNDS: i64 = 20;

fn commands(framing: (&str, &str)) -> Vec<u8> {
    let mut text = framing.0.to_owned();
    for round in 1..=ROUNDS {
        for file in 0..FILES {
            let at = START_S + round * STEP_S;
            let _ = writeln!(text, "UPDATE {file}.rrd {at}:{}.125:{round}", file % 97);
        }
    }
    text.push_str(framing.1);
    text.into_bytes()
}

fn create(folder: &Path) {
    let layout = original_layout();
    for file in 0..FILES {
        let path = folder.join(format!("{file}.rrd"));
        tsb_rrd::create(&path, &layout, START_S, 1).expect("a file");
    }
}

fn open(folder: &Path) -> Conversation {
    let options = WriteCacheOptions {
        threads: 1,
        ..WriteCacheOptions::default()
    };
    let cache = FileCache::open(
        folder,
        FileBounds::of_files(FILES),
        &options,
        Arc::new(MonotonicClock::new()),
    )
    .expect("a cache");
    let mut conversation = Conversation::new(Arc::new(cache));
    // A file is opened when it is first named; do that before the measurement.
    let mut first = String::new();
    for file in 0..FILES {
        let _ = writeln!(first, "UPDATE {file}.rrd {}:1:1", START_S + 1);
    }
    let mut replies = Vec::new();
    talk(&mut conversation, first.as_bytes(), &mut replies);
    conversation
}

fn talk(conversation: &mut Conversation, bytes: &[u8], replies: &mut Vec<u8>) {
    let peer = Peer {
        rejected: 0,
        is_listening: true,
    };
    let mut at = 0;
    loop {
        at += conversation.decode(&bytes[at..], &mut NoSeries).expect("commands");
        if conversation.answer(peer, replies) != Next::Again {
            return;
        }
    }
}

fn verify(folder: &Path) {
    let mut conversation = open(folder);
    let mut replies = Vec::new();
    talk(
        &mut conversation,
        &commands(("BATCH\n", ".\nPENDING 7.rrd\n")),
        &mut replies,
    );
    let replies = String::from_utf8(replies).expect("text");
    let mut lines = replies.lines().skip(1);
    assert_eq!(lines.next(), Some("0 errors"));
    assert_eq!(lines.next(), Some(format!("{} updates pending", ROUNDS + 1).as_str()));
}

fn protocol(criterion: &mut Criterion, folder: &Path) {
    let mut group = criterion.benchmark_group("rrdcached_protocol");
    group.sample_size(10);
    group.throughput(Throughput::Elements(FILES as u64 * ROUNDS as u64));
    for (name, framing) in [("update", ("", "")), ("batch", ("BATCH\n", ".\n"))] {
        let bytes = commands(framing);
        group.bench_function(BenchmarkId::new("serve", name), |bencher| {
            bencher.iter_batched_ref(
                || (open(folder), Vec::new()),
                |(conversation, replies)| talk(conversation, &bytes, replies),
                BatchSize::PerIteration,
            );
        });
    }
    let bytes = commands(("", ""));
    group.bench_function(BenchmarkId::new("read", "update"), |bencher| {
        bencher.iter(|| black_box(words(&bytes)));
    });
    group.finish();
}

/// Only splits lines into words, and finds the commands.
fn words(bytes: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some((text, len)) = line(&bytes[at..]) {
        at += len;
        let mut words = Words::of(std::str::from_utf8(text).unwrap_or_default());
        let command = words.next().and_then(|word| Command::from_word(&word));
        count += usize::from(command == Some(Command::Update)) * words.count();
    }
    count
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    create(folder.path());
    verify(folder.path());
    let mut criterion = Criterion::default().configure_from_args();
    protocol(&mut criterion, folder.path());
    criterion.final_summary();
}
