//! The page of `tsb reproduce hm9000`: the story, for somebody who has not read the document.

mod outages;

use tsb_core::report::experiment::hm9000::{AsItWas, CurvePoint, Hm9000Details, Reproduction};
use tsb_core::report::experiment::{Figure, Row};
use tsb_run::units;

use super::frame::{begin_page, begin_story, end_page, mistakes};
use crate::render::html::chart::{Chart, Line, Mark, add_mark};
use crate::render::html::markup::Markup;
use crate::render::html::{PLOT_STYLE, STYLE};

const TITLE: &str = "How many apps can HM9000 keep fresh?";
/// The links to the sections.
const BAR: &str = "<header class=\"bar\"><nav aria-label=\"Sections\"><a href=\"#story\">Story</a><a href=\"#timer\">As it was</a><a href=\"#corrected\">Corrected</a><a href=\"#published\">Published</a><a href=\"#mistakes\">Mistakes</a></nav></header>\n";
const STORY: [&str; 4] = [
    "HM9000 was the health manager of Cloud Foundry. Hosts of apps (DEAs, with up to 100 apps each) report every ten seconds which instances they run. HM9000 keeps that in a store of keys, etcd, and must not act on a state that is old: so the store is called fresh only while news comes in.",
    "In 2013 its authors published how many apps etcd can keep fresh: 30,000 at once, up to 100,000 after a while, never beyond, and 20,000 in a cluster.",
    "What their program measured was a timer. A listener writes what it hears once per second; after a write that took less than a second it renews one key. If that key is 30 seconds old and another one is there, the store is fresh. Nothing looks whether any app was written.",
    "Here the experiment is repeated as it was, with the store read beside the timer; and then it is corrected: heartbeats are due at absolute times, each carries its second and lives for 30 seconds, and complete scans are held against the simulator.",
];

/// The whole page.
pub fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let mut page = begin_page(TITLE, &[PLOT_STYLE, "\n", STYLE], BAR);
    story(result, &mut page);
    as_it_was(&experiment.details, &mut page);
    corrected(result, &mut page);
    outages::section(result, &mut page);
    published(&experiment.rows, &mut page);
    mistakes("What the original got wrong", &experiment.mistakes, &mut page);
    let seed = Some(result.plan.asked.seed);
    end_page(&result.written, seed, result.took_seconds, page)
}

fn story(result: &Reproduction, page: &mut Markup) {
    let details = &result.experiment.details;
    begin_story(&STORY, page);
    let mut found: Vec<String> = Vec::new();
    if let Some(worst) = details.as_it_was.iter().max_by_key(|run| run.missing_max)
        && worst.missing_max > 0
    {
        found.push(format!(
            "{}the document's criterion called {} with {} apps fresh while {} instances were missing.",
            if worst.is_virtual {
                "In virtual time, "
            } else {
                "On a real store, "
            },
            worst.store,
            units::count(worst.apps as u64),
            units::count(worst.missing_max)
        ));
    }
    for store in &details.breaks {
        let count = |apps: usize| units::count(apps as u64);
        let kept = store.kept.map_or_else(
            || "does not keep the smallest number of apps fresh".to_owned(),
            |apps| format!("keeps {} apps fresh", count(apps)),
        );
        let end = match store.broke {
            Some(apps) => format!("; it breaks at {} apps: {}.", count(apps), store.why),
            None => ": the largest number that was tried.".to_owned(),
        };
        found.push(format!("{} {kept}{end}", store.store));
    }
    found.extend(
        details
            .failures
            .iter()
            .map(|failure| format!("Not measured: {failure}.")),
    );
    if result.experiment.is_quick {
        found.push("This is the quick version: few rounds, and runs shorter than the time to live.".to_owned());
    }
    if result.experiment.is_debug_build {
        found.push("The build is not optimized: stores in the process are slower.".to_owned());
    }
    if details.interrupted {
        found.push("Interrupted: not everything was measured.".to_owned());
    }
    page.list(&found);
    page.end_section();
}

fn as_it_was(details: &Hm9000Details, page: &mut Markup) {
    page.section(
        "timer",
        "As it was: the timer, and what was there",
        "Called fresh: the first poll that said so. Falsely: polls that said fresh although instances were missing, of those for which the store was read.",
    );
    let timer = lines(&details.as_it_was, |run| {
        let at = run.fresh_at_seconds?;
        Some((run.apps, at, run.missing_max == 0, format!("called fresh at {at:.1} s")))
    });
    Chart {
        caption: "Called fresh after",
        about: "By number of apps; red where instances were missing at such a poll. A number that was never called fresh has no mark.",
        lines: timer,
        is_log: false,
        show: |seconds| format!("{seconds:.0} s"),
    }
    .draw(page);
    let missing = lines(&details.as_it_was, |run| {
        run.fresh_at_seconds?;
        let about = format!("{} instances missing", units::count(run.missing_max));
        Some((run.apps, run.missing_max as f64, run.missing_max == 0, about))
    });
    Chart {
        caption: "Missing while called fresh",
        about: "The most instances that were missing or wrong at a poll that said fresh.",
        lines: missing,
        is_log: false,
        show: |count| units::count(count as u64),
    }
    .draw(page);
    let rows = details.as_it_was.iter().map(|run| {
        vec![
            units::count(run.apps as u64),
            run.store.clone(),
            run.fresh_at_seconds
                .map_or_else(|| "never".to_owned(), |at| format!("{at:.1} s")),
            format!("{} of {}", run.polls_falsely_fresh, run.polls_checked),
            units::count(run.missing_max),
            run.syncs_slow.to_string(),
            run.syncs_failed.to_string(),
        ]
    });
    let columns = [
        "apps",
        "store",
        "called fresh",
        "falsely",
        "missing",
        "slow syncs",
        "failed syncs",
    ];
    page.table("the timer", &columns, rows);
    if let Some(run) = details.as_it_was.iter().find(|run| !run.is_virtual) {
        page.raw("<details><summary>What the original prints</summary>\n<pre tabindex=\"0\">");
        page.text(&run.lines.join("\n"));
        page.raw("</pre>\n</details>\n");
    }
    page.end_section();
}

