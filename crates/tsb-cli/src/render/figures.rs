//! The figures of a report: their place in the JSON, their format and their meaning. The page
//! and the comparison share them, so that they agree.

use serde_json::Value;

pub use tsb_run::units::Unit;

/// One figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name shown.
    pub name: &'static str,
    /// JSON pointer into the run.
    pub at: &'static str,
    /// The format.
    pub unit: Unit,
    /// The meaning as a sentence; may be empty.
    pub meaning: &'static str,
}

impl Figure {
    /// The value in a run's JSON, if present.
    pub fn of(&self, run: &Value) -> Option<f64> {
        run.pointer(self.at)?.as_f64()
    }
}

/// Makes a figure.
pub const fn figure(name: &'static str, at: &'static str, unit: Unit, meaning: &'static str) -> Figure {
    Figure {
        name,
        at,
        unit,
        meaning,
    }
}

/// Rates.
pub const RATE: &[Figure] = &[
    figure(
        "asked",
        "/rate/asked_per_second",
        Unit::Rate,
        "What the schedule asked on average: the samples that were due, over the time in which they were. It does not wait for the store, so it is asked whether the store keeps up or not.",
    ),
    figure(
        "held",
        "/rate/held_per_second",
        Unit::Rate,
        "Samples accepted, from the first due time to the last acceptance. It says nothing about how late they were.",
    ),
    figure(
        "held until durable",
        "/rate/durable_per_second",
        Unit::Rate,
        "The same samples, from the first due time until all of them had the durability of the report, where the store reaches it after it has acknowledged. It includes the flush at the end, which a longer run spreads over more samples.",
    ),
    figure(
        "highest rate asked",
        "/rate/peak/asked_per_second",
        Unit::Rate,
        "The samples that fell due in the interval in which the most did, where a schedule asks different rates.",
    ),
    figure(
        "accepted at the highest rate",
        "/rate/peak/accepted_per_second",
        Unit::Rate,
        "The samples accepted in that interval. What is missing there was worked off later, or never.",
    ),
    figure(
        "ceiling",
        "/rate/ceiling_per_second",
        Unit::Rate,
        "What this generator reached over the same path into a store that forgets. Near it, the generator is measured and not the store.",
    ),
    figure(
        "speed of the fleet",
        "/rate/speed",
        Unit::Times,
        "Seconds of fleet time that pass in one second. At 1 the fleet reports as it would in life.",
    ),
];

/// Staleness over all series and polls.
pub const STALENESS: &[Figure] = &[
    figure(
        "p50",
        "/staleness/p50_ms",
        Unit::Millis,
        "Half of all looks at any series found its newest sample no older; of a series of which nothing had arrived, its first sample no longer overdue. Half the interval between two samples of a series is the least that is possible.",
    ),
    figure(
        "p99",
        "/staleness/p99_ms",
        Unit::Millis,
        "99 of 100 looks found the newest sample no older. With seeded phases it stays near one interval while the store keeps up.",
    ),
    figure(
        "max",
        "/staleness/max_ms",
        Unit::Millis,
        "The stalest series at the stalest moment looked at. What lay between two looks, a tenth of a second apart or more, was not seen.",
    ),
    figure(
        "never visible",
        "/staleness/never_visible",
        Unit::Count,
        "Series of which a sample was due and none ever became visible. They are as stale as their first sample is overdue, and count in the quantiles.",
    ),
];

