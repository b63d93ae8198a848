//! The section about outages.

use tsb_core::report::experiment::hm9000::Reproduction;
use tsb_run::units;

use crate::render::html::markup::Markup;
use crate::render::outages::outages_in_short;

/// Nothing if none were asked for.
pub(super) fn section(result: &Reproduction, page: &mut Markup) {
    let Some(asked) = &result.plan.asked.outage else {
        return;
    };
    let about = format!(
        "Each store is disturbed {} times while its heartbeats are due, 20 to 30 s after the time before, by: {}. It has recovered when the newest heartbeat of every app that had been due for a second was acknowledged; a heartbeat whose put failed is not put again before the next one, ten seconds later.",
        asked.count, asked.command
    );
    page.section("outages", "Outages: how long until the news is in again", &about);
    let runs = &result.experiment.details.outage_runs;
    page.list(&runs.iter().map(outages_in_short).collect::<Vec<_>>());
    let rows = runs.iter().flat_map(|run| {
        (1..).zip(&run.outages).map(|(number, outage): (u32, _)| {
            vec![
                run.run.store.clone(),
                units::count(run.run.apps as u64),
                number.to_string(),
                format!("{:.1} s", outage.at_seconds),
                format!("{:.2} s", outage.took_seconds),
                units::count(outage.keys_failed),
                format!("{:.2} s", outage.silence_seconds),
                outage
                    .recovered_after_seconds
                    .map_or_else(|| "not before the next".to_owned(), |seconds| format!("{seconds:.2} s")),
                units::count(outage.not_fresh),
                outage.lost.to_string(),
            ]
        })
    });
    let columns = [
        "store",
        "apps",
        "outage",
        "at",
        "command took",
        "keys failed",
        "longest silence",
        "recovered after",
        "not fresh in a scan",
        "lost",
    ];
    page.table("all outages", &columns, rows);
    page.end_section();
}
