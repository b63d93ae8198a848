//! `tsb emit`: the generator alone, against a server that somebody else runs.
//!
//! Nothing is read back, so the result says what was sent and not what arrived.

use std::sync::Arc;

use serde_json::json;
use tsb_core::emit::Live;
use tsb_core::latency::Summary;
use tsb_core::ledger::{Counter, Ledger};
use tsb_stores::Store;
use tsb_stores::null::NullStore;

use crate::args::EmitArgs;
use crate::endpoint::Endpoint;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;
use crate::plan::{self, Transport};
use crate::run::{Driven, Hooks, Pass, Rejects, SinkTotals, Stage, Watch, progress};
use crate::{interrupt, units};

/// Runs the command.
pub fn command(args: &EmitArgs) -> Result<Exit, Failure> {
    let failure = || Failure::usage(format!("cannot emit to {}", args.to));
    let endpoint: Endpoint = args.to.parse().map_err(|why: String| failure().because_of(why))?;
    let address = endpoint.resolve().map_err(|error| failure().because(&error))?;
    let mut run = args.run.clone();
    run.options.protocol = Some(endpoint.protocol.to_string());
    run.options.transport = Some(Transport::Tcp.name().to_owned());
    run.options.workers = args.connections.or(run.options.workers);
    let plan = plan::load(&run)?;
    let mut outputs = Outputs::open(&args.run.output)?;
    let hooks = Hooks::new(interrupt::flag(), args.run.output.quiet);
    let stage = Stage::new(&plan, 1)?;
    let (start_ns, base) = stage.beginning();
    let (live, watch) = (Live::new(plan.workers), Watch::default());
    let nowhere: Arc<dyn Store> = Arc::new(NullStore::new());
    let pass = Pass {
        stage: &stage,
        timetable: &stage.timetable,
        store: nowhere,
        start_ns,
        base,
        stop: &hooks.stop,
        live: &live,
        totals: Arc::new(SinkTotals::default()),
        rejects: Arc::new(Rejects::new()),
        listening: &watch,
        between: None,
    };
    let driven = progress(&stage, &live, &hooks, || pass.remote(address))?;
    let result = result(&endpoint, &plan, &driven)?;
    outputs.write_value(&result, args.run.output.format, || text(&endpoint, &driven))?;
    Ok(match (driven.failures.is_empty(), driven.interrupted) {
        (false, _) => Exit::Unreachable,
        (true, true) => Exit::Interrupted,
        (true, false) => Exit::Done,
    })
}

fn sent_for_good(driven: &Driven) -> u64 {
    let unsent = driven.wire.as_ref().map_or(0, |wire| wire.unsent_samples);
    driven.counts.sent().samples.saturating_sub(unsent)
}

fn result(endpoint: &Endpoint, plan: &plan::Plan, driven: &Driven) -> Result<serde_json::Value, Failure> {
    let mut ledger = Ledger::new();
    let sent = sent_for_good(driven);
    ledger
        .set(Counter::Due, driven.counts.due.samples)
        .set(Counter::Sent, sent);
    ledger.set(Counter::Shed, driven.counts.due.samples - sent);
    let plan = serde_json::to_value(plan)
        .map_err(|error| Failure::new(Exit::Bug, "cannot serialize the plan").because(&error))?;
    Ok(json!({
        "schema_version": tsb_core::report::SCHEMA_VERSION,
        "tsb_version": env!("CARGO_PKG_VERSION"),
        "target": { "address": endpoint.to_string() },
        "plan": plan,
        "verdict": { "status": "UNVERIFIED", "reasons": ["nothing was read back"] },
        "durability": { "level": "unconfirmed", "copies": 0 },
        "interrupted": driven.interrupted,
        "duration_ns": driven.elapsed_ns,
        "rate": { "held_per_second": sent as f64 * 1e9 / driven.elapsed_ns.max(1) as f64 },
        "ledger": ledger,
        "latency": { "lag": Summary::new(&driven.lag.total, driven.started_samples) },
        "cost": {
            "generator_cpu_ns_per_sample": driven.cpu.total_ns as f64 / sent.max(1) as f64,
            "wire_bytes_per_sample": driven.wire.as_ref().map(|wire| wire.sent_bytes as f64 / sent.max(1) as f64),
        },
        "failures": driven.failures,
    }))
}

fn text(endpoint: &Endpoint, driven: &Driven) -> String {
    let sent = sent_for_good(driven);
    let lag = Summary::new(&driven.lag.total, driven.started_samples);
    let show = |value: Option<u64>| value.map_or("-".to_owned(), units::nanos);
    let mut lines = vec![
        format!(
            "sent {} of {} samples due to {endpoint} in {:.1} s: {}/s",
            units::count(sent),
            units::count(driven.counts.due.samples),
            driven.elapsed_ns as f64 / 1e9,
            units::scaled(sent as f64 * 1e9 / driven.elapsed_ns.max(1) as f64),
        ),
        format!(
            "lag p50 {}, p99 {}, max {}",
            show(lag.p50_ns),
            show(lag.p99_ns),
            show(lag.max_ns)
        ),
        format!(
            "generator CPU {:.1} ns a sample",
            driven.cpu.total_ns as f64 / sent.max(1) as f64
        ),
    ];
    lines.extend(driven.failures.iter().map(|failure| format!("failed: {failure}")));
    lines.push("UNVERIFIED: nothing was read back, and nobody acknowledged anything\n".to_owned());
    lines.join("\n")
}
