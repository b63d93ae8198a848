//! `tsb emit`: only the generator, sending to a server of another program.
//!
//! Without `--verify-with`, nothing is read back, so the result says what was sent, not what
//! arrived.

mod read_back;

use std::sync::Arc;

use tsb_core::Timestamp;
use tsb_core::emit::Live;
use tsb_core::latency::{Curve, Recording, Summary};
use tsb_core::ledger::{Counter, Ledger};
use tsb_core::net::Address;
use tsb_core::report::{Cost, Curves, Exceptions, Interval, Rate, Target};
use tsb_core::schedule::Speed;
use tsb_core::verdict::{Status, Verdict};
use tsb_run::Controls;
use tsb_stores::Store;
use tsb_stores::null::NullStore;

use crate::args::EmitArgs;
use crate::endpoint::Endpoint;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::live::Display;
use crate::output::Outputs;
use crate::plan;
use crate::{interrupt, say};
use tsb_run::ends::{EmitReport, EndLatency, SentDatagrams};
use tsb_run::journal::{Followed, Follower};
use tsb_run::run::{
    Observations, Pass, PassResult, Rejects, RunContext, SinkTotals, Watch, acceptance_of_emit, check_asked, excepted,
    fingerprint, header_of_emit, issued, missing, missing_note, offered, progress, with_latencies, write_hdr_log,
};
use tsb_run::{foreign, units};

/// Runs the command.
pub fn command(args: &EmitArgs) -> Result<Exit, Failure> {
    plan::no_effect::check_emit(args)?;
    let failure = || Failure::usage(format!("cannot emit to {}", args.to));
    let endpoint: Endpoint = args
        .to
        .expose()
        .parse()
        .map_err(|why: String| failure().because_of(why))?;
    endpoint.check_sending().map_err(|why| failure().because_of(why))?;
    let address = endpoint.resolve().map_err(|error| failure().because(&error))?;
    let mut run = plan::with_file(&args.run)?;
    run.options.protocol = Some(endpoint.protocol.to_string());
    run.options.transport = Some(endpoint.transport.name().to_owned());
    if !endpoint.transport.is_answered() || run.options.in_flight.is_none() {
        run.options.workers = run.options.connections.take().or(run.options.workers);
    }
    let mut plan = plan::load(&run)?;
    endpoint.options.apply(&mut plan.wire);
    let mut plan = plan.complete()?;
    if let Some(phase) = plan.phases.iter().find(|phase| !phase.faults.is_none()) {
        return Err(failure()
            .because_of(format!(
                "phase {} has faults of the store, and tsb emit opens none",
                phase.name
            ))
            .hint(format!("leave them out with --set {}.faults=none", phase.name)));
    }
    if let Some(timed) = plan.timed_streams().first() {
        return Err(failure()
            .because_of(format!("{} asks a store, and tsb emit opens none", timed.stream.name))
            .hint("leave them out with --set queries=none, and those of a phase with --set PHASE.queries=none"));
    }
    // The user names the store later, with `tsb verify --store`.
    plan.stores.clear();
    if run.print_plan {
        return crate::run::print_plan(&plan);
    }
    let reader = args.verify_with.as_deref().map(read_back::reader).transpose()?;
    let mut outputs = Outputs::open(&run.output)?;
    let display = Display::lines(&run, &interrupt::signals())?;
    let journal = crate::run::journal(&run, &outputs)?;
    outputs.supersedes(journal.clone());
    let controls = Controls {
        journal,
        ..display.controls()
    };
    let context = RunContext::new(&plan, 1)?;
    check_asked(&context, None)?;
    let sent = send(&context, &endpoint, &address, &controls)?;
    let mut result = result(&context, &endpoint, &sent);
    let SendResults { base, driven, .. } = sent;
    result
        .notes
        .extend(controls.journal.as_ref().and_then(|journal| journal.failure()));
    if let Some(log) = outputs.hdr_log() {
        write_hdr_log(log, &driven, base.0).unwrap_or_else(|error| say::failure(Failure::from(error)));
    }
    let is_read = match &reader {
        Some(reader) => read_back::verify(&mut result, reader)?,
        None => true,
    };
    outputs.write_partial(&result, || text(&endpoint, &driven, &result))?;
    Ok(match (driven.failures.is_empty() && is_read, driven.interrupted) {
        _ if result.verdict.status == Status::Invalid => Exit::Invalid,
        (false, _) => Exit::Unreachable,
        (true, true) => Exit::Interrupted,
        (true, false) => Exit::Done,
    })
}

/// The results of sending: the timestamp of the start, counters, and intervals.
struct SendResults {
    base: Timestamp,
    driven: PassResult,
    seen: Observations,
}

