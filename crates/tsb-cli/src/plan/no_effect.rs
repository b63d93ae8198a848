//! Refuses flags without effect: such a flag is a mistake of the caller that a report would not
//! show.

use tsb_core::net::Carrier;
use tsb_core::resource::Process;
use tsb_run::capacity::Vary;

use super::{Plan, Transport};
use crate::args::{EmitArgs, Format, IngestArgs, OutputArgs, Progress, RunArgs, RunOptions};
use crate::failure::Failure;

/// A flag, whether it was given, and why it would do nothing.
type FlagUse = (&'static str, bool, &'static str);

fn refuse(idle: &[FlagUse], hint: &str) -> Result<(), Failure> {
    match idle.iter().find(|(_, is_given, _)| *is_given) {
        Some((flag, _, why)) => Err(Failure::usage(format!("cannot use {flag} here"))
            .because_of(*why)
            .hint(hint)),
        None => Ok(()),
    }
}

/// Refuses options that have no effect on their plan.
pub(super) fn check(options: &RunOptions, plan: &Plan) -> Result<(), Failure> {
    let transport = plan.transport;
    let is_datagrams = transport.is_wire() && transport.carrier() == Carrier::Datagrams;
    let in_process = "samples reach the store in this process: there is no wire";
    let hint = if plan.stores.iter().any(tsb_run::spec::Spec::is_client) {
        "a client of a server is driven in process; --transport tcp puts a wire of tsb before it"
    } else {
        "give --transport tcp, udp, unix, unixgram or http"
    };
    refuse(
        &[(
            "--protocol",
            options.protocol.is_some() && !transport.is_wire(),
            in_process,
        )],
        hint,
    )?;
    let is_http = transport == Transport::Http;
    let is_async = is_http
        || !transport.is_wire() && !plan.stores.is_empty() && plan.stores.iter().all(tsb_run::spec::Spec::is_async);
    let in_flight = "each write ends before the next one of its worker is sent";
    refuse(
        &[("--in-flight", options.in_flight.is_some() && !is_async, in_flight)],
        "it is for http, and for clients that answer later, those of servers and exec:, in process; --workers says \
         how many write at a time",
    )?;
    let is_shared = options.connections.is_some() && !is_http;
    let connections = ("--connections", is_shared, "only requests over http share connections");
    refuse(&[connections], "give --transport http, or more --workers")?;
    let stream = "only datagrams have it";
    let of_datagrams = [
        ("--sockets", options.sockets.is_some()),
        ("--datagram", options.datagram.is_some()),
        ("--receive-buffer", options.receive_buffer.is_some()),
    ];
    let of_datagrams = of_datagrams.map(|(flag, is_given)| (flag, is_given && !is_datagrams, stream));
    refuse(&of_datagrams, "give --transport udp or unixgram")?;
    let not_udp = transport != Transport::Udp;
    let of_udp = [
        ("--gso", options.gso.is_some() && not_udp, "only UDP has it"),
        ("--gro", options.gro.is_some() && not_udp, "only UDP has it"),
    ];
    refuse(&of_udp, "give --transport udp")?;
    let two_fleets = options.fleet_file.is_some() && options.workload.as_ref().is_some_and(|name| name != "kstat");
    let is_kept = |spec: &tsb_run::spec::Spec| !matches!(tsb_run::place::Place::of(spec), Ok(None));
    let append = (
        "--append",
        options.append == Some(true) && !plan.stores.iter().any(is_kept),
        "a store that keeps nothing beyond its process is always empty",
    );
    refuse(&[append], "give --store sqlite:FILE, or another that tsb stores lists")?;
    let fleet = ("--workload", two_fleets, "--fleet-file describes the fleet");
    refuse(&[fleet], "leave one of them out")?;
    let unused = options.query_workers.is_some() && plan.timed_streams().is_empty();
    refuse(
        &[("--query-workers", unused, "nothing is queried")],
        "give --queries 'q1@10/s'",
    )?;
    check_processes(options)
}

/// Refuses process ids that do not exist.
pub(super) fn check_processes(options: &RunOptions) -> Result<(), Failure> {
    match options.watch_pid.iter().find(|&&pid| Process::watch(pid).is_none()) {
        Some(pid) => Err(Failure::usage(format!("cannot watch process {pid}")).because_of("there is no such process")),
        None => Ok(()),
    }
}

/// Refuses flags of a run that contradict each other.
pub fn check_run(args: &RunArgs) -> Result<(), Failure> {
    let output = &args.output;
    let written = [
        ("--out", &output.out),
        ("--html", &output.html),
        ("--hdr-log", &output.hdr_log),
        ("--journal", &args.journal),
    ];
    let written = written.map(|(flag, path)| (flag, args.print_plan && path.is_some(), "--print-plan runs nothing"));
    refuse(&written, "leave one of them out")?;
    let nothing = "--print-plan runs nothing";
    let of_a_run = [
        ("--store-timeout", args.store_timeout.is_some(), nothing),
        ("--fail-if", !args.fail_if.is_empty(), nothing),
        ("--fail-unless", !args.fail_unless.is_empty(), nothing),
        ("--retry-noisy", args.retry_noisy.is_some(), nothing),
    ];
    let of_a_run = of_a_run.map(|(flag, is_given, why)| (flag, is_given && args.print_plan, why));
    refuse(&of_a_run, "leave one of them out")?;
    let is_shown = args.progress != Progress::Auto;
    let progress = ("--progress", output.quiet && is_shown, "--quiet shows no progress");
    refuse(&[progress], "leave one of them out")
}

