//! Formats the outages.

use std::fmt::Write;

use tsb_core::report::experiment::hm9000::{Outage, OutageRun, Reproduction};
use tsb_run::units;

use crate::render::outages::outages_in_short;

/// Nothing if none were asked for.
pub(super) fn outages(out: &mut String, result: &Reproduction) {
    let Some(asked) = &result.plan.asked.outage else {
        return;
    };
    let _ = writeln!(
        out,
        "\nOutages: {} times, 20 to 30 s after the one before, by: {}",
        asked.count, asked.command
    );
    for run in &result.experiment.details.outage_runs {
        of_store(out, run);
    }
    let _ = writeln!(
        out,
        "took: the command. failed: keys due from its begin to the next outage that were not acknowledged; none is put \
         again before its next heartbeat. silence: the longest time without an acknowledgement, about 1 s where \
         nothing happens. recovered: from the begin of the command until the newest heartbeat of every app that had \
         been due for a second was acknowledged; 0 where none was overdue. not fresh: instances missing, wrong or \
         older than 30 s in the worst scan. lost: acknowledged instances that a scan did not find."
    );
}

fn of_store(out: &mut String, run: &OutageRun) {
    let _ = writeln!(
        out,
        "\n{}, {} apps, {} on {} machines, {:.0} s; acknowledged {} of {} keys",
        run.run.store,
        units::count(run.run.apps as u64),
        run.run.durability,
        run.run.copies,
        run.run.seconds,
        units::count(run.run.keys_acknowledged),
        units::count(run.run.keys_due),
    );
    let _ = writeln!(
        out,
        "{:>7}  {:>8}  {:>8}  {:>9}  {:>10}  {:>12}  {:>9}  {:>6}",
        "outage", "at s", "took s", "failed", "silence s", "recovered s", "not fresh", "lost"
    );
    for (number, outage) in (1..).zip(&run.outages) {
        line(out, number, outage);
    }
    let _ = writeln!(out, "{}", outages_in_short(run));
}

fn line(out: &mut String, number: u32, outage: &Outage) {
    let recovered = outage
        .recovered_after_seconds
        .map_or_else(|| "not".to_owned(), |seconds| format!("{seconds:.2}"));
    let not_fresh = if outage.scans == 0 {
        "-".to_owned()
    } else {
        units::count(outage.not_fresh)
    };
    let _ = writeln!(
        out,
        "{number:>7}  {:>8.1}  {:>8.2}  {:>9}  {:>10.2}  {recovered:>12}  {not_fresh:>9}  {:>6}",
        outage.at_seconds,
        outage.took_seconds,
        units::count(outage.keys_failed),
        outage.silence_seconds,
        outage.lost,
    );
}