/// Sends the workload, and writes the journal if there is one.
fn send(
    context: &RunContext,
    endpoint: &Endpoint,
    address: &Address,
    controls: &Controls,
) -> Result<SendResults, Failure> {
    let (start_ns, base) = context.beginning();
    let (live, watch) = (Live::new(context.plan.workers), Watch::default());
    let nowhere: Arc<dyn Store> = Arc::new(NullStore::new());
    let (totals, rejects) = (Arc::new(SinkTotals::default()), Arc::new(Rejects::new()));
    let pass = Pass {
        context,
        timetable: &context.timetable,
        store: nowhere,
        client: None,
        start_ns,
        base,
        stop: &controls.stops.stop,
        live: &live,
        totals: Arc::clone(&totals),
        rejects: Arc::clone(&rejects),
        window: None,
        written: None,
        listening: &watch,
        start_relay: None,
        sockets: &controls.sockets,
    };
    let followed = Followed {
        acceptance: acceptance_of_emit(&context.plan),
        clock: &*context.clock,
        start_ns,
        live: &live,
        totals: &totals,
        watch: &watch,
        rejects: &rejects,
        store: None,
    };
    let header = header_of_emit(context, endpoint.to_string(), base);
    let send = || pass.remote(address);
    let (driven, seen) = progress(context, (&live, &watch), controls, start_ns, || {
        match &controls.journal {
            Some(journal) => Follower::begin(journal, header, followed).beside(send),
            None => send(),
        }
    });
    let driven = driven?;
    Ok(SendResults { base, driven, seen })
}

/// Samples that were encoded and lost with their connection before they were sent.
fn unsent(driven: &PassResult) -> u64 {
    driven.wire.as_ref().map_or(0, |wire| wire.unsent_samples)
}

fn sent_for_good(driven: &PassResult) -> u64 {
    driven.counts.sent().samples.saturating_sub(unsent(driven))
}

/// The part of the ledger that a sender knows.
fn ledger(endpoint: &Endpoint, driven: &PassResult) -> Ledger {
    let mut ledger = Ledger::new();
    let (sent, counts) = (sent_for_good(driven), &driven.counts);
    ledger.set(Counter::Due, counts.due.samples).set(Counter::Sent, sent);
    ledger.set(Counter::Shed, counts.due.samples - sent);
    if endpoint.transport.is_answered() {
        ledger
            .set(Counter::Confirmed, counts.accepted)
            .set(Counter::Refused, counts.rejected);
        ledger.set(Counter::Unknown, counts.unknown.samples);
    }
    ledger
}

/// The issued operations that the server need not hold. Refused samples cannot be identified: an
/// answer only counts them.
fn exceptions(driven: &PassResult) -> Exceptions {
    let unsent = unsent(driven);
    let mut exceptions = excepted(driven);
    exceptions.rejected_unnamed = driven.counts.rejected;
    exceptions.never_arrived = unsent;
    exceptions.never_arrived_unnamed = Some(unsent);
    exceptions
}

/// The reporting intervals. Samples lost with a connection were the last ones given to it, so
/// they are subtracted from the last intervals.
fn intervals(sent: &SendResults) -> Vec<Interval> {
    let mut slices = with_latencies(&sent.seen.intervals, &sent.driven);
    let mut unsent = unsent(&sent.driven);
    for slice in slices.iter_mut().rev() {
        let taken = unsent.min(slice.sent);
        slice.sent -= taken;
        unsent -= taken;
    }
    slices
}

/// The latencies that a sender knows: all of them if the server answers, else only the lag.
fn latency(endpoint: &Endpoint, driven: &PassResult) -> EndLatency {
    let mut latency = EndLatency::default();
    latency.lag = Some(Summary::new(&driven.lag.total, driven.started_samples));
    if !endpoint.transport.is_answered() {
        "the kernel had taken it (nothing acknowledges it)".clone_into(&mut latency.done);
        latency.untimed = driven.counts.handed_over.operations;
        return latency;
    }
    let summary = |recording: &Recording| Some(Summary::new(&recording.total, driven.timed_samples));
    let mut curves = Curves::default();
    curves.response = Curve::new(&driven.response.total);
    curves.service = Curve::new(&driven.service.total);
    curves.lag = Curve::new(&driven.lag.total);
    "the answer to its request came".clone_into(&mut latency.done);
    latency.response = summary(&driven.response);
    latency.service = summary(&driven.service);
    latency.missing = Some(missing(driven));
    latency.curves = Some(curves);
    latency
}

fn notes(context: &RunContext, endpoint: &Endpoint, driven: &PassResult) -> Vec<String> {
    let is_answered = endpoint.transport.is_answered();
    let missing = missing_note(driven.response.total.count(), missing(driven)).filter(|_| is_answered);
    let held = (!is_answered).then(|| "nothing acknowledged anything: held is what the kernel took".to_owned());
    let failed = driven.failures.iter().map(|failure| format!("failed: {failure}"));
    let late = driven.late_start_note(context);
    missing.into_iter().chain(held).chain(late).chain(failed).collect()
}

fn rate(context: &RunContext, endpoint: &Endpoint, driven: &PassResult) -> Rate {
    let sent = sent_for_good(driven);
    let per = |samples: u64, nanos: u64| samples as f64 * 1e9 / nanos.max(1) as f64;
    let per_second = |samples: u64| per(samples, driven.elapsed_ns);
    let held = if endpoint.transport.is_answered() {
        driven.counts.accepted
    } else {
        sent
    };
    let closed_loop = context.plan.is_closed_loop();
    let mut rate = Rate::held(per_second(held));
    rate.asked_per_second = (!closed_loop).then(|| per(driven.counts.due.samples, driven.asked_ns));
    rate.closed_loop = closed_loop;
    rate.speed = context.speed().map_or_else(
        || per_second(sent) / context.workload.samples_per_second(),
        Speed::as_f64,
    );
    rate
}

