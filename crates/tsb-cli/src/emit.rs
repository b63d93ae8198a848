//! `tsb emit`: the generator alone, against a server that somebody else runs.
//!
//! Nothing is read back, so the result says what was sent and not what arrived.

use std::sync::Arc;

use serde_json::json;
use tsb_core::emit::Live;
use tsb_core::latency::{Recording, Summary};
use tsb_core::ledger::{Counter, Ledger};
use tsb_stores::Store;
use tsb_stores::null::NullStore;

use crate::args::EmitArgs;
use crate::endpoint::Endpoint;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::live::expose;
use crate::output::Outputs;
use crate::plan;
use crate::run::{Driven, Hooks, Pass, Rejects, SinkTotals, Stage, Watch, progress};
use crate::{interrupt, units};

/// Runs the command.
pub fn command(args: &EmitArgs) -> Result<Exit, Failure> {
    plan::no_effect::check_emit(args)?;
    let failure = || Failure::usage(format!("cannot emit to {}", args.to));
    let endpoint: Endpoint = args.to.parse().map_err(|why: String| failure().because_of(why))?;
    endpoint.check_sending().map_err(|why| failure().because_of(why))?;
    let address = endpoint.resolve().map_err(|error| failure().because(&error))?;
    let mut run = args.run.clone();
    run.options.protocol = Some(endpoint.protocol.to_string());
    run.options.transport = Some(endpoint.transport.name().to_owned());
    run.options.workers = args.connections.or(run.options.workers);
    let mut plan = plan::load(&run)?;
    endpoint.options.apply(&mut plan.wire);
    let plan = plan.complete()?;
    let outputs = Outputs::open_without_page(&args.run.output)?;
    let mut hooks = Hooks::new(interrupt::flag(), args.run.output.quiet);
    let _exposed = expose(&args.run, &mut hooks)?;
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
        window: None,
        listening: &watch,
        between: None,
    };
    let driven = progress(&stage, &live, &hooks, || pass.remote(&address))?;
    let result = result(&endpoint, &plan, &driven)?;
    outputs.write_value(&result, || text(&endpoint, &driven))?;
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
    let is_answered = endpoint.transport.is_answered();
    if is_answered {
        let counts = &driven.counts;
        ledger
            .set(Counter::Confirmed, counts.accepted)
            .set(Counter::Refused, counts.rejected);
        ledger.set(Counter::Unknown, counts.unknown.samples);
    }
    let mut latency = json!({ "lag": Summary::new(&driven.lag.total, driven.started_samples) });
    if is_answered {
        let summary = |recording: &Recording| Summary::new(&recording.total, driven.timed_samples);
        latency["response"] = json!(summary(&driven.response));
        latency["service"] = json!(summary(&driven.service));
    }
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
        "latency": latency,
        "cost": {
            "generator_cpu_ns_per_sample": driven.cpu.total_ns as f64 / sent.max(1) as f64,
            "wire_bytes_per_sample": driven.wire.as_ref().map(|wire| wire.sent_bytes as f64 / sent.max(1) as f64),
        },
        "datagrams": driven.wire.as_ref().filter(|wire| wire.sent_datagrams > 0).map(|wire| json!({
            "sent": wire.sent_datagrams,
            "segments_per_call": wire.segments,
            "send_buffer_bytes": wire.send_buffer_bytes,
        })),
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
    if endpoint.transport.is_answered() {
        let response = Summary::new(&driven.response.total, driven.timed_samples);
        lines.push(format!(
            "confirmed {}, refused {}, unknown {}; response p50 {}, p99 {}, max {}",
            units::count(driven.counts.accepted),
            units::count(driven.counts.rejected),
            units::count(driven.counts.unknown.samples),
            show(response.p50_ns),
            show(response.p99_ns),
            show(response.max_ns),
        ));
    }
    if let Some(wire) = driven.wire.as_ref().filter(|wire| wire.sent_datagrams > 0) {
        lines.push(format!(
            "{} datagrams, up to {} a system call, send buffer {}",
            units::count(wire.sent_datagrams),
            wire.segments,
            units::bytes(wire.send_buffer_bytes as f64),
        ));
    }
    lines.extend(driven.failures.iter().map(|failure| format!("failed: {failure}")));
    let verdict = if endpoint.transport.is_answered() {
        "UNVERIFIED: nothing was read back\n"
    } else {
        "UNVERIFIED: nothing was read back, and nobody acknowledged anything\n"
    };
    lines.push(verdict.to_owned());
    lines.join("\n")
}
