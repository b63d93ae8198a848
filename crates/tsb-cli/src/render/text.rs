//! Formats a report as text: the comparison if there are several runs, then each run's figures
//! with their meanings, its notes, and its verdict last.

use tsb_core::latency::Summary;
use tsb_core::ledger::Counter;
use tsb_core::report::{Report, Run};

use super::lines::Lines;
use super::names::{letter, path};
use super::queries;
use super::times;
use super::verdict_basis;
use tsb_run::foreign;
use tsb_run::units::{bytes, bytes_each, count, nanos, nanos_each, scaled};

/// The whole report, wrapped at `width` if given.
pub fn report(report: &Report, width: Option<usize>) -> String {
    let mut lines = Lines::new(width);
    super::side_by_side::text(&report.runs, &mut lines);
    let is_one_of_several = report.runs.len() > 1;
    for (index, run) in report.runs.iter().enumerate() {
        let name = is_one_of_several.then(|| letter(index));
        one(run, name.as_deref(), &mut lines);
    }
    lines.finish()
}

fn one(run: &Run, letter: Option<&str>, lines: &mut Lines) {
    head(run, letter, lines);
    rates(run, lines);
    super::phases::text(run, lines);
    latencies(run, lines);
    super::breakdown::text(run, lines);
    queries::table(run, lines);
    costs(run, lines);
    ledger(run, lines);
    place(run, lines);
    super::hosts::text(run, lines);
    notes(run, lines);
    super::thresholds::text(run, lines);
    verdict_basis::figures(run, lines);
    verdict(run, lines);
}

fn head(run: &Run, letter: Option<&str>, lines: &mut Lines) {
    let letter = letter.map_or(String::new(), |letter| format!("{letter}  "));
    let label = run.label.as_ref().map_or(String::new(), |label| format!("{label}: "));
    let label = foreign::line(&label);
    let work = if run.fingerprint.is_empty() {
        String::new()
    } else {
        format!(", seed {}, fingerprint {}", run.seed, run.fingerprint)
    };
    lines.raw(format!(
        "\n{letter}{label}{} {}: {} series{work}",
        foreign::line(&run.target.store),
        foreign::line(&path(run)),
        count(run.offered.series),
    ));
    if run.interrupted {
        lines.raw("INTERRUPTED: all figures are about the part that was done.");
    }
}

fn rates(run: &Run, lines: &mut Lines) {
    lines.heading("Rate, samples per second");
    let rate = &run.rate;
    match rate.asked_per_second {
        Some(asked) => lines.line("asked", format!("{}{}", scaled(asked), asked_range(run))),
        None if !rate.closed_loop => lines.line("asked", "not known: others sent the samples"),
        None => lines.line(
            "asked",
            "nothing: a closed loop waits for the store, and hides how long others would wait",
        ),
    }
    let level = run.durability.level;
    lines.line(
        "held",
        format!(
            "{} at durability {level} (accepted, first due to last acceptance{})",
            scaled(rate.held_per_second),
            until_durable(run)
        ),
    );
    if let Some(peak) = &rate.peak {
        lines.line(
            "at the peak",
            format!(
                "asked {}, accepted {} in the interval of the highest rate; {:.1} % of what was due by its end was \
                 accepted by the end of the next",
                scaled(peak.asked_per_second),
                scaled(peak.accepted_per_second),
                // Less than all is never printed as all.
                (peak.kept_share * 1_000.0).floor() / 10.0,
            ),
        );
    }
    if let Some(wait) = run
        .durability
        .wait
        .as_ref()
        .filter(|_| run.durability.acknowledged < level)
    {
        let show = |value: Option<u64>| value.map_or("-".to_owned(), nanos);
        lines.line(
            "loss window",
            format!(
                "acknowledged as {}, {level} after p50 {}, p99 {}, max {}",
                run.durability.acknowledged,
                show(wait.p50_ns),
                show(wait.p99_ns),
                show(wait.max_ns)
            ),
        );
    }
    verdict_basis::ceiling(run, lines);
    if rate.speed != 1.0 {
        lines.line(
            "fleet time",
            format!("runs {:.3} times as fast as real time", rate.speed),
        );
    }
}