fn lines(runs: &[AsItWas], mark: impl Fn(&AsItWas) -> Option<(usize, f64, bool, String)>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for run in runs {
        let Some((apps, y, is_good, about)) = mark(run) else {
            continue;
        };
        let mark = Mark {
            x: apps as f64,
            y,
            interval: None,
            is_good,
            about: format!("{}, {} apps: {about}", run.store, units::count(apps as u64)),
        };
        add_mark(&mut lines, &run.store, mark);
    }
    lines
}

/// A figure of the corrected runs.
struct Shown {
    caption: &'static str,
    about: &'static str,
    of: fn(&CurvePoint) -> Option<Figure>,
    show: fn(f64) -> String,
}

const SHOWN: [Shown; 5] = [
    Shown {
        caption: "Every instance there after",
        about: "From the start to the first complete scan that found all; the last heartbeats are due after 9 s.",
        of: |point| point.fresh_at,
        show: |seconds| format!("{seconds:.1} s"),
    },
    Shown {
        caption: "Put, p90",
        about: "From when heartbeats were due until they were acknowledged.",
        of: |point| point.response_p90_ms,
        show: |ms| units::nanos((ms * 1e6) as u64),
    },
    Shown {
        caption: "Put, p99",
        about: "From when heartbeats were due until they were acknowledged.",
        of: |point| point.response_p99_ms,
        show: |ms| units::nanos((ms * 1e6) as u64),
    },
    Shown {
        caption: "Keys per second",
        about: "Acknowledged, until the last answer.",
        of: |point| point.keys_per_second,
        show: |rate| units::count(rate as u64),
    },
    Shown {
        caption: "CPU per million keys",
        about: "Of this process, and of the servers on this machine.",
        of: |point| point.cpu_seconds_per_million,
        show: |seconds| format!("{seconds:.1} s"),
    },
];

fn corrected(result: &Reproduction, page: &mut Markup) {
    let asked = &result.plan.asked;
    let about = format!(
        "Each mark is the mean of {} rounds of {} s in random order, with its 95 % interval; red where a round did not keep every instance fresh.",
        asked.rounds, asked.seconds
    );
    page.section("corrected", "Corrected: every instance, seen", &about);
    let curve = &result.experiment.details.curve;
    for shown in SHOWN {
        shown.draw(curve, page);
    }
    let rows = result.experiment.details.runs.iter().map(|run| {
        vec![
            units::count(run.apps as u64),
            run.store.clone(),
            (run.round + 1).to_string(),
            format!("{}, {} copies", run.durability, run.copies),
            run.fresh_at_seconds
                .map_or_else(|| "never".to_owned(), |at| format!("{at:.2} s")),
            run.lost.to_string(),
            units::count(run.keys_late),
            if run.is_kept {
                "kept".to_owned()
            } else {
                run.broke.join("; ")
            },
        ]
    });
    let columns = [
        "apps",
        "store",
        "round",
        "durability",
        "all there",
        "lost",
        "late keys",
        "result",
    ];
    page.table("all rounds", &columns, rows);
    page.end_section();
}

impl Shown {
    fn draw(&self, curve: &[CurvePoint], page: &mut Markup) {
        let mut lines = Vec::new();
        for point in curve {
            let Some(figure) = (self.of)(point) else { continue };
            let value = (self.show)(figure.mean);
            let mark = Mark {
                x: point.apps as f64,
                y: figure.mean,
                interval: figure.low.zip(figure.high),
                is_good: point.rounds_kept == point.rounds,
                about: format!("{}, {} apps: {value}", point.store, units::count(point.apps as u64)),
            };
            add_mark(&mut lines, &point.store, mark);
        }
        let chart = Chart {
            caption: self.caption,
            about: self.about,
            lines,
            is_log: true,
            show: self.show,
        };
        chart.draw(page);
    }
}

fn published(rows: &[Row], page: &mut Markup) {
    page.section(
        "published",
        "Published beside measured",
        "Etcd v2-rc1 in 2013, and this machine.",
    );
    let digits = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    let is_count = |row: &Row| row.unit != "s";
    let number = |row: &Row, value: Option<f64>| match value {
        Some(value) if is_count(row) => units::count(value as u64),
        _ => digits(value),
    };
    let interval = |row: &Row| match (row.low, row.high) {
        (Some(low), Some(high)) => format!(" ({low:.2} to {high:.2})"),
        _ => String::new(),
    };
    let rows = rows.iter().map(|row| {
        vec![
            row.what.clone(),
            number(row, row.published),
            number(row, row.measured) + &interval(row),
            row.unit.clone(),
            digits(row.ratio),
            row.why.clone(),
        ]
    });
    page.table(
        "published figures",
        &["what", "published", "measured", "unit", "ratio", "why"],
        rows,
    );
    page.end_section();
}

#[cfg(test)]
mod tests;