/// Cost per sample.
pub const COST: &[Figure] = &[
    figure(
        "CPU, generator",
        "/cost/generator_cpu_ns_per_sample",
        Unit::NanosEach,
        "Making a sample, keeping the schedule, recording times. It is our own cost, not the store's.",
    ),
    figure(
        "CPU, wire",
        "/cost/wire_cpu_ns_per_sample",
        Unit::NanosEach,
        "Encoding, sending, receiving and decoding a sample, where there is a wire.",
    ),
    figure(
        "CPU, store",
        "/cost/store_cpu_ns_per_sample",
        Unit::NanosEach,
        "Inside the store's write call, in the threads that make it.",
    ),
    figure(
        "CPU, threads of the store",
        "/cost/store_threads_cpu_ns_per_sample",
        Unit::NanosEach,
        "Threads that the store has for itself, as it states them. Servers in other processes are not in it.",
    ),
    figure(
        "CPU, flush",
        "/cost/store_flush_cpu_ns_per_sample",
        Unit::NanosEach,
        "Flushing the store behind the last sample.",
    ),
    figure(
        "CPU, staleness queries",
        "/cost/store_newest_cpu_ns_per_sample",
        Unit::NanosEach,
        "The store's answers to how new its newest samples are, up to ten times per second.",
    ),
    figure(
        "CPU, queries",
        "/cost/queries_cpu_ns_per_sample",
        Unit::NanosEach,
        "Threads that ask queries beside the writes: the store's part in them, choosing, waiting, and checking the answers.",
    ),
    figure(
        "CPU, waiting",
        "/cost/pacing_cpu_ns_per_sample",
        Unit::NanosEach,
        "Waiting until samples are due and for sockets: falling asleep, waking up, spinning. It grows when there is less to do.",
    ),
    figure(
        "CPU, watching",
        "/cost/watching_cpu_ns_per_sample",
        Unit::NanosEach,
        "Looking at staleness and resources, reading clocks, starting and ending threads.",
    ),
    figure(
        "CPU, all parts",
        "/cost/parts_cpu_ns_per_sample",
        Unit::NanosEach,
        "The sum of the parts above. It should be what the process used.",
    ),
    figure(
        "CPU, process",
        "/cost/process_cpu_ns_per_sample",
        Unit::NanosEach,
        "The whole process over the same time, by its own clock. What goes beyond the parts was used by threads that are not the run's.",
    ),
    figure(
        "CPU, reading back",
        "/cost/audit_cpu_ns_per_sample",
        Unit::NanosEach,
        "Reading every sample back and comparing it, after the run. It is in none of the parts.",
    ),
    figure(
        "bytes on the wire",
        "/cost/wire_bytes_per_sample",
        Unit::BytesEach,
        "Bytes that the kernel took for a sample, protocol included, TCP and IP headers not.",
    ),
    figure(
        "bytes stored",
        "/cost/bytes_per_sample",
        Unit::BytesEach,
        "Everything the store occupied at the end over the samples verified. In a short run that is mostly open heads and journal, which do not grow with time.",
    ),
    figure(
        "bytes sealed",
        "/cost/sealed_bytes_per_sample",
        Unit::BytesEach,
        "Sealed data over the samples in it: what a long run approaches, if enough has been sealed.",
    ),
    figure(
        "bytes on disk",
        "/cost/disk_bytes_per_sample",
        Unit::BytesEach,
        "Blocks of the file system over the samples verified, where the store has files on this machine.",
    ),
];

/// Projected sizes of longer runs.
pub const PROJECTION: &[Figure] = &[
    figure(
        "a day",
        "/cost/projection/day_bytes",
        Unit::Bytes,
        "86,400 seconds at the held rate, scaled from what was measured on a part of the fleet. It is a projection and not a measurement.",
    ),
    figure("a week", "/cost/projection/week_bytes", Unit::Bytes, "Seven such days."),
];

/// The workload that was offered.
pub const OFFERED: &[Figure] = &[
    figure(
        "series",
        "/offered/series",
        Unit::Count,
        "Series in the catalog, over the whole run.",
    ),
    figure(
        "information in a value",
        "/offered/entropy_bits",
        Unit::Bits,
        "Estimated from the differences of neighbours; where the report has a bounded share, an upper bound. A store that sees longer patterns can use less. Timestamps are not in it.",
    ),
    figure(
        "calculated",
        "/offered/calculated_bits",
        Unit::Bits,
        "The same from the models that made the values, where they allow it.",
    ),
    figure(
        "values that repeat",
        "/offered/repeat_rate",
        Unit::Share,
        "Share of values equal to the one before in their series. Such values cost a good store almost nothing.",
    ),
];

/// Disturbances of the machine.
pub const NOISE: &[Figure] = &[
    figure(
        "CPU stolen",
        "/noise/stolen_share",
        Unit::Share,
        "CPU time that the hypervisor gave to other machines, of all CPU time.",
    ),
    figure(
        "CPU used by others",
        "/noise/foreign_share",
        Unit::Share,
        "CPU time of processes that are neither ours nor the target's, used while ours waited for a CPU.",
    ),
    figure(
        "waited for each other",
        "/noise/own_wait_share",
        Unit::Share,
        "Time in which our own threads and the target's waited for each other, of the time in which they wanted a CPU. It is no disturbance, and says that they have too few CPUs.",
    ),
    figure(
        "stood still",
        "/noise/late_share",
        Unit::Share,
        "Time in which the whole process stood still: stopped, paused, or swapped out.",
    ),
    figure(
        "stood still, longest",
        "/noise/late_max_ms",
        Unit::Millis,
        "The longest such time, by a thread that does nothing but wake up on time.",
    ),
];

/// Size of the store by kind.
pub const SIZE: &[Figure] = &[
    figure(
        "sealed",
        "/size/sealed_bytes",
        Unit::Bytes,
        "Compressed blocks with their index. This is what stays.",
    ),
    figure(
        "open heads",
        "/size/head_bytes",
        Unit::Bytes,
        "Samples that are not sealed yet. Their size does not grow with the length of a run.",
    ),
    figure(
        "journal",
        "/size/journal_bytes",
        Unit::Bytes,
        "Written ahead for recovery, and removed later.",
    ),
    figure(
        "per series",
        "/size/series_bytes",
        Unit::Bytes,
        "Keys and state of each series. It grows with cardinality and not with time.",
    ),
    figure(
        "free",
        "/size/free_bytes",
        Unit::Bytes,
        "Occupied and empty, to be used again.",
    ),
];

