//! The cost of a sample: CPU time by part, next to the CPU time of the whole process, and bytes.
//!
//! Each part is CPU time of threads that belong to the run: the threads of the emitter and the
//! listener report theirs by activity, the store reports its own threads, and the rest are
//! clocks of single threads. Threads are never looked up by name, so two runs in one process do
//! not count each other's threads, although the process total of each includes both.

use tsb_core::net::IngestCpu;
use tsb_core::report::{Cost, CpuBelow};
use tsb_core::time::{process_cpu_ns, thread_cpu_ns};
use tsb_stores::{Stats, Store};

use super::loss_window::LossWindow;
use super::monitor::Observed;
use super::path::PassResult;
use crate::units;

/// The method, as text for the report.
const METHOD: &str = "each thread's own CPU clock, read about 500 times per second and behind every long piece of work; \
in between the parts of a thread are told apart by the run's clock, whose reading is taken off; on a listener's thread \
without time to spare one turn in eight is measured, at random; store's own threads as the store states them";

/// CPU time by part, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the unit is the last word of a name")]
pub(super) struct CpuByPart {
    /// Generating, keeping the schedule, timing.
    pub generator_ns: u64,
    /// Waiting for due times and for sockets.
    pub pacing_ns: u64,
    /// Encoding, sending, receiving, decoding; absent without a wire.
    pub wire_ns: Option<u64>,
    /// Inside the store's `write`.
    pub store_ns: u64,
    /// Uncertainty of `store_ns`.
    pub uncertain_ns: u64,
    /// The store's own threads; absent if it states none.
    pub threads_ns: Option<u64>,
    /// The flush after the last sample.
    pub flush_ns: u64,
    /// Inside the store's `newest`, which staleness is computed from.
    pub newest_ns: u64,
    /// Threads that ask queries; absent without queries.
    pub queries_ns: Option<u64>,
    /// Measuring staleness and resources, reading clocks.
    pub watching_ns: u64,
    /// CPU time of the whole process in the same span.
    pub process_ns: u64,
}

impl CpuByPart {
    /// Sum of all parts except the audit, which comes later.
    pub(super) fn parts_ns(&self) -> u64 {
        self.generator_ns
            + self.pacing_ns
            + self.wire_ns.unwrap_or(0)
            + self.store_ns
            + self.threads_ns.unwrap_or(0)
            + self.flush_ns
            + self.newest_ns
            + self.queries_ns.unwrap_or(0)
            + self.watching_ns
    }

    /// The parts divided by `samples`, the accepted samples; empty if there are none.
    pub(super) fn of_each(&self, samples: u64) -> Cost {
        if samples == 0 {
            return Cost::default();
        }
        let each = |ns: u64| ns as f64 / samples as f64;
        let is_seen = self.store_ns > self.uncertain_ns;
        let mut cost = Cost::default();
        cost.generator_cpu_ns_per_sample = Some(each(self.generator_ns));
        cost.pacing_cpu_ns_per_sample = Some(each(self.pacing_ns));
        cost.wire_cpu_ns_per_sample = self.wire_ns.map(each);
        cost.store_cpu_ns_per_sample = is_seen.then(|| each(self.store_ns));
        cost.store_cpu_below = (!is_seen).then(|| CpuBelow::new(each(self.uncertain_ns.max(1))));
        cost.store_threads_cpu_ns_per_sample = self.threads_ns.map(each);
        cost.store_flush_cpu_ns_per_sample = Some(each(self.flush_ns));
        cost.store_newest_cpu_ns_per_sample = Some(each(self.newest_ns));
        cost.queries_cpu_ns_per_sample = self.queries_ns.map(each);
        cost.watching_cpu_ns_per_sample = Some(each(self.watching_ns));
        cost.parts_cpu_ns_per_sample = Some(each(self.parts_ns()));
        cost.process_cpu_ns_per_sample = Some(each(self.process_ns));
        METHOD.clone_into(&mut cost.method);
        cost
    }
}

/// Measures CPU time from before the first sample until all samples are flushed.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "the unit is the last word of a name")]
pub(super) struct Span {
    process_ns: u64,
    thread_ns: u64,
    own_ns: Option<u64>,
    flush_ns: u64,
}

/// CPU times that the threads of a run reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedCpu<'a> {
    /// The emitter's and the listener's threads.
    pub driven: &'a PassResult,
    /// The monitor thread, in nanoseconds.
    pub monitor_ns: u64,
    /// The part of it inside the store.
    pub newest_ns: u64,
    /// The threads that asked queries, if there were some.
    pub queries_ns: Option<u64>,
    /// The part of the store's time that measuring waits for durability took.
    pub waits_ns: u64,
}