fn cost(driven: &PassResult) -> Cost {
    let sent = sent_for_good(driven).max(1) as f64;
    let mut cost = Cost::default();
    cost.generator_cpu_ns_per_sample = Some(driven.cpu.total_ns as f64 / sent);
    cost.wire_bytes_per_sample = driven.wire.as_ref().map(|wire| wire.sent_bytes as f64 / sent);
    "CPU clocks of the emitting threads, waiting and pacing included".clone_into(&mut cost.method);
    cost
}

/// The report; what a sender cannot know is absent.
fn result(context: &RunContext, endpoint: &Endpoint, all: &SendResults) -> EmitReport {
    let SendResults { base, driven, seen } = all;
    let wire = driven.wire.as_ref();
    let mut target = Target::new(endpoint.to_string(), endpoint.transport.name(), "not read back");
    target.protocol = Some(endpoint.protocol.to_string());
    let verdict = Verdict::new(
        Status::Unverified,
        vec!["nothing was read back: tsb verify does, with --store".to_owned()],
    );
    let rate = rate(context, endpoint, driven);
    let offered = offered(context, &driven.issued);
    let mut report = EmitReport::new(context.plan.clone(), target, verdict, rate, offered);
    report.started_at_ns = base.0;
    report.duration_ns = driven.elapsed_ns;
    report.interrupted = driven.interrupted;
    report.fingerprint = fingerprint(context);
    report.ledger = ledger(endpoint, driven);
    report.latency = latency(endpoint, driven);
    report.cost = cost(driven);
    report.intervals = intervals(all);
    report.resources.clone_from(&seen.resources);
    report.issued = issued(&driven.issued);
    report.exceptions = exceptions(driven);
    report.notes = notes(context, endpoint, driven);
    report.closing = wire.map(|wire| {
        let closings = wire.closings.iter();
        closings.map(|(way, count)| ((*way).to_owned(), *count)).collect()
    });
    report.datagrams = wire.filter(|wire| wire.sent_datagrams > 0).map(|wire| {
        let mut datagrams = SentDatagrams::default();
        datagrams.sent = wire.sent_datagrams;
        datagrams.segments_per_call = wire.segments;
        datagrams.send_buffer_bytes = wire.send_buffer_bytes;
        datagrams
    });
    report.failures.clone_from(&driven.failures);
    report
}

/// The samples that were due and never sent, with their share, as text.
fn shed_in_words(due: u64, sent: u64) -> String {
    let shed = due - sent;
    if shed == 0 {
        return String::new();
    }
    let share = shed as f64 * 100.0 / due.max(1) as f64;
    format!(" (shed {}: {share:.1} % never sent)", units::count(shed))
}

fn text(endpoint: &Endpoint, driven: &PassResult, result: &EmitReport) -> String {
    let sent = sent_for_good(driven);
    let lag = Summary::new(&driven.lag.total, driven.started_samples);
    let show = |value: Option<u64>| value.map_or("-".to_owned(), units::nanos);
    let mut lines = vec![
        format!(
            "sent {} of {} samples due{} to {endpoint} in {:.1} s: {} per second",
            units::count(sent),
            units::count(driven.counts.due.samples),
            shed_in_words(driven.counts.due.samples, sent),
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
            "generator CPU {:.1} ns per sample",
            driven.cpu.total_ns as f64 / sent.max(1) as f64
        ),
    ];
    if endpoint.transport.is_answered() {
        let response = Summary::new(&driven.response.total, driven.timed_samples);
        lines.push(format!(
            "confirmed {}, refused {}, unknown {}; response of those p50 {}, p90 {}, p99 {}, max {}",
            units::count(driven.counts.accepted),
            units::count(driven.counts.rejected),
            units::count(driven.counts.unknown.samples),
            show(response.p50_ns),
            show(response.p90_ns),
            show(response.p99_ns),
            show(response.max_ns),
        ));
    }
    if let Some(wire) = driven.wire.as_ref().filter(|wire| wire.sent_datagrams > 0) {
        lines.push(format!(
            "{} datagrams, up to {} per system call, send buffer {}",
            units::count(wire.sent_datagrams),
            wire.segments,
            units::bytes(wire.send_buffer_bytes as f64),
        ));
    }
    lines.extend(result.notes.iter().map(|note| foreign::line(note).into_owned()));
    let unread = if endpoint.transport.is_answered() {
        "UNVERIFIED: nothing was read back\n"
    } else {
        "UNVERIFIED: nothing was read back, and nothing was acknowledged\n"
    };
    lines.push(match &result.verified {
        Some(verified) => crate::verify::text(verified),
        None => unread.to_owned(),
    });
    lines.join("\n")
}
