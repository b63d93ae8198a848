//! The published figures beside the measured ones, and what the original got wrong.

use tsb_core::report::experiment::hm9000::{AsItWas, Hm9000Details};
use tsb_core::report::experiment::{Figure, Row};

use crate::units;

/// A store that is called fresh by then counts as fresh at 30 s: polls are a little more than a
/// second apart.
const ON_TIME_S: f64 = 32.0;

/// What the original got wrong, or did not measure.
pub const MISTAKES: [&str; 9] = [
    "fresh means that one key is 30 s old and another is there: nothing looks whether any app was written (here a \
     complete scan is held against the simulator)",
    "the timer starts with the first advertise, before any heartbeat was heard, so 30 s is a constant and no \
     measurement; below the break the figure has no resolution",
    "the tick sleeps for a second and then waits for two reads of the store: a slow store lowers the load that it is \
     measured with (here heartbeats are due at absolute times)",
    "the cache of instances changes before the store does, and hides a failed write for up to 20 s",
    "an instance whose DEA has no presence is deleted with all instances of its app, so a sync of more than 30 s \
     deletes and writes the same instances for ever",
    "ten apps are added every ten seconds, so the number of apps is not the one that is reported (here it is fixed)",
    "every heartbeat puts a counter while the bus waits: load of the benchmark's own",
    "identifiers and phases come from the wall clock, so no run can be repeated (here from a seed)",
    "one run, success read from scrolling text, state removed by hand between runs; no counts, no quantiles, no \
     intervals, and everything on one host with the store",
];

/// The published figures with those of the same kind that were measured here.
pub fn rows(details: &Hm9000Details) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(of_model(details));
    let real: Vec<&AsItWas> = details.as_it_was.iter().filter(|run| !run.is_virtual).collect();
    let mut stores: Vec<&str> = real.iter().map(|run| run.store.as_str()).collect();
    stores.dedup();
    for store in stores {
        let of_store: Vec<&AsItWas> = real.iter().copied().filter(|run| run.store == store).collect();
        let first = of_store.iter().find_map(|run| run.fresh_at_seconds);
        let why = "as it was, the smallest number of apps that became fresh: the first poll after a timer of 30 s";
        rows.push(Row::new(format!("{store}, called fresh"), one(first), "s", why).beside(30.179_737_838));
        rows.push(on_time(
            store,
            &of_store,
            "as it was; published for etcd of 2013 on an unstated machine",
        ));
    }
    for found in &details.breaks {
        let kept = one(found.kept.map(|apps| apps as f64));
        let why = match found.broke {
            Some(broke) => format!("corrected; at {} apps: {}", units::count(broke as u64), found.why),
            None => format!("corrected; {}", found.why),
        };
        rows.push(Row::new(
            format!("{}, apps kept fresh, every instance seen", found.store),
            kept,
            "apps",
            why,
        ));
    }
    rows
}

/// The runs in virtual time.
fn of_model(details: &Hm9000Details) -> Vec<Row> {
    let model: Vec<&AsItWas> = details.as_it_was.iter().filter(|run| run.is_virtual).collect();
    let Some(store) = model.first().map(|run| run.store.as_str()) else {
        return Vec::new();
    };
    let never_fresh = model.iter().filter(|run| run.fresh_at_seconds.is_none());
    let smallest = never_fresh.min_by_key(|run| run.apps);
    let why = match smallest.and_then(|run| run.polls.last()) {
        Some(last) => format!(
            "as it was, in virtual time, the smallest number tried that was never called fresh in {:.0} s",
            last.at_seconds
        ),
        None => "as it was, in virtual time; every number tried was called fresh at some time".to_owned(),
    };
    let never = Row::new(
        format!("{store}, apps never called fresh"),
        one(smallest.map(|run| run.apps as f64)),
        "apps",
        why,
    );
    let falsely = model.iter().map(|run| run.missing_max).max().unwrap_or_default();
    let why = "in virtual time, the largest number at a poll that said fresh; the document looked at none";
    vec![
        on_time(
            store,
            &model,
            "as it was, in virtual time; no finding: the rate of the model was chosen so that 30,000 apps are just in time",
        ),
        never.beside(100_000.0),
        Row::new(
            format!("{store}, instances missing while called fresh"),
            one(Some(falsely as f64)),
            "instances",
            why,
        ),
    ]
}

/// The largest number of apps that was called fresh at 30 s. There is no ratio to the published
/// one before a number was tried that was not.
fn on_time(store: &str, runs: &[&AsItWas], why: &str) -> Row {
    let is_on_time = |run: &&&AsItWas| run.fresh_at_seconds.is_some_and(|at| at <= ON_TIME_S);
    let largest = runs
        .iter()
        .filter(is_on_time)
        .map(|run| run.apps as f64)
        .reduce(f64::max);
    let has_broken = !runs.iter().all(|run| is_on_time(&run));
    let end = if has_broken {
        ""
    } else {
        ", and none was tried that was not"
    };
    let why = format!("{why}; the largest number tried that was called fresh within 32 s{end}");
    let row = Row::new(format!("{store}, apps called fresh at 30 s"), one(largest), "apps", why).beside(30_000.0);
    Row {
        ratio: row.ratio.filter(|_| has_broken),
        ..row
    }
}

fn one(value: Option<f64>) -> Option<Figure> {
    Figure::of(value.as_slice())
}