/// The rate until all samples were durable, if it differs from the held rate by 1 % or more.
fn until_durable(run: &Run) -> String {
    const SAME: f64 = 0.99;
    let durable = run.rate.durable_per_second;
    let durable = durable.filter(|durable| *durable < SAME * run.rate.held_per_second);
    durable.map_or(String::new(), |durable| {
        format!("; {} until all of it was {}", scaled(durable), run.durability.level)
    })
}

/// The range of the asked rate over the intervals, if it varies by more than 10 %.
fn asked_range(run: &Run) -> String {
    const SAME: f64 = 1.1;
    let mut from_ns = 0;
    let slices = run.intervals.iter().filter_map(|slice| {
        let length_ns = slice
            .end_ns
            .saturating_sub(std::mem::replace(&mut from_ns, slice.end_ns));
        Some((length_ns.max(1), slice.asked?))
    });
    let slices: Vec<(u64, u64)> = slices.collect();
    // A rest behind the last whole one may hold little more than the end. Whole ones have two
    // lengths in a long run, one twice the other.
    let longest_ns = slices.iter().map(|(length_ns, _)| *length_ns).max().unwrap_or(0);
    let whole = slices.iter().filter(|(length_ns, _)| *length_ns > longest_ns * 2 / 5);
    let rates = whole.map(|&(length_ns, asked)| asked as f64 * 1e9 / length_ns as f64);
    let (least, most) = rates.fold((f64::INFINITY, 0.0_f64), |(least, most), rate| {
        (least.min(rate), most.max(rate))
    });
    if most > least * SAME {
        format!(" on average, from {} to {} in an interval", scaled(least), scaled(most))
    } else {
        String::new()
    }
}

fn quantiles(summary: &Summary) -> String {
    let show = |value: Option<u64>| value.map_or("-".to_owned(), nanos);
    format!(
        "{:>8} {:>8} {:>8} {:>8} {:>8}",
        show(summary.p50_ns),
        show(summary.p90_ns),
        show(summary.p99_ns),
        show(summary.p999_ns),
        show(summary.max_ns)
    )
}

/// Samples per operation, which decides losses, commits and latency.
fn size(summary: &Summary) -> String {
    if summary.count == 0 {
        return String::new();
    }
    let mean = summary.samples as f64 / summary.count as f64;
    if mean < 1_000.0 && mean.fract() != 0.0 {
        format!(" of {mean:.1} samples on average")
    } else {
        format!(" of {} samples", count(mean.round() as u64))
    }
}

fn latencies(run: &Run, lines: &mut Lines) {
    let latency = &run.latency;
    if latency.response.count == 0 && latency.lag.count == 0 {
        lines.heading("Latency");
        lines.sentence(&latency.done);
        return;
    }
    lines.heading(&format!(
        "Times of {} operations{}, until {}",
        count(latency.response.count),
        size(&latency.response),
        latency.done
    ));
    let [p50, p90, p99, p999, max] = ["p50", "p90", "p99", "p99.9", "max"];
    lines.row(format!("{:15}{p50:>8} {p90:>8} {p99:>8} {p999:>8} {max:>8}", ""));
    let mut meanings = Vec::new();
    for (time, summary) in times::of(run) {
        let (span, meaning) = time.span.split_once(": ").unwrap_or((time.span, ""));
        lines.row(format!("  {:<12} {}  {span}", time.name, quantiles(&summary)));
        meanings.push(format!("{}: {meaning}", time.name));
    }
    lines.sentence(meanings.join("; "));
    if let Some(why) = times::absent(&latency.response) {
        lines.sentence(why);
    }
    if latency.untimed > 0 {
        lines.sentence(format!(
            "{} operations ended where they could not be timed",
            count(latency.untimed)
        ));
    }
    if let Some(staleness) = &run.staleness {
        lines.line(
            "staleness",
            format!(
                "p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms: age of the newest visible sample, every series",
                staleness.p50_ms, staleness.p99_ms, staleness.max_ms
            ),
        );
        if let Some(delay_ms) = staleness.visibility_delay_ms {
            lines.sentence(format!(
                "it includes up to {delay_ms} ms that the store states until a sample is visible; reading back waited for them"
            ));
        }
        if let Some(never) = staleness.never_visible.filter(|never| *never > 0) {
            lines.sentence(format!(
                "{} of {} series never became visible: they are as stale as their first sample is overdue",
                count(never),
                count(run.offered.series)
            ));
        }
    }
}

