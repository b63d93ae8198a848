//! Applies flags (or the keys of a run file) to a plan. Every error names the flag.

use tsb_core::workload::{BatchMode, FleetSpec, IntervalShare, Jitter, Phase};

use super::{AskedRate, PLAN_VERSION, Plan, Transport, churn};
use crate::args::RunOptions;
use crate::failure::Failure;
use tsb_run::plan::QueryStream;
use tsb_run::units;

/// The failure of a flag whose value cannot be parsed.
fn bad(flag: &str, text: &str, why: impl Into<String>) -> Failure {
    Failure::usage(format!("cannot read --{flag} {text}")).because_of(why)
}

/// Parses the value of a flag with `parse`, if it was given.
fn read<T>(
    flag: &str,
    text: Option<&String>,
    parse: impl FnOnce(&str) -> Result<T, String>,
    set: impl FnOnce(T),
) -> Result<(), Failure> {
    if let Some(text) = text {
        set(parse(text).map_err(|why| bad(flag, text, why))?);
    }
    Ok(())
}

/// Parses one of a set of words.
fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let known = words.iter().find(|(name, _)| *name == text).map(|&(_, value)| value);
    known.ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|&(name, _)| name).collect();
        format!("it is one of {}", names.join(", "))
    })
}

fn rate(text: &str) -> Result<AskedRate, String> {
    match text {
        "max" => Ok(AskedRate::Max),
        "natural" => Ok(AskedRate::Natural),
        _ => match units::parse_count(text)? {
            0 => Err("a rate is at least 1".to_owned()),
            count => Ok(AskedRate::PerSecond(count)),
        },
    }
}

/// Parses the batch mode: a word, or the largest number of series.
fn batch(text: &str) -> Result<BatchMode, String> {
    let modes = [
        ("message", BatchMode::Message),
        ("host", BatchMode::Host),
        ("tick", BatchMode::Tick),
    ];
    match units::parse_count(text) {
        Ok(series) => u32::try_from(series)
            .ok()
            .filter(|&series| series > 0)
            .map(BatchMode::Series)
            .ok_or_else(|| format!("an operation holds from 1 to {} series", u32::MAX)),
        Err(_) => word(text, &modes).map_err(|why| format!("{why}, or a number of series")),
    }
}

/// Applies flags to a plan.
pub trait Apply {
    /// Sets what `options` contain; everything else stays.
    ///
    /// # Errors
    /// If one cannot be parsed; names the flag.
    fn apply(&mut self, options: &RunOptions) -> Result<(), Failure>;
}

impl Apply for Plan {
    fn apply(&mut self, options: &RunOptions) -> Result<(), Failure> {
        apply_target(self, options)?;
        apply_fleet(self, options)?;
        apply_disorder(self, options)?;
        apply_schedule(self, options)?;
        apply_queries(self, options)?;
        apply_result(self, options)
    }
}

fn apply_target(plan: &mut Plan, options: &RunOptions) -> Result<(), Failure> {
    if !options.store.is_empty() {
        plan.stores = options
            .store
            .iter()
            .map(|text| {
                text.spec()
                    .map_err(|error| Failure::usage(format!("cannot use --store {text}")).because(&error))
            })
            .collect::<Result<_, _>>()?;
    }
    let wires = Transport::WIRES.map(|wire| (wire.name(), wire));
    let transports = [&[("inproc", Transport::Inproc)], wires.as_slice()].concat();
    read(
        "transport",
        options.transport.as_ref(),
        |text| word(text, &transports),
        |t| plan.transport = t,
    )?;
    read(
        "protocol",
        options.protocol.as_ref(),
        |text| {
            text.parse()
                .map_err(|error: tsb_core::wire::UnknownProtocol| error.to_string())
        },
        |protocol| plan.protocol = protocol,
    )?;
    apply_wire(plan, options)?;
    read("max-series", options.max_series.as_ref(), units::parse_count, |n| {
        plan.max_series = n;
    })
}

fn apply_wire(plan: &mut Plan, options: &RunOptions) -> Result<(), Failure> {
    let wire = &mut plan.wire;
    if let Some(sockets) = options.sockets {
        wire.sockets = sockets as usize;
    }
    if let Some(bytes) = options.datagram {
        wire.datagram_bytes = bytes as usize;
    }
    read("gso", options.gso.as_ref(), units::parse_switch, |on| wire.gso = on)?;
    read("gro", options.gro.as_ref(), units::parse_switch, |on| wire.gro = on)?;
    read(
        "receive-buffer",
        options.receive_buffer.as_ref(),
        units::parse_bytes,
        |bytes| {
            wire.receive_buffer_bytes = Some(bytes);
        },
    )
}

