//! rrdcached in simulated time: updates arrive, wait in the queue of their file, and are written by
//! threads that share cores and a device.
//!
//! The rules are those of rrdcached and of our write cache: a file is queued when an update arrives
//! a write timeout (and its jitter) after its last write, or by the sweep once per flush interval,
//! or by FLUSHALL, which ends the scenario; one write takes all values that wait for a file. The
//! kernel writes back pages that have been dirty for 30 s.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};
use tsb_core::latency::Histogram;
use tsb_core::report::device::{DeviceProfile, PAGE_BYTES};
pub use tsb_core::report::experiment::rrdcached::DrainCosts;
use tsb_core::time::SECOND_NS;

use super::drain_files::{Files, PagesToRead};
use super::fingerprint::Fingerprint;
use crate::device::{Device, Request};
use crate::draws::Draws;

/// Age at which the kernel writes a dirty page back, and how often it looks.
const DIRTY_EXPIRE_NS: u64 = 30 * SECOND_NS;
const WRITEBACK_PERIOD_NS: u64 = 5 * SECOND_NS;
/// Pages of one request of the kernel's writeback.
const WRITEBACK_PAGES: u64 = 256;
/// Inodes on a page of the file system: a synced file has its inode written, too.
const INODES_PER_PAGE: u64 = 16;

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainScenario {
    /// Number of files.
    pub files: usize,
    /// Updates of each file.
    pub updates: u64,
    /// Time from an update of a file to its next, in nanoseconds; 0: as fast as they are accepted.
    pub interval_ns: u64,
    /// Whether the updates of the files are spread over the interval; otherwise all are sent at its
    /// beginning.
    pub is_spread: bool,
    /// Seconds from the timestamp of an update to that of the next; a step has 300.
    pub data_step_s: u64,
    /// The write timeout (`-w`), in nanoseconds.
    pub timeout_ns: u64,
    /// Upper bound of the random delay beyond it (`-z`), in nanoseconds.
    pub jitter_ns: u64,
    /// The flush interval (`-f`), in nanoseconds.
    pub flush_ns: u64,
    /// Write threads (`-t`).
    pub threads: usize,
    /// Cores that these share.
    pub cores: usize,
    /// Whether no page of the files is in memory at first, and the server knows none of them. It
    /// reads the header of a file when it accepts its first update. Otherwise it knows all, as
    /// after a pass before.
    pub is_cold: bool,
    /// Seed of the jitter and of the device's times.
    pub seed: u64,
}

impl Default for DrainScenario {
    /// rrdcached's defaults; a file is updated every 10 s for an hour.
    fn default() -> Self {
        Self {
            files: 1_000,
            updates: 360,
            interval_ns: 10 * SECOND_NS,
            is_spread: true,
            data_step_s: 10,
            timeout_ns: 300 * SECOND_NS,
            jitter_ns: 0,
            flush_ns: 3_600 * SECOND_NS,
            threads: 4,
            cores: 2,
            is_cold: false,
            seed: 1,
        }
    }
}

/// What a simulation found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drained {
    /// Updates accepted; all were written in the end.
    pub accepted: u64,
    /// Writes of a file until the last update was accepted.
    pub writes_before_drain: u64,
    /// Writes of a file in all.
    pub writes: u64,
    /// Values that waited when the last update had been accepted.
    pub left: u64,
    /// Largest number of values that waited at once.
    pub waiting_max: u64,
    /// Largest number of queued files.
    pub queued_max: u64,
    /// How long the oldest value of a write had waited: the median, in nanoseconds.
    pub wait_p50_ns: u64,
    /// The 0.99 quantile, in nanoseconds.
    pub wait_p99_ns: u64,
    /// The longest, in nanoseconds.
    pub wait_max_ns: u64,
    /// When the last update had been accepted, in nanoseconds from the start.
    pub accepted_at_ns: u64,
    /// When all were in their files.
    pub drained_at_ns: u64,
    /// When all were synced.
    pub synced_at_ns: u64,
    /// Pages read from the device.
    pub pages_read: u64,
    /// Pages written to it.
    pub pages_written: u64,
    /// Time of the threads on cores, in nanoseconds.
    pub core_ns: u64,
    /// Time in which the device worked, in nanoseconds.
    pub device_busy_ns: u64,
    /// A hash of all events in order, with their times.
    pub fingerprint: u64,
}

impl Drained {
    /// Values in one write of a file, on average.
    pub fn coalescing(&self) -> f64 {
        self.accepted as f64 / self.writes.max(1) as f64
    }