fn costs(run: &Run, lines: &mut Lines) {
    lines.heading("Cost of a sample");
    cpu(run, lines);
    if let Some(projection) = &run.cost.projection {
        let (day, week) = (bytes(projection.day_bytes), bytes(projection.week_bytes));
        lines.line("a day", format!("{day}, a week {week} ({})", projection.basis));
    } else if let Some(why) = &run.cost.projection_absent {
        lines.line("a day", format!("not projected: {why}"));
    }
    let cost = &run.cost;
    let size = run.size.unwrap_or_default();
    let share = size.sealed_samples as f64 * 100.0 / size.samples.max(1) as f64;
    let sealed = format!("sealed so far ({share:.0} % of the samples)");
    let sizes: [(&str, Option<f64>); 4] = [
        ("wire", cost.wire_bytes_per_sample),
        ("stored so far, open heads and journal included", cost.bytes_per_sample),
        (&sealed, cost.sealed_bytes_per_sample),
        ("in blocks on disk", cost.disk_bytes_per_sample),
    ];
    let shown = sizes
        .iter()
        .filter_map(|(what, size)| size.map(|size| format!("{what} {}", bytes_each(size))));
    let shown: Vec<String> = shown.collect();
    lines.line(
        "bytes",
        if shown.is_empty() {
            without_bytes(run).to_owned()
        } else {
            shown.join(", ")
        },
    );
    if run.offered.entropy_bits.is_nan() {
        return;
    }
    lines.line(
        "offered",
        format!(
            "{:.2} bits of information per value ({}{}), {:.0} % of values repeat the one before",
            run.offered.entropy_bits,
            run.offered.kind(),
            run.offered
                .calculated_bits
                .map_or(String::new(), |bits| format!("; {bits:.2} calculated")),
            run.offered.repeat_rate * 100.0
        ),
    );
}

/// Why no number of bytes is known.
fn without_bytes(run: &Run) -> &'static str {
    if run.place.as_ref().is_some_and(|place| place.earlier.is_some()) {
        "not known: the store held samples of earlier runs"
    } else if run.size.is_some_and(|size| size.samples > 0) {
        "not known: the store does not say how many it uses, and nothing went over a wire"
    } else {
        "none: the store keeps nothing, and nothing went over a wire"
    }
}

/// CPU time by part, their sum, and the process total.
fn cpu(run: &Run, lines: &mut Lines) {
    let cost = &run.cost;
    let parts = [
        ("generator", cost.generator_cpu_ns_per_sample),
        ("wire", cost.wire_cpu_ns_per_sample),
        ("store", cost.store_cpu_ns_per_sample),
        ("threads of the store", cost.store_threads_cpu_ns_per_sample),
        ("flush", cost.store_flush_cpu_ns_per_sample),
        ("staleness queries", cost.store_newest_cpu_ns_per_sample),
        ("queries", cost.queries_cpu_ns_per_sample),
        ("pacing", cost.pacing_cpu_ns_per_sample),
        ("watching", cost.watching_cpu_ns_per_sample),
    ];
    let mut shown: Vec<String> = Vec::new();
    for (part, ns) in parts {
        match (ns, cost.store_cpu_below.filter(|_| part == "store")) {
            (Some(ns), _) => shown.push(format!("{part} {}", nanos_each(ns))),
            (None, Some(below)) => shown.push(format!(
                "{part} below what can be measured ({})",
                nanos_each(below.ns_per_sample)
            )),
            (None, None) => {}
        }
    }
    lines.line("CPU", shown.join(", "));
    if let (Some(sum), Some(process)) = (cost.parts_cpu_ns_per_sample, cost.process_cpu_ns_per_sample) {
        let audit = cost
            .audit_cpu_ns_per_sample
            .map_or(String::new(), |ns| format!("; reading back {}", nanos_each(ns)));
        lines.line(
            "",
            format!(
                "{} in all; the process used {}{audit}",
                nanos_each(sum),
                nanos_each(process)
            ),
        );
    }
}