impl<'a> ReportedCpu<'a> {
    /// Collects what the threads reported.
    pub(super) fn of(
        driven: &'a PassResult,
        observed: &Observed,
        window: Option<&LossWindow>,
        queries_ns: Option<u64>,
    ) -> Self {
        Self {
            driven,
            monitor_ns: observed.cpu_ns,
            newest_ns: observed.newest_ns.min(observed.cpu_ns),
            queries_ns,
            waits_ns: window.map_or(0, LossWindow::spent_ns),
        }
    }
}

impl Span {
    /// Begins; `own_ns` is the CPU time of the store's own threads at about this moment, in nanoseconds.
    /// Call it, and [`Self::end`], in the thread that drives the run.
    pub(super) fn begin(own_ns: Option<u64>) -> Self {
        Self {
            process_ns: process_cpu_ns(),
            thread_ns: thread_cpu_ns(),
            own_ns,
            flush_ns: 0,
        }
    }

    /// Calls `flush` and counts its CPU time as the store's.
    pub(super) fn flushing<T>(&mut self, flush: impl FnOnce() -> T) -> T {
        let before = thread_cpu_ns();
        let flushed = flush();
        self.flush_ns += thread_cpu_ns() - before;
        flushed
    }

    /// Ends. Also returns the store's statistics at this moment.
    pub(super) fn end(self, store: &dyn Store, known: ReportedCpu<'_>) -> (CpuByPart, Stats) {
        let stats = store.stats();
        let process_ns = process_cpu_ns() - self.process_ns;
        let thread_ns = thread_cpu_ns() - self.thread_ns;
        let threads_ns = stats.own_cpu_ns.map(|own| own - self.own_ns.unwrap_or(0).min(own));
        let here_ns = thread_ns - self.flush_ns.min(thread_ns);
        let spent = CpuByPart {
            threads_ns,
            flush_ns: self.flush_ns,
            process_ns,
            ..told_apart(known, here_ns)
        };
        (spent, stats)
    }
}

/// Divides the time of the emitter, the listener, the monitor and the driving thread (`here_ns`)
/// into parts.
fn told_apart(known: ReportedCpu<'_>, here_ns: u64) -> CpuByPart {
    let emit = &known.driven.cpu;
    let wire = known.driven.wire.as_ref();
    let none = IngestCpu::default();
    let ingest = wire.map_or(&none, |wire| &wire.ingest_cpu);
    // With a wire, the emitter's target is the socket, and the listener's sink calls the store.
    let (inside_ns, uncertain_ns) = match wire {
        Some(_) => (ingest.apply_ns, ingest.uncertain_ns),
        None => (emit.send_ns, emit.uncertain_ns),
    };
    let waits_ns = known.waits_ns.min(inside_ns);
    CpuByPart {
        generator_ns: emit.generate_ns,
        pacing_ns: emit.pace_ns + ingest.wait_ns,
        wire_ns: wire.map(|wire| emit.send_ns + ingest.wire_ns + wire.net_cpu_ns),
        store_ns: inside_ns - waits_ns,
        uncertain_ns,
        newest_ns: known.newest_ns,
        queries_ns: known.queries_ns,
        watching_ns: emit.measure_ns + ingest.measure_ns + known.monitor_ns - known.newest_ns + here_ns + waits_ns,
        ..CpuByPart::default()
    }
}

/// If less than this share of the samples is sealed, sealed bytes are not reported.
const SEALED_SHARE_MIN: f64 = 0.01;

/// If more than this share of the process's CPU time is in no part, a note says so.
const UNEXPLAINED_MAX: f64 = 0.03;

/// A note on CPU time of the process that is in no part, if it is more than 3 %.
pub(super) fn unexplained(cost: &Cost) -> Option<String> {
    let (sum, process) = (cost.parts_cpu_ns_per_sample?, cost.process_cpu_ns_per_sample?);
    let rest = process - sum;
    let threads = if cost.store_threads_cpu_ns_per_sample.is_some() {
        "other work in this process"
    } else {
        "threads of a store that does not say what they used (Stats::own_cpu_ns), or other work in this process"
    };
    (rest > process * UNEXPLAINED_MAX).then(|| {
        format!(
            "{} of the process's CPU time per sample ({:.0} %) are in none of the parts: {threads}",
            units::nanos_each(rest),
            rest * 100.0 / process
        )
    })
}

/// The CPU time of reading back, `cpu_ns`, per sample: history is read back as well as the samples
/// of the run.
pub(super) fn audit_of_each(cpu_ns: u64, accepted: u64, history: u64) -> Option<f64> {
    let samples = accepted + history;
    (samples > 0).then(|| cpu_ns as f64 / samples as f64)
}

