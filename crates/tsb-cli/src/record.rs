//! `tsb record`: records values of this machine into a trace file.

use std::fs::OpenOptions;
use std::io::BufWriter;

use tsb_core::resource::Process;
use tsb_core::time::MonotonicClock;
use tsb_core::trace::{Processes, RecordOptions, SHORTEST_INTERVAL_NS, record};

use crate::args::{PROCESSES, RecordArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use tsb_run::units;

/// Runs the command.
pub fn command(args: &RecordArgs) -> Result<Exit, Failure> {
    if args.from != "proc" {
        return Err(Failure::usage(format!("cannot record from {}", args.from))
            .hint("the one source is proc: /proc of this machine"));
    }
    if !args.pid.is_empty() && args.processes != PROCESSES {
        return Err(Failure::usage("cannot use --processes here")
            .because_of("--pid names the processes")
            .hint("leave one of them out"));
    }
    if let Some(pid) = args.pid.iter().find(|&&pid| Process::watch(pid).is_none()) {
        return Err(Failure::usage(format!("cannot record process {pid}")).because_of("there is no such process"));
    }
    let options = options(args)?;
    let failure = || Failure::usage(format!("cannot record into {}", args.out.display()));
    let file = OpenOptions::new().write(true).create_new(true).open(&args.out);
    let file = file.map_err(|error| failure().because(&error).hint("a trace file is never overwritten"))?;
    let stop = interrupt::flag();
    if !args.quiet {
        crate::say::line(format_args!("recording into {}; Ctrl-C ends it", args.out.display()));
    }
    let recorded = record(&options, &MonotonicClock::new(), BufWriter::new(file), &stop);
    let summary = recorded.map_err(|error| failure().because(&error.writing(&args.out)))?;
    crate::say::line(format_args!(
        "{} series, {} samples, {} in {} ticks ({} missed, at most {} late)",
        units::count(summary.totals.series),
        units::count(summary.totals.samples),
        units::bytes(summary.totals.bytes as f64),
        units::count(summary.ticks),
        units::count(summary.missed_ticks),
        units::nanos(summary.lag_ns_max),
    ));
    if !summary.problems.is_empty() {
        crate::say::line(summary.problems);
    }
    Ok(Exit::Done)
}

fn options(args: &RecordArgs) -> Result<RecordOptions, Failure> {
    let duration = |flag: &str, text: &str| {
        let read = units::parse_duration(text);
        read.map_err(|why| Failure::usage(format!("cannot read --{flag} {text}")).because_of(why))
    };
    let interval_ns = duration("every", &args.every)?;
    if interval_ns < SHORTEST_INTERVAL_NS {
        return Err(Failure::usage("cannot record that often").because_of("--every is at least 10ms"));
    }
    Ok(RecordOptions {
        interval_ns,
        duration_ns: args
            .duration
            .as_deref()
            .map(|text| duration("duration", text))
            .transpose()?,
        processes: if args.pid.is_empty() {
            Processes::Top(args.processes)
        } else {
            Processes::Pids(args.pid.clone())
        },
        ..RecordOptions::default()
    })
}
