//! Tables of what a model predicts.

use std::fmt::Write;

use tsb_core::report::experiment::rrdcached::Simulated;

/// All tables.
pub(super) fn table(out: &mut String, simulated: &Simulated) {
    let Simulated { device, cores, .. } = simulated;
    let us = |nanos: u64| nanos as f64 / 1e3;
    let _ = writeln!(
        out,
        "\nThe disk: read {:.0} us, sync {:.0} us at the median; {} reads per second with {} in flight, {} scattered \
         pages per second of writeback; {cores} cores",
        us(device.read.p50_ns),
        us(device.sync.p50_ns),
        device.reads_per_second,
        device.depth,
        device.writeback_pages_per_second,
    );
    for engine in &simulated.costs {
        let costs = &engine.costs;
        let _ = writeln!(
            out,
            "Costs of {} on {} files: {:.2} us for a write, {:.2} us for each value, {:.2} us for each page read, \
             {:.2} us to accept an update",
            engine.way,
            simulated.cost_files,
            us(costs.write_ns),
            us(costs.value_ns),
            us(costs.read_ns),
            us(costs.accept_ns),
        );
    }
    points(out, simulated);
    hours(out, simulated);
}

fn points(out: &mut String, simulated: &Simulated) {
    let _ = writeln!(
        out,
        "\n{:15}  {:66}  {:>9}  {:>9}  {:21}  {:>8}",
        "way", "predicted", "predicted", "measured", "its 95 % interval", "error"
    );
    for point in &simulated.points {
        let shown = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.3}"));
        let interval = point
            .low
            .zip(point.high)
            .map(|(low, high)| format!("{low:.3} to {high:.3}"));
        let error = point.error.map(|error| format!("{:+.1} %", error * 100.0));
        let _ = writeln!(
            out,
            "{:15}  {:66}  {:>9.3}  {:>9}  {:21}  {:>8}  {}",
            point.way,
            point.what,
            point.predicted,
            shown(point.measured),
            interval.unwrap_or_else(|| "-".to_owned()),
            error.unwrap_or_else(|| "-".to_owned()),
            point.unit,
        );
    }
}

fn hours(out: &mut String, simulated: &Simulated) {
    let _ = writeln!(
        out,
        "\nEvery file updated once per minute, simulated in {:.1} s of CPU\n{:15}  {:>6}  {:>5}  {:>4}  {:>4}  {:>7}  \
         {:>8}  {:>7}  {:>6}  {:>6}  {:>7}  {:>7}  fingerprint",
        simulated.cpu_seconds,
        "way",
        "files",
        "hours",
        "-w",
        "-z",
        "values",
        "wait s",
        "queued",
        "core %",
        "disk %",
        "drain s",
        "sync s",
    );
    for hour in &simulated.hours {
        let _ = writeln!(
            out,
            "{:15}  {:>6}  {:>5}  {:>4}  {:>4}  {:>7.2}  {:>8.1}  {:>7}  {:>6.2}  {:>6.2}  {:>7.2}  {:>7.2}  {}",
            hour.way,
            hour.files,
            hour.hours,
            hour.timeout_seconds,
            hour.jitter_seconds,
            hour.coalescing,
            hour.wait_max_seconds,
            hour.queued_most,
            hour.core_share * 100.0,
            hour.device_share * 100.0,
            hour.drain_seconds,
            hour.sync_seconds,
            hour.fingerprint,
        );
    }
    let _ = writeln!(
        out,
        "values: of one write; wait: the longest until a write began; drain and sync: after the last update."
    );
}