/// Fills in bytes per stored sample: `stored` is the number verified if the store was read back,
/// else the number accepted.
pub(crate) fn bytes_of_each(cost: &mut Cost, stats: &Stats, stored: u64) {
    let footprint = &stats.footprint;
    let of_each = |bytes: Option<u64>| Some(bytes.filter(|bytes| *bytes > 0 && stored > 0)? as f64 / stored as f64);
    cost.bytes_per_sample = of_each(Some(footprint.total_bytes()));
    cost.disk_bytes_per_sample = of_each(stats.disk_bytes);
    let enough = (stats.samples as f64 * SEALED_SHARE_MIN).max(1.0);
    let is_sealed = footprint.sealed_samples as f64 >= enough && footprint.sealed_bytes > 0;
    cost.sealed_bytes_per_sample = is_sealed.then(|| footprint.sealed_bytes as f64 / footprint.sealed_samples as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent() -> CpuByPart {
        CpuByPart {
            generator_ns: 2_000,
            pacing_ns: 500,
            wire_ns: Some(7_000),
            store_ns: 6_000,
            uncertain_ns: 100,
            threads_ns: Some(3_000),
            flush_ns: 40,
            newest_ns: 20,
            queries_ns: Some(30),
            watching_ns: 40,
            process_ns: 18_930,
        }
    }

    #[test]
    fn parts_add_up_and_reading_back_is_divided_by_all_that_is_read() {
        let spent = spent();
        assert_eq!(
            spent.parts_ns(),
            2_000 + 500 + 7_000 + 6_000 + 3_000 + 40 + 20 + 30 + 40
        );
        let cost = spent.of_each(1_000);
        let parts = [
            cost.generator_cpu_ns_per_sample,
            cost.pacing_cpu_ns_per_sample,
            cost.wire_cpu_ns_per_sample,
            cost.store_cpu_ns_per_sample,
            cost.store_threads_cpu_ns_per_sample,
            cost.store_flush_cpu_ns_per_sample,
            cost.store_newest_cpu_ns_per_sample,
            cost.queries_cpu_ns_per_sample,
            cost.watching_cpu_ns_per_sample,
        ];
        let sum: f64 = parts.iter().flatten().sum();
        assert!((sum - cost.parts_cpu_ns_per_sample.unwrap()).abs() < 1e-9);
        assert_eq!(cost.process_cpu_ns_per_sample, Some(18.93));
        assert_eq!(audit_of_each(9_000, 1_000, 8_000), Some(1.0));
        assert_eq!(audit_of_each(9_000, 0, 0), None);
    }

    #[test]
    fn a_store_below_what_can_be_measured_is_said_to_be_and_is_not_0() {
        let cost = CpuByPart {
            store_ns: 80,
            ..spent()
        }
        .of_each(1_000);
        assert_eq!(cost.store_cpu_ns_per_sample, None);
        assert_eq!(cost.store_cpu_below.unwrap().ns_per_sample, 0.1);
        assert!(spent().of_each(1_000).store_cpu_below.is_none());
    }

    #[test]
    fn cpu_time_in_no_part_is_reported_if_it_is_large() {
        // 18,930 of which 18,630 are in parts.
        assert_eq!(unexplained(&spent().of_each(1_000)), None);
        let without = |threads_ns| CpuByPart { threads_ns, ..spent() }.of_each(1_000);
        let said = unexplained(&without(None)).unwrap();
        assert!(said.contains("(17 %)") && said.contains("own_cpu_ns"), "{said}");
        let said = unexplained(&without(Some(1_000))).unwrap();
        assert!(said.contains("other work") && !said.contains("own_cpu_ns"), "{said}");
    }

    #[test]
    fn nothing_accepted_has_no_cost_of_a_sample() {
        assert_eq!(spent().of_each(0).process_cpu_ns_per_sample, None);
    }

    #[test]
    fn bytes_are_of_what_was_stored_and_disk_is_blocks() {
        let mut stats = Stats::new(1, 4_000, 4_000);
        stats.footprint.sealed_bytes = 1_000;
        stats.footprint.sealed_samples = 2_000;
        stats.footprint.head_bytes = 3_000;
        stats.disk_bytes = Some(8_192);
        let mut cost = Cost::default();
        bytes_of_each(&mut cost, &stats, 1_000);
        assert_eq!(cost.bytes_per_sample, Some(4.0));
        assert_eq!(cost.disk_bytes_per_sample, Some(8.192));
        assert_eq!(cost.sealed_bytes_per_sample, Some(0.5));
        // Less than a hundredth of four thousand says nothing about the rest.
        stats.footprint.sealed_samples = 39;
        bytes_of_each(&mut cost, &stats, 1_000);
        assert_eq!(cost.sealed_bytes_per_sample, None);
        bytes_of_each(&mut cost, &stats, 0);
        assert_eq!((cost.bytes_per_sample, cost.disk_bytes_per_sample), (None, None));
    }
}