    /// Time from the last accepted update until all were in their files, in nanoseconds.
    pub const fn drain_ns(&self) -> u64 {
        self.drained_at_ns - self.accepted_at_ns
    }

    /// Time from there until all were synced, in nanoseconds.
    pub const fn sync_ns(&self) -> u64 {
        self.synced_at_ns - self.drained_at_ns
    }
}

/// Simulates a scenario. The same arguments give the same result, on every machine.
///
/// Figures of 0 that would divide count as 1.
pub fn drain(scenario: &DrainScenario, costs: &DrainCosts, device: &DeviceProfile) -> Drained {
    Simulation::new(scenario, costs, device).run()
}

/// When a thread is done with what it does now, and which.
type UnderWay = Reverse<(u64, usize)>;

/// What a thread is writing.
#[derive(Clone, Debug, Default)]
struct Write {
    /// The files, with the number of their values.
    files: Vec<(u32, u32)>,
    /// Pages that are still to be read.
    reads: PagesToRead,
    core_ns: u64,
    is_on_core: bool,
}

struct Simulation<'a> {
    scenario: &'a DrainScenario,
    costs: &'a DrainCosts,
    device: Device,
    files: Files,
    queue: VecDeque<u32>,
    idle: Vec<usize>,
    under_way: BinaryHeap<UnderWay>,
    /// What each thread is writing.
    writes: Vec<Write>,
    /// When each core is free.
    cores: BinaryHeap<Reverse<u64>>,
    /// The update that arrives next, of all in order, and when.
    next_update: u64,
    arrives_at: u64,
    sweep_at: u64,
    look_at: u64,
    /// Pages that the kernel writes back, and when it goes on.
    to_write_back: u64,
    write_back_at: u64,
    waiting: u64,
    waits: Histogram,
    draws: Draws,
    fingerprint: Fingerprint,
    found: Drained,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a DrainScenario, costs: &'a DrainCosts, device: &DeviceProfile) -> Self {
        let threads = scenario.threads.max(1);
        let mut files = Files::new(scenario.files, scenario.data_step_s, scenario.is_cold);
        let mut draws = Draws::new(scenario.seed);
        if !scenario.is_cold {
            for file in &mut files.states {
                file.due_ns = Some(scenario.timeout_ns + jitter(&mut draws, scenario.jitter_ns, costs));
            }
        }
        Self {
            device: Device::new(device, scenario.seed),
            files,
            queue: VecDeque::new(),
            idle: (0..threads).rev().collect(),
            under_way: BinaryHeap::new(),
            writes: vec![Write::default(); threads],
            cores: std::iter::repeat_n(Reverse(0), scenario.cores.max(1)).collect(),
            next_update: 0,
            arrives_at: costs.accept_ns,
            sweep_at: scenario.flush_ns.max(1),
            look_at: WRITEBACK_PERIOD_NS,
            to_write_back: 0,
            write_back_at: 0,
            waiting: 0,
            waits: Histogram::new(),
            draws,
            fingerprint: Fingerprint::default(),
            found: Drained::default(),
            scenario,
            costs,
        }
    }

    fn updates(&self) -> u64 {
        self.scenario.updates * self.scenario.files as u64
    }

    fn run(mut self) -> Drained {
        while self.next_update < self.updates() {
            let written_at = self.written_at();
            let timer_at = self.timer_at();
            if written_at <= self.arrives_at && written_at <= timer_at {
                self.step_write();
            } else if timer_at <= self.arrives_at {
                self.fire_timer(timer_at);
            } else {
                self.arrive();
            }
        }
        let accepted_at = self.found.accepted_at_ns;
        self.found.left = self.waiting;
        self.found.writes_before_drain = self.found.writes;
        for index in 0..self.files.states.len() as u32 {
            self.enqueue(index);
        }
        self.start_writes(accepted_at);
        let mut drained_at = accepted_at;
        while !self.under_way.is_empty() {
            let (written_at, timer_at) = (self.written_at(), self.timer_at());
            if written_at <= timer_at {
                drained_at = written_at;
                self.step_write();
            } else {
                self.fire_timer(timer_at);
            }
        }
        self.finish(drained_at)
    }

    fn finish(mut self, drained_at: u64) -> Drained {
        let left = self.to_write_back + self.clean(drained_at);
        self.found.pages_written += left;
        let written_back = self.device.write_back(drained_at, left);
        let synced_at = self.device.sync(written_back);
        self.note(4, synced_at, left);
        let quantile = |share| self.waits.quantile(share).unwrap_or_default();
        Drained {
            wait_p50_ns: quantile(0.5),
            wait_p99_ns: quantile(0.99),
            wait_max_ns: self.waits.max().unwrap_or_default(),
            drained_at_ns: drained_at,
            synced_at_ns: synced_at,
            device_busy_ns: self.device.busy_ns(),
            fingerprint: self.fingerprint.value(),
            ..self.found
        }
    }

    fn written_at(&self) -> u64 {
        self.under_way.peek().map_or(u64::MAX, |Reverse((at, _))| *at)
    }

    fn timer_at(&self) -> u64 {
        let write_back_at = if self.to_write_back > 0 {
            self.write_back_at
        } else {
            u64::MAX
        };
        self.sweep_at.min(self.look_at).min(write_back_at)
    }

    /// The next update: of the files in turn, tick by tick.
    fn arrive(&mut self) {
        let (now, files) = (self.arrives_at, self.scenario.files as u64);
        let index = (self.next_update % files) as u32;
        if self.files.open(index) {
            self.found.pages_read += 1;
            self.arrives_at = self.device.submit(now, Request::Read(PAGE_BYTES)) + self.costs.read_ns;
            return;
        }
        self.next_update += 1;
        self.found.accepted += 1;
        self.found.accepted_at_ns = now;
        self.waiting += 1;
        self.found.waiting_max = self.found.waiting_max.max(self.waiting);
        self.note(1, now, u64::from(index));
        let clock = self.server_clock(now);
        if let Some(file) = self.files.states.get_mut(index as usize) {
            if file.pending == 0 {
                file.oldest_ns = now;
            }
            file.pending += 1;
            let delay_ns = match file.due_ns {
                Some(_) => 0,
                None => jitter(&mut self.draws, self.scenario.jitter_ns, self.costs),
            };
            if clock >= *file.due_ns.get_or_insert(clock + self.scenario.timeout_ns + delay_ns) {
                self.enqueue(index);
                self.start_writes(now);
            }
        }
        let (tick, of_tick) = (self.next_update / files, self.next_update % files);
        let offset = if self.scenario.is_spread {
            u128::from(of_tick) * u128::from(self.scenario.interval_ns) / u128::from(files)
        } else {
            0
        };
        let due = tick * self.scenario.interval_ns + offset as u64;
        self.arrives_at = due.max(now) + self.costs.accept_ns;
    }

    /// The time that the server's timeouts count by.
    const fn server_clock(&self, now: u64) -> u64 {
        if self.costs.is_in_seconds {
            now / SECOND_NS * SECOND_NS
        } else {
            now
        }
    }

    fn enqueue(&mut self, index: u32) {
        if let Some(file) = self.files.states.get_mut(index as usize)
            && file.pending > 0
            && !file.is_queued
        {
            file.is_queued = true;
            self.queue.push_back(index);
            self.found.queued_max = self.found.queued_max.max(self.queue.len() as u64);
        }
    }

    /// Gives queued files to idle threads.
    fn start_writes(&mut self, now: u64) {
        while !self.queue.is_empty()
            && let Some(thread) = self.idle.pop()
        {
            if !self.start_write(thread, now) {
                self.idle.push(thread);
                return;
            }
        }
    }

    /// Starts a thread on its share of the queue. Returns false if all queued files are being
    /// written.
    fn start_write(&mut self, thread: usize, now: u64) -> bool {
        let share = self.queue.len().div_ceil(self.scenario.threads.max(1));
        let mut write = Write::default();
        for _ in 0..share.min(self.costs.files_at_once.max(1)) {
            let Some(index) = self.queue.pop_front() else { break };
            let Some(file) = self.files.states.get_mut(index as usize) else {
                continue;
            };
            if file.is_being_written {
                self.queue.push_back(index);
                continue;
            }
            let values = std::mem::take(&mut file.pending);
            (file.is_queued, file.is_being_written) = (false, true);
            self.waits.record(now - file.oldest_ns);
            let reads = self.files.take(index, values, now);
            write.files.push((index, values));
            write.reads.header += reads.header;
            write.reads.rows += reads.rows;
            write.core_ns += self.costs.write_ns
                + u64::from(values) * self.costs.value_ns
                + (reads.header + reads.rows) * self.costs.read_ns;
        }
        let has_any = !write.files.is_empty();
        if has_any && let Some(slot) = self.writes.get_mut(thread) {
            *slot = write;
            self.under_way.push(Reverse((now, thread)));
        }
        has_any
    }

    /// The next step of the thread that is ready first: its reads, then its time on a core, then
    /// the end of its write.
    fn step_write(&mut self) {
        let Some(Reverse((now, thread))) = self.under_way.pop() else {
            return;
        };
        let Some(write) = self.writes.get_mut(thread) else {
            return;
        };
        let reads = next_reads(&mut write.reads, self.costs.files_at_once > 1);
        let (is_on_core, core_ns) = (write.is_on_core, write.core_ns);
        if reads > 0 {
            self.found.pages_read += reads;
            let done = (0..reads)
                .map(|_| self.device.submit(now, Request::Read(PAGE_BYTES)))
                .max();
            self.under_way.push(Reverse((done.unwrap_or(now), thread)));
        } else if is_on_core {
            self.finish_write(thread, now);
        } else {
            write.is_on_core = true;
            let Reverse(core_at) = self.cores.pop().unwrap_or(Reverse(0));
            let done = core_at.max(now) + core_ns;
            self.cores.push(Reverse(done));
            self.found.core_ns += core_ns;
            self.under_way.push(Reverse((done, thread)));
        }
    }

    fn finish_write(&mut self, thread: usize, now: u64) {
        let write = self.writes.get_mut(thread).map(std::mem::take).unwrap_or_default();
        for (index, values) in write.files {
            self.note(2, now, (u64::from(index) << 32) | u64::from(values));
            self.found.writes += 1;
            self.waiting -= u64::from(values);
            let delay_ns = jitter(&mut self.draws, self.scenario.jitter_ns, self.costs);
            let due_ns = self.server_clock(now) + self.scenario.timeout_ns + delay_ns;
            if let Some(file) = self.files.states.get_mut(index as usize) {
                file.is_being_written = false;
                file.last_write_ns = now;
                file.due_ns = Some(due_ns);
            }
        }
        self.idle.push(thread);
        self.start_writes(now);
    }

    fn fire_timer(&mut self, now: u64) {
        if self.to_write_back > 0 && now == self.write_back_at {
            let pages = self.to_write_back.min(WRITEBACK_PAGES);
            self.to_write_back -= pages;
            self.found.pages_written += pages;
            self.write_back_at = self.device.write_back(now, pages);
        } else if now == self.look_at {
            self.look_at += WRITEBACK_PERIOD_NS;
            let expired = now.checked_sub(DIRTY_EXPIRE_NS).map(|before| self.clean(before));
            if self.to_write_back == 0 {
                self.write_back_at = now;
            }
            self.to_write_back += expired.unwrap_or_default();
        } else {
            self.sweep(now);
        }
    }

    /// Queues what is due, and forgets files without updates for a flush interval.
    fn sweep(&mut self, now: u64) {
        self.note(3, now, 0);
        self.sweep_at += self.scenario.flush_ns.max(1);
        let clock = self.server_clock(now);
        for index in 0..self.files.states.len() {
            let Some(file) = self.files.states.get_mut(index) else {
                break;
            };
            if file.pending == 0 && !file.is_being_written && now - file.last_write_ns >= self.scenario.flush_ns {
                file.due_ns = None;
            } else if file.due_ns.is_some_and(|due| clock >= due) {
                self.enqueue(index as u32);
            }
        }
        self.start_writes(now);
    }

    /// Cleans files that have been dirty since `before`. Returns the pages to write for that.
    fn clean(&mut self, before: u64) -> u64 {
        let (pages, files) = self.files.clean(before);
        pages + files.div_ceil(INODES_PER_PAGE)
    }

    fn note(&mut self, kind: u64, now: u64, what: u64) {
        self.fingerprint.add([kind, now, what]);
    }
}

/// Takes the reads that a thread makes together: the headers of all its files and then their rows,
/// or, without reading ahead, one page.
fn next_reads(left: &mut PagesToRead, is_ahead: bool) -> u64 {
    let stage = if left.header > 0 {
        &mut left.header
    } else {
        &mut left.rows
    };
    let reads = if is_ahead { *stage } else { (*stage).min(1) };
    *stage -= reads;
    reads
}

fn jitter(draws: &mut Draws, bound_ns: u64, costs: &DrainCosts) -> u64 {
    let unit_ns = if costs.is_in_seconds { SECOND_NS } else { 1 };
    match bound_ns / unit_ns {
        0 => 0,
        units => draws.below(units) * unit_ns,
    }
}

#[cfg(test)]
mod tests;
