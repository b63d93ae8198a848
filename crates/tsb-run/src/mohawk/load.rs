//! The corrected runs: connections are kept, several gauges go into a write, several clients work
//! at a time, and in the open loop requests are due at absolute times, whatever came before.
//!
//! Time runs forward, every read has one right answer, and after the run every sample that was
//! confirmed is read back.

mod closed;
mod open;
mod read_back;

use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::latency::{Histogram, Quantiles};
use tsb_core::report::experiment::mohawk::LoadRun;
use tsb_core::time::{Clock, SECOND_NS};

use super::connection::{AnswerRow, Outcome};
use super::endpoint::OpenEndpoint;
use super::gauges::Gauges;
use super::processes::watched;
use super::windows::{RowRule, SPACING_MS};
use super::wrong_reads::WrongReads;

pub(super) use read_back::range_of;

/// How a backend is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// One client that keeps its connection, one sample per write.
    Kept,
    /// The same with a sample of many gauges per write.
    Batches,
    /// Several such clients, one sample per write.
    Concurrent,
    /// Several clients that share a schedule of writes and reads.
    Open,
}

impl Way {
    pub(super) const ALL: [Self; 4] = [Self::Kept, Self::Batches, Self::Concurrent, Self::Open];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Batches => "batches",
            Self::Concurrent => "concurrent",
            Self::Open => "open",
        }
    }
}

/// A corrected run.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadOptions<'a> {
    pub(super) way: Way,
    /// Writes, and as many reads, of a closed loop with one sample per write.
    pub(super) requests: u64,
    /// Gauges of a write with several.
    pub(super) batch: u32,
    /// Clients where there are several.
    pub(super) connections: u32,
    /// Requests per second of the open loop, half of them writes.
    pub(super) rate: u64,
    /// Its length in seconds.
    pub(super) seconds: u64,
    pub(super) seed: u64,
    /// The round, from 0.
    pub(super) round: u32,
    pub(super) stop: &'a AtomicBool,
}

/// A write with several samples is as dear as several: it is made this much less often.
const FEWER_BATCHES: u64 = 20;

/// Samples that the ways with closed loops write, about.
pub(super) fn samples_of_ways(requests: u64, batch: u32) -> u64 {
    2 * requests + (requests / FEWER_BATCHES).max(1) * u64::from(batch)
}

impl LoadOptions<'_> {
    const fn clients(&self) -> u32 {
        match self.way {
            Way::Kept | Way::Batches => 1,
            Way::Concurrent | Way::Open => self.connections,
        }
    }

    const fn gauges_per_write(&self) -> u32 {
        if matches!(self.way, Way::Batches) {
            self.batch
        } else {
            1
        }
    }

    /// Writes of each client of a closed loop, and reads too.
    fn writes_per_client(&self) -> u64 {
        match self.way {
            Way::Batches => (self.requests / FEWER_BATCHES).max(1),
            Way::Kept | Way::Concurrent | Way::Open => (self.requests / u64::from(self.clients())).max(1),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What is shared by the clients of a run.
struct Context<'a> {
    options: &'a LoadOptions<'a>,
    endpoint: &'a OpenEndpoint,
    clock: &'a dyn Clock,
    gauges: Gauges,
    /// The time of the first sample of each gauge, in milliseconds: a whole minute.
    base_ms: i64,
}

impl Context<'_> {
    /// The time of a sample.
    const fn time(&self, number: u64) -> i64 {
        self.base_ms + number.cast_signed() * SPACING_MS
    }

    /// A range that has this sample, and no other unless ends are counted differently.
    const fn window(&self, number: u64) -> (i64, i64) {
        (self.time(number) - SPACING_MS / 2, self.time(number) + SPACING_MS)
    }

    /// Why an answer is wrong. `is_there` says of a sample near the window whether it was
    /// confirmed; it is asked for neighbours only.
    fn what_is_wrong(
        &self,
        rows: &[AnswerRow],
        (gauge, number): (u32, u64),
        is_there: impl Fn(u64) -> bool,
    ) -> Option<String> {
        let rule = self.endpoint.rules.map(|rules| rules.rows);
        let window = self.window(number);
        let near = number..=number + 1;
        let expected =
            near.filter(|near| is_there(*near) && rule.unwrap_or(RowRule::FromStart).has(self.time(*near), window));
        let expected = expected.count();
        for row in rows {
            let since = row.timestamp - self.base_ms;
            let found = since.div_euclid(SPACING_MS).cast_unsigned();
            if since.rem_euclid(SPACING_MS) != 0 || !(number..=number + 1).contains(&found) {
                return Some(format!("the row of {} ms was not asked for", row.timestamp));
            }
            if !self.gauges.is_value(gauge, found, row.value) {
                return Some(format!(
                    "the value of {} ms is not the one that was written",
                    row.timestamp
                ));
            }
        }
        let is_wrong = rule.is_some() && expected != rows.len();
        is_wrong.then(|| format!("the read of {number} has {} rows instead of {expected}", rows.len()))
    }
}