fn apply_fleet(plan: &mut Plan, options: &RunOptions) -> Result<(), Failure> {
    let workload = &mut plan.workload;
    if let Some(text) = &options.workload {
        workload.fleet = text.parse().map_err(|error| {
            Failure::usage(format!("cannot use --workload {text}"))
                .because(&error as &tsb_core::workload::WorkloadError)
        })?;
        // Another fleet, another natural size.
        workload.series = None;
    }
    if let Some(path) = &options.fleet_file {
        let failure = || Failure::usage(format!("cannot use --fleet-file {}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| failure().because(&error))?;
        workload.fleet = FleetSpec::from_toml(&text).map_err(|error| failure().because(&error))?;
    }
    read("series", options.series.as_ref(), units::parse_count, |n| {
        workload.series = Some(n as usize);
    })?;
    read("interval", options.interval.as_ref(), units::parse_duration, |ns| {
        workload.interval_ns = Some(ns);
    })?;
    if let Some(mixed) = options.mixed_intervals {
        let second = tsb_core::time::SECOND_NS;
        let shares = [(1, 0.5), (10, 0.3), (60, 0.2)];
        let shares = shares.map(|(seconds, share)| IntervalShare {
            interval_ns: seconds * second,
            share,
        });
        workload.intervals = if mixed { shares.to_vec() } else { Vec::new() };
    }
    if let Some(seed) = options.seed {
        workload.seed = seed;
    }
    let phases = [("seeded", Phase::Seeded), ("aligned", Phase::Aligned)];
    read(
        "phase",
        options.phase.as_ref(),
        |text| word(text, &phases),
        |phase| workload.phase = phase,
    )?;
    read("batch", options.batch.as_ref(), batch, |batch| workload.batch = batch)
}

fn apply_disorder(plan: &mut Plan, options: &RunOptions) -> Result<(), Failure> {
    let workload = &mut plan.workload;
    read("jitter", options.jitter.as_ref(), units::parse_duration, |ns| {
        workload.jitter = Jitter::up_to(ns);
    })?;
    let disorder = &mut workload.disorder;
    let shares = [
        ("late", &options.late, &mut disorder.late),
        ("missing", &options.missing, &mut disorder.missing),
        ("duplicate", &options.duplicate, &mut disorder.duplicate),
        ("out-of-order", &options.out_of_order, &mut disorder.out_of_order),
    ];
    for (flag, text, field) in shares {
        read(flag, text.as_ref(), units::parse_probability, |share| *field = share)?;
    }
    read("churn", options.churn.as_ref(), churn::parse, |churn| {
        workload.churn = churn;
    })
}

/// Refuses flags that say what the phases of a plan say.
fn check_phases(plan: &Plan, options: &RunOptions) -> Result<(), Failure> {
    let given = [
        ("rate", &options.rate),
        ("schedule", &options.schedule),
        ("duration", &options.duration),
        ("fleet-time", &options.fleet_time),
    ];
    match (given.iter().find(|(_, value)| value.is_some()), plan.phases.first()) {
        (Some((flag, _)), Some(first)) => Err(Failure::usage(format!("cannot use --{flag} here"))
            .because_of("the plan has phases, which say how long the run is and which rate it has when")
            .hint(format!(
                "change a phase: --set {}.rate=10k, --set {}.duration=1m",
                first.name, first.name
            ))),
        _ => Ok(()),
    }
}

fn apply_schedule(plan: &mut Plan, options: &RunOptions) -> Result<(), Failure> {
    check_phases(plan, options)?;
    if options.rate.is_some() {
        plan.schedule = None;
    }
    if options.schedule.is_some() {
        plan.rate = AskedRate::Natural;
        // What it said of a schedule is gone.
        plan.version = plan.version.max(PLAN_VERSION);
    }
    read("rate", options.rate.as_ref(), rate, |rate| plan.rate = rate)?;
    read(
        "schedule",
        options.schedule.as_ref(),
        |text| {
            text.parse()
                .map_err(|error: tsb_core::schedule::ParseError| error.to_string())
        },
        |schedule| plan.schedule = Some(schedule),
    )?;
    if options.duration.is_some() || options.fleet_time.is_some() {
        plan.duration_ns = None;
        plan.fleet_time_ns = None;
    }
    read("duration", options.duration.as_ref(), units::parse_duration, |ns| {
        plan.duration_ns = Some(ns);
    })?;
    read("fleet-time", options.fleet_time.as_ref(), units::parse_duration, |ns| {
        plan.fleet_time_ns = Some(ns);
    })?;
    if let Some(workers) = options.workers {
        plan.workers = workers as usize;
    }
    if let Some(bound) = options.in_flight {
        plan.in_flight = Some(bound as usize);
    }
    if let Some(connections) = options.connections {
        plan.wire.connections = Some(connections as usize);
    }
    Ok(())
}

fn apply_queries(plan: &mut Plan, options: &RunOptions) -> Result<(), Failure> {
    read("preload", options.preload.as_ref(), units::parse_duration, |ns| {
        plan.preload_ns = Some(ns);
    })?;
    if let Some(workers) = options.query_workers {
        plan.query_workers = workers as usize;
    }
    read(
        "queries",
        options.queries.as_ref(),
        |text| QueryStream::parse_list(text).map_err(|error| error.to_string()),
        |streams| plan.queries = streams,
    )
}

fn apply_result(plan: &mut Plan, options: &RunOptions) -> Result<(), Failure> {
    if let Some(no_verify) = options.no_verify {
        plan.verify = !no_verify;
    }
    if let Some(append) = options.append {
        plan.append = append;
    }
    if let Some(no_calibrate) = options.no_calibrate {
        plan.calibrate = !no_calibrate;
    }
    if !options.watch_pid.is_empty() {
        plan.watch_pids.clone_from(&options.watch_pid);
    }
    read(
        "report-interval",
        options.report_interval.as_ref(),
        units::parse_duration,
        |ns| plan.report_interval_ns = ns,
    )
}