/// Refuses to repeat a run whose place may not be emptied.
pub fn check_repeated(args: &RunArgs, plan: &Plan) -> Result<(), Failure> {
    let why = "a run is repeated in an empty place, and --append keeps what is there";
    let is_given = args.retry_noisy.is_some() && plan.append;
    refuse(&[("--retry-noisy", is_given, why)], "leave one of them out")
}

/// Refuses the flag whose counts `--scale` says.
pub fn check_scale(args: &RunArgs, vary: Vary) -> Result<(), Failure> {
    let options = &args.options;
    let counts = "--scale says the counts";
    let refused = match vary {
        Vary::Workers => ("--workers", options.workers.is_some(), counts),
        Vary::InFlight => ("--in-flight", options.in_flight.is_some(), counts),
    };
    refuse(&[refused], "leave it out")
}

/// Refuses flags of a run that have no effect in `tsb capacity`.
pub fn check_capacity(args: &RunArgs) -> Result<(), Failure> {
    let options = &args.options;
    let (many, steady, slo) = (
        "a search makes many runs, and reports the probes",
        "the search says how fast each probe sends",
        "--slo decides each probe",
    );
    let refused = [
        ("--schedule", options.schedule.is_some(), steady),
        (
            "--fleet-time",
            options.fleet_time.is_some(),
            "every probe takes the same real time",
        ),
        ("--append", options.append.is_some(), "each probe has a fresh place"),
        ("--label", !args.label.is_empty(), many),
        ("--journal", args.journal.is_some(), many),
        ("--print-plan", args.print_plan, many),
        ("--progress", args.progress != Progress::Auto, many),
        ("--expose", args.expose.is_some(), many),
        ("--hdr-log", args.output.hdr_log.is_some(), many),
        ("--format csv", args.output.format == Format::Csv, many),
        ("--fail-if", !args.fail_if.is_empty(), slo),
        ("--fail-unless", !args.fail_unless.is_empty(), slo),
        ("--retry-noisy", args.retry_noisy.is_some(), slo),
        (
            "--no-calibrate",
            options.no_calibrate.is_some(),
            "without the generator's ceiling the limit of the generator passes for that of the store",
        ),
    ];
    refuse(&refused, "leave it out; tsb run has it")
}

/// Refuses flags of a run that have no effect where several hosts share it.
#[cfg(feature = "hosts")]
pub fn check_shared(args: &RunArgs) -> Result<(), Failure> {
    let refused = [
        (
            "--journal",
            args.journal.is_some(),
            "each host keeps a journal: tsb join --journal FILE",
        ),
        (
            "--hdr-log",
            args.output.hdr_log.is_some(),
            "the leader has no intervals of single operations",
        ),
        (
            "--retry-noisy",
            args.retry_noisy.is_some(),
            "the hosts of tsb run take part in one run",
        ),
    ];
    refuse(&refused, "leave it out")
}

/// Refuses flags of a run that have no effect in `tsb emit`.
pub fn check_emit(args: &EmitArgs) -> Result<(), Failure> {
    let options = &args.run.options;
    let by_url = [
        ("--transport", options.transport.is_some(), "the URL of --to says it"),
        ("--protocol", options.protocol.is_some(), "the URL of --to says it"),
    ];
    refuse(&by_url, "write it as in --to graphite+tcp://127.0.0.1:2003")?;
    let no_store = "tsb emit sends to a server, and neither opens a store nor reads one back";
    let of_a_store = [
        ("--store", !options.store.is_empty(), no_store),
        ("--preload", options.preload.is_some(), no_store),
        ("--queries", options.queries.is_some(), no_store),
        ("--query-workers", options.query_workers.is_some(), no_store),
        ("--no-verify", options.no_verify.is_some(), no_store),
        ("--append", options.append.is_some(), no_store),
        ("--store-timeout", args.run.store_timeout.is_some(), no_store),
        ("--fail-if", !args.run.fail_if.is_empty(), no_store),
        ("--fail-unless", !args.run.fail_unless.is_empty(), no_store),
        ("--retry-noisy", args.run.retry_noisy.is_some(), no_store),
        (
            "--label",
            !args.run.label.is_empty(),
            "it is the name of a run of a store in a report",
        ),
        (
            "--no-calibrate",
            options.no_calibrate.is_some(),
            "tsb emit does not calibrate",
        ),
    ];
    refuse(&of_a_store, "tsb run drives a store and reads it back")?;
    let receiver = "it is an option of the receiving side";
    let of_the_receiver = [
        ("--gro", options.gro.is_some(), receiver),
        ("--receive-buffer", options.receive_buffer.is_some(), receiver),
    ];
    refuse(&of_the_receiver, "give it to tsb ingest, as in ?receive-buffer=8MiB")?;
    let watch = (
        "--watch-pid",
        !options.watch_pid.is_empty(),
        "tsb emit watches no other process",
    );
    refuse(&[watch], "tsb run watches processes")?;
    let twice = options.connections.is_some() && options.in_flight.is_none() && options.workers.is_some();
    refuse(
        &[("--workers", twice, "each connection has a thread of its own")],
        "give --connections alone",
    )?;
    let view = args.run.progress == Progress::Live;
    refuse(
        &[("--progress live", view, "tsb emit has no live view")],
        "leave it out",
    )?;
    check_run(&args.run)
}

/// Refuses outputs that `tsb ingest` does not have.
pub fn check_ingest(args: &IngestArgs) -> Result<(), Failure> {
    let OutputArgs { hdr_log, .. } = &args.output;
    let log = (
        "--hdr-log",
        hdr_log.is_some(),
        "a listener does not know when samples were due: it times nothing",
    );
    refuse(&[log], "tsb run and tsb emit write interval logs")
}