/// Samples that the sizes refer to.
pub const SIZE_SAMPLES: &[Figure] = &[
    figure(
        "samples held",
        "/size/samples",
        Unit::Count,
        "Samples that a query could return at the end.",
    ),
    figure(
        "of them sealed",
        "/size/sealed_samples",
        Unit::Count,
        "The share that the sealed size rests on.",
    ),
];

/// Figures of a comparison, by heading.
pub const COMPARED: &[(&str, &[Figure])] = &[
    (
        "Rate",
        &[
            figure("asked", "/rate/asked_per_second", Unit::Rate, ""),
            figure("held", "/rate/held_per_second", Unit::Rate, ""),
            figure("ceiling", "/rate/ceiling_per_second", Unit::Rate, ""),
        ],
    ),
    (
        "Response time",
        &[
            figure("p50", "/latency/response/p50_ns", Unit::Nanos, ""),
            figure("p90", "/latency/response/p90_ns", Unit::Nanos, ""),
            figure("p99", "/latency/response/p99_ns", Unit::Nanos, ""),
            figure("p99.9", "/latency/response/p999_ns", Unit::Nanos, ""),
            figure("max", "/latency/response/max_ns", Unit::Nanos, ""),
        ],
    ),
    (
        "Delivery",
        &[
            figure("p50", "/latency/delivery/p50_ns", Unit::Nanos, ""),
            figure("p99", "/latency/delivery/p99_ns", Unit::Nanos, ""),
        ],
    ),
    (
        "Service time",
        &[
            figure("p50", "/latency/service/p50_ns", Unit::Nanos, ""),
            figure("p99", "/latency/service/p99_ns", Unit::Nanos, ""),
        ],
    ),
    (
        "Lag",
        &[
            figure("p50", "/latency/lag/p50_ns", Unit::Nanos, ""),
            figure("p99", "/latency/lag/p99_ns", Unit::Nanos, ""),
        ],
    ),
    (
        "Staleness",
        &[
            figure("p50", "/staleness/p50_ms", Unit::Millis, ""),
            figure("p99", "/staleness/p99_ms", Unit::Millis, ""),
            figure("max", "/staleness/max_ms", Unit::Millis, ""),
        ],
    ),
    (
        "Cost of a sample",
        &[
            figure(
                "CPU, generator",
                "/cost/generator_cpu_ns_per_sample",
                Unit::NanosEach,
                "",
            ),
            figure("CPU, wire", "/cost/wire_cpu_ns_per_sample", Unit::NanosEach, ""),
            figure("CPU, store", "/cost/store_cpu_ns_per_sample", Unit::NanosEach, ""),
            figure(
                "CPU, threads of the store",
                "/cost/store_threads_cpu_ns_per_sample",
                Unit::NanosEach,
                "",
            ),
            figure("CPU, process", "/cost/process_cpu_ns_per_sample", Unit::NanosEach, ""),
            figure("bytes on the wire", "/cost/wire_bytes_per_sample", Unit::BytesEach, ""),
            figure("bytes stored", "/cost/bytes_per_sample", Unit::BytesEach, ""),
            figure("bytes sealed", "/cost/sealed_bytes_per_sample", Unit::BytesEach, ""),
            figure("bytes on disk", "/cost/disk_bytes_per_sample", Unit::BytesEach, ""),
        ],
    ),
    (
        "Process",
        &[
            figure("CPU, user", "/resources/0/user_cpu_ns", Unit::Nanos, ""),
            figure("CPU, kernel", "/resources/0/system_cpu_ns", Unit::Nanos, ""),
            figure("memory at most", "/resources/0/rss_bytes_max", Unit::Bytes, ""),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_that_is_explained_has_a_sentence() {
        for group in [RATE, STALENESS, COST, PROJECTION, OFFERED, NOISE, SIZE, SIZE_SAMPLES] {
            for figure in group {
                assert!(figure.meaning.ends_with('.'), "{}", figure.name);
                assert!(figure.at.starts_with('/'), "{}", figure.name);
            }
        }
    }

    #[test]
    fn numbers_are_written_with_their_unit() {
        assert_eq!(Unit::Rate.show(54_000.0), "54.0 k/s");
        assert_eq!(Unit::Millis.show(990.5), "990 ms");
        assert_eq!(Unit::BytesEach.show(0.405), "0.405 B");
        assert_eq!(Unit::NanosEach.show(7.04), "7.04 ns");
        assert_eq!(Unit::NanosEach.show(104_125.8), "104 us");
        assert_eq!(Unit::Share.show(0.59), "59.0 %");
        assert_eq!(Unit::Count.show(540_000.0), "540,000");
    }
}