/// What one client has done.
#[derive(Debug, Default)]
struct Done {
    write: Histogram,
    read: Histogram,
    service: Histogram,
    sent: u64,
    failed: u64,
    /// The confirmed samples by gauge and number.
    confirmed: Vec<(u32, u64)>,
    /// How many of them were written before the run.
    prepared: u64,
    /// When the last write was confirmed, in nanoseconds of the clock.
    written_at: u64,
    wrong: WrongReads,
    first_error: Option<String>,
}

impl Done {
    fn failed(&mut self, why: String) {
        self.failed += 1;
        self.first_error.get_or_insert(why);
    }

    fn merge(&mut self, other: Self) {
        self.write.merge(&other.write);
        self.read.merge(&other.read);
        self.service.merge(&other.service);
        self.sent += other.sent;
        self.failed += other.failed;
        self.confirmed.extend(other.confirmed);
        self.written_at = self.written_at.max(other.written_at);
        self.wrong.merge(other.wrong);
        if let Some(why) = other.first_error {
            self.first_error.get_or_insert(why);
        }
    }
}

/// Runs a thread per client, which is given its number from 0, and adds up what they did.
fn by_clients(options: &LoadOptions<'_>, one: impl Fn(u32) -> Done + Sync) -> Done {
    let (one, mut all) = (&one, Done::default());
    std::thread::scope(|scope| {
        let clients = 0..options.clients();
        let threads: Vec<_> = clients.map(|client| scope.spawn(move || one(client))).collect();
        for thread in threads {
            match thread.join() {
                Ok(done) => all.merge(done),
                Err(panic) => all.failed(crate::error::panic_message(&*panic)),
            }
        }
    });
    all
}

/// A run and its histograms, which rounds share.
pub(super) struct Loaded {
    pub(super) run: LoadRun,
    pub(super) write: Histogram,
    pub(super) read: Histogram,
}

/// Runs it. Requests that fail are counted.
///
/// # Errors
/// That nothing could be prepared or read back, as a sentence.
pub(super) fn load(options: &LoadOptions<'_>, endpoint: &OpenEndpoint, clock: &dyn Clock) -> Outcome<Loaded> {
    let minutes = clock.wall().as_secs().div_euclid(60);
    let samples = match options.way {
        Way::Open => open::samples_per_gauge(options),
        _ => options.writes_per_client(),
    };
    let context = Context {
        options,
        endpoint,
        clock,
        gauges: Gauges::new(&format!("example.{}", options.way.name()), options.seed),
        // The newest is about now.
        base_ms: (minutes - samples.cast_signed()) * SPACING_MS,
    };
    if options.way == Way::Open {
        open::prepare(&context)?;
    }
    let start = clock.now();
    let (ended, processes) = watched(&endpoint.participants, clock, || {
        let done = if options.way == Way::Open {
            open::run(&context)
        } else {
            closed::run(&context)
        };
        (done, clock.now())
    });
    let (done, end) = ended;
    let mut run = LoadRun {
        backend: endpoint.tested.clone(),
        way: options.way.name().to_owned(),
        round: options.round,
        connections: options.clients(),
        batch: options.gauges_per_write(),
        asked_per_second: (options.way == Way::Open).then_some(options.rate as f64),
        processes,
        seconds: (end - start) as f64 / SECOND_NS as f64,
        due: match options.way {
            Way::Open => options.rate * options.seconds,
            _ => 2 * options.writes_per_client() * u64::from(options.clients()),
        },
        ..LoadRun::default()
    };
    fill_in(&mut run, &done, done.written_at.saturating_sub(start));
    read_back::read_back(&context, &done.confirmed, &mut run)?;
    Ok(Loaded {
        run,
        write: done.write,
        read: done.read,
    })
}

fn fill_in(run: &mut LoadRun, done: &Done, writing_ns: u64) {
    run.sent = done.sent;
    run.failed = done.failed;
    run.requests_per_second = (done.sent - done.failed) as f64 / run.seconds.max(1e-9);
    run.confirmed = done.confirmed.len() as u64;
    let written = run.confirmed - done.prepared;
    run.samples_per_second = written as f64 * SECOND_NS as f64 / writing_ns.max(1) as f64;
    run.write = Quantiles::new(&done.write);
    run.read = Quantiles::new(&done.read);
    run.service = run.asked_per_second.map(|_| Quantiles::new(&done.service));
    run.wrong = done.wrong.sentences();
    if let Some(why) = &done.first_error {
        run.wrong
            .push(format!("{} requests failed, the first: {why}", done.failed));
    }
}