/// Number of losses listed; all are in the JSON.
const SHOWN: usize = 10;

fn ledger(run: &Run, lines: &mut Lines) {
    lines.heading("Ledger, samples");
    let cell = |(counter, samples): (Counter, u64)| format!("{} {}", counter.name().replace('_', " "), count(samples));
    let all: Vec<String> = run.ledger.counts.counts().map(cell).collect();
    for row in all.chunks(4) {
        lines.sentence(row.join(", "));
    }
    lines.sentence(if run.ledger.counts.is_balanced() {
        "balanced: every sample is accounted for"
    } else {
        "NOT BALANCED"
    });
    for equation in &run.ledger.violated {
        lines.sentence(format!("violated: {equation}"));
    }
    for (reason, samples) in &run.ledger.rejected_by_reason {
        lines.sentence(format!("rejected as {reason}: {}", count(*samples)));
    }
    if let Some(at_most) = run.ledger.lost_at_most {
        lines.sentence(format!(
            "the store may have lost up to {}: it is not known which samples never reached it",
            count(at_most)
        ));
    }
    datagrams(run, lines);
    for loss in run.ledger.losses.iter().take(SHOWN) {
        lines.sentence(loss.to_string());
    }
    if run.ledger.losses.len() > SHOWN {
        lines.sentence(format!(
            "and {} more, named in --format json",
            count((run.ledger.losses.len() - SHOWN) as u64)
        ));
    }
}

/// Datagram counts of both ends and the kernel.
fn datagrams(run: &Run, lines: &mut Lines) {
    let Some(listener) = &run.listener else { return };
    let Some(datagrams) = &listener.datagrams else { return };
    let dropped = datagrams.kernel_drops.map_or(String::new(), |drops| {
        format!(", dropped by the kernel {}", count(drops))
    });
    lines.sentence(format!(
        "datagrams sent {}, received {}{dropped}",
        count(datagrams.sent),
        count(datagrams.received),
    ));
    lines.sentence(format!(
        "{} sockets, up to {} datagrams per system call, receive buffer granted {}",
        datagrams.sockets,
        datagrams.segments_per_call,
        listener
            .receive_buffer_bytes
            .map_or("-".to_owned(), |size| bytes(size as f64)),
    ));
}

/// Where the samples are, and how to remove them. Not wrapped, so that the command can be copied.
fn place(run: &Run, lines: &mut Lines) {
    let Some(place) = &run.place else { return };
    let size = place
        .bytes
        .map_or(String::new(), |size| format!(", {}", bytes(size as f64)));
    let earlier = if place.earlier.is_some() {
        " with what was there before"
    } else {
        ""
    };
    let remove = place
        .remove
        .as_ref()
        .map_or(String::new(), |command| format!("; to remove it: {command}"));
    lines.heading("Place");
    lines.row(format!("  {} {}{size}{earlier}{remove}", place.kind, place.name));
}

fn notes(run: &Run, lines: &mut Lines) {
    if run.notes.is_empty() {
        return;
    }
    lines.heading("Mind");
    for note in &run.notes {
        lines.sentence(note);
    }
}

fn verdict(run: &Run, lines: &mut Lines) {
    lines.raw(format!("\nVerdict: {}", run.verdict.status));
    for reason in &run.verdict.reasons {
        lines.sentence(reason);
    }
}
