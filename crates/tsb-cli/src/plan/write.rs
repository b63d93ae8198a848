//! Writes a plan as a run file, and checks that it reads back as the same plan.

use std::fmt::{Display, Write};
use std::path::Path;

use clap::ValueEnum;
use serde_json::Value;
use tsb_core::net::Carrier;
use tsb_core::time::SECOND_NS;
use tsb_core::workload::{BatchMode, Churn, ChurnMode, FleetSpec, Phase};
use tsb_run::plan::{PhaseFaults, QueryStream, RunPhase};

use super::{AskedRate, Plan, Transport, file, load};
use crate::args::{Format, Progress, RunArgs};
use crate::failure::Failure;

/// The run file of a plan, with the outputs of `args`. Keys that would have no effect are left out.
///
/// # Errors
/// If the plan has something that no key says; names it.
pub(super) fn run_file(plan: &Plan, args: &RunArgs) -> Result<String, Failure> {
    let text = text_of(plan, args);
    let parsed = file::parse(Path::new("the written plan"), &text)?;
    let again = load::of_file(&parsed)?;
    match difference(plan, &again) {
        None => Ok(text),
        Some(place) => Err(Failure::usage("cannot write this plan as a run file")
            .because_of(format!("no key of a run file says its {place}"))
            .hint("tsb run --print-plan prints the whole plan as JSON, which --plan reads, too")),
    }
}

/// The first place in which two plans differ, as a path of their JSON.
fn difference(one: &Plan, other: &Plan) -> Option<String> {
    let [one, other] = [one, other].map(|plan| {
        let mut plan = plan.clone();
        // A run raises it to what its store can tell apart, and notes which trace it has read.
        plan.workload.resolution_ns = 1;
        if let FleetSpec::Trace(source) = &mut plan.workload.fleet {
            source.checksum = None;
        }
        serde_json::to_value(&plan).unwrap_or_default()
    });
    first_difference("", &one, &other)
}

fn first_difference(place: &str, one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(ones), Value::Object(others)) => {
            let names = ones
                .keys()
                .chain(others.keys().filter(|name| !ones.contains_key(*name)));
            let dot = if place.is_empty() { "" } else { "." };
            names
                .map(|name| (format!("{place}{dot}{name}"), name))
                .find_map(|(place, name)| first_difference(&place, &one[name], &other[name]))
        }
        _ => (one != other).then(|| place.to_owned()),
    }
}

fn text_of(plan: &Plan, args: &RunArgs) -> String {
    let mut keys = Keys::default();
    keys.comment("tsb run --plan FILE runs it; docs/formats/plan.md explains the keys.");
    store(plan, args, &mut keys);
    workload(plan, args, &mut keys);
    schedule(plan, &mut keys);
    result(plan, args, &mut keys);
    for stream in &plan.queries {
        query_stream(stream, &mut keys);
    }
    for phase in &plan.phases {
        one_phase(phase, &mut keys);
    }
    keys.text
}

/// Lines of `key = value`.
#[derive(Default)]
struct Keys {
    text: String,
}

impl Keys {
    fn comment(&mut self, text: &str) {
        let _ = writeln!(self.text, "# {text}");
    }

    fn group(&mut self) {
        self.text.push('\n');
    }

    fn raw(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.text, "{key} = {value}");
    }

    fn text(&mut self, key: &str, value: impl Display) {
        self.raw(key, quoted(&value.to_string()));
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        match values {
            [] => {}
            [one] => self.text(key, one),
            all => {
                let all: Vec<String> = all.iter().map(|one| quoted(one)).collect();
                self.raw(key, format!("[{}]", all.join(", ")));
            }
        }
    }

    /// A number of TOML, which ends at 2^63 - 1; beyond that a text.
    fn number(&mut self, key: &str, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.raw(key, value),
            Err(_) => self.text(key, value),
        }
    }

    fn time(&mut self, key: &str, ns: u64) {
        self.text(key, duration(ns));
    }

    fn path(&mut self, key: &str, path: Option<&Path>) {
        if let Some(path) = path {
            self.text(key, path.display());
        }
    }

    fn switch(&mut self, key: &str, is_on: bool) {
        self.text(key, if is_on { "on" } else { "off" });
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A duration in the largest unit in which it is a whole number.
fn duration(ns: u64) -> String {
    let units = [
        (3_600 * SECOND_NS, "h"),
        (60 * SECOND_NS, "m"),
        (SECOND_NS, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let whole = units
        .into_iter()
        .find(|(unit_ns, _)| ns > 0 && ns.is_multiple_of(*unit_ns));
    let (unit_ns, name) = whole.unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit_ns)
}

fn store(plan: &Plan, args: &RunArgs, keys: &mut Keys) {
    let stores: Vec<String> = plan.stores.iter().map(ToString::to_string).collect();
    keys.texts("store", &stores);
    keys.texts("label", &args.label);
    keys.text("transport", plan.transport.name());
    let wire = &plan.wire;
    if plan.transport.is_wire() {
        keys.text("protocol", plan.protocol);
        if plan.transport.carrier() == Carrier::Datagrams {
            keys.number("sockets", wire.sockets as u64);
            keys.number("datagram", wire.datagram_bytes as u64);
            if let Some(bytes) = wire.receive_buffer_bytes {
                keys.number("receive-buffer", bytes);
            }
        }
        if plan.transport == Transport::Udp {
            keys.switch("gso", wire.gso);
            keys.switch("gro", wire.gro);
        }
    }
    keys.number("max-series", plan.max_series);
}

fn workload(plan: &Plan, args: &RunArgs, keys: &mut Keys) {
    keys.group();
    let workload = &plan.workload;
    match &workload.fleet {
        // The plan holds what the file said, and not which file it was.
        FleetSpec::File(_) => keys.path("fleet-file", args.options.fleet_file.as_deref()),
        fleet => keys.text("workload", fleet),
    }
    if let Some(series) = workload.series {
        keys.number("series", series as u64);
    }
    if let Some(ns) = workload.interval_ns {
        keys.time("interval", ns);
    }
    if !workload.intervals.is_empty() {
        keys.raw("mixed-intervals", true);
    }
    keys.number("seed", workload.seed);
    keys.text(
        "phase",
        match workload.phase {
            Phase::Seeded => "seeded",
            Phase::Aligned => "aligned",
        },
    );
    match workload.batch {
        BatchMode::Message => keys.text("batch", "message"),
        BatchMode::Host => keys.text("batch", "host"),
        BatchMode::Tick => keys.text("batch", "tick"),
        BatchMode::Series(series) => keys.number("batch", u64::from(series)),
        // The written file is read again, and then differs.
        _ => {}
    }
    if workload.jitter.max_ns > 0 {
        keys.time("jitter", workload.jitter.max_ns);
    }
    let disorder = &workload.disorder;
    for (key, share) in [
        ("late", disorder.late),
        ("missing", disorder.missing),
        ("duplicate", disorder.duplicate),
        ("out-of-order", disorder.out_of_order),
    ] {
        if share > 0.0 {
            keys.text(key, share);
        }
    }
    if let Some(churn) = &workload.churn {
        keys.text("churn", churn_text(churn));
    }
}

/// Churn as its flag is written.
fn churn_text(churn: &Churn) -> String {
    match churn.mode {
        ChurnMode::Steady { lifetime_ns } => format!("steady:{}", duration(lifetime_ns)),
        ChurnMode::Gradual { multiple, period_ns } => format!("gradual:{multiple}x/{}", duration(period_ns)),
        ChurnMode::DoubleHalve { period_ns } => format!("double-halve:{}", duration(period_ns)),
        ChurnMode::Spike {
            multiple,
            period_ns,
            length_ns,
        } => format!("spike:{multiple}x/{}/{}", duration(period_ns), duration(length_ns)),
        // The written file is read again, and then differs.
        _ => "none".to_owned(),
    }
}

fn schedule(plan: &Plan, keys: &mut Keys) {
    keys.group();
    if plan.phases.is_empty() {
        match (&plan.schedule, plan.rate) {
            (Some(schedule), _) => keys.text("schedule", schedule),
            // Only a part of a fleet has a speed. The written file is read again, and then differs.
            (None, AskedRate::Natural | AskedRate::Speed(..)) => keys.text("rate", "natural"),
            (None, AskedRate::PerSecond(rate)) => keys.number("rate", rate),
            (None, AskedRate::Max) => keys.text("rate", "max"),
        }
        if let Some(ns) = plan.duration_ns {
            keys.time("duration", ns);
        }
        if let Some(ns) = plan.fleet_time_ns {
            keys.time("fleet-time", ns);
        }
    }
    keys.number("workers", plan.workers as u64);
    if let Some(ns) = plan.preload_ns {
        keys.time("preload", ns);
    }
    if plan.query_workers > 1 {
        keys.number("query-workers", plan.query_workers as u64);
    }
    if let Some(bound) = plan.in_flight {
        keys.number("in-flight", bound as u64);
    }
    if let Some(connections) = plan.wire.connections {
        keys.number("connections", connections as u64);
    }
}

fn result(plan: &Plan, args: &RunArgs, keys: &mut Keys) {
    keys.group();
    keys.raw("no-verify", !plan.verify);
    if plan.append {
        keys.raw("append", true);
    }
    keys.raw("no-calibrate", !plan.calibrate);
    keys.time("report-interval", plan.report_interval_ns);
    if !plan.watch_pids.is_empty() {
        keys.raw("watch-pid", format!("{:?}", plan.watch_pids));
    }
    let output = &args.output;
    keys.path("out", output.out.as_deref());
    keys.path("html", output.html.as_deref());
    keys.path("hdr-log", output.hdr_log.as_deref());
    keys.path("journal", args.journal.as_deref());
    if let Some(text) = &args.store_timeout {
        keys.text("store-timeout", text);
    }
    keys.texts("fail-if", &args.fail_if);
    keys.texts("fail-unless", &args.fail_unless);
    if let Some(times) = args.retry_noisy {
        keys.number("retry-noisy", times.into());
    }
    if output.format != Format::default() {
        keys.text("format", word(&output.format));
    }
    if args.progress != Progress::default() {
        keys.text("progress", word(&args.progress));
    }
    if output.quiet {
        keys.raw("quiet", true);
    }
    if let Some(address) = args.expose {
        keys.text("expose", address);
    }
    if args.expose_remote {
        keys.raw("expose-remote", true);
    }
}

/// A value of a flag, as it is typed.
fn word(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

fn query_stream(stream: &QueryStream, keys: &mut Keys) {
    keys.group();
    let _ = writeln!(keys.text, "[[queries]]");
    if stream.name != stream.kind.to_string() {
        keys.text("name", &stream.name);
    }
    keys.text("kind", stream.kind.word());
    keys.text("rate", stream.rate);
    for (parameter, value) in stream.kind.parameters() {
        keys.text(parameter, value);
    }
}

fn one_phase(phase: &RunPhase, keys: &mut Keys) {
    keys.group();
    let _ = writeln!(keys.text, "[[phases]]");
    keys.text("name", &phase.name);
    keys.time("duration", phase.duration_ns);
    match phase.to_per_second {
        None => keys.number("rate", phase.rate_per_second),
        Some(to) => keys.text("rate", format!("{}..{to}", phase.rate_per_second)),
    }
    if !phase.queries.is_empty() {
        let streams: Vec<String> = phase.queries.iter().map(ToString::to_string).collect();
        keys.text("queries", streams.join(","));
    }
    let PhaseFaults {
        rate_per_second,
        stall_ns,
        stall_every_ns,
        error_one_in,
    } = phase.faults;
    let mut faults = Vec::new();
    faults.extend(stall_ns.map(|ns| format!("stall = {}", quoted(&duration(ns)))));
    faults.extend(stall_every_ns.map(|ns| format!("stall-every = {}", quoted(&duration(ns)))));
    faults.extend(rate_per_second.map(|rate| format!("rate = {}", quoted(&rate.to_string()))));
    faults.extend(error_one_in.map(|one_in| format!("error-one-in = {}", quoted(&one_in.to_string()))));
    if !faults.is_empty() {
        keys.raw("faults", format!("{{ {} }}", faults.join(", ")));
    }
}

#[cfg(test)]
mod tests;
