//! Samples that a place held before a run: the run is refused, unless the plan says to append. A run that
//! appends
//! judges only its own samples, which are those from its start on.

use tsb_core::report::EarlierSamples;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Capabilities, Exactness, Store};

use super::run_context::RunContext;
use crate::error::Error;
use crate::place::{EarlierRun, EarlierRunState, Place, goes_on};
use crate::units;

/// Series that are asked for their newest sample at a time.
const SERIES_PER_QUESTION: usize = 4_096;

/// What a place held before a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    samples: Option<u64>,
    series: Option<u64>,
    /// Timestamps within one multiple of this many nanoseconds may share a slot or a stored time.
    granularity_ns: i64,
    /// The run that left them, if it did not end in order.
    left_by: Option<EarlierRun>,
}

impl Held {
    /// How much it is, as words.
    pub(super) fn words(&self) -> String {
        match (self.samples, self.series) {
            (Some(samples), _) => format!("{} samples", units::count(samples)),
            (None, series) => format!("{} series", units::count(series.unwrap_or(0))),
        }
    }

    /// The first timestamp that is of this run and not of earlier ones.
    pub(super) fn since(&self, base: Timestamp) -> Timestamp {
        Timestamp(base.0.div_euclid(self.granularity_ns) * self.granularity_ns)
    }

    /// The same for a report.
    pub(super) fn report(&self, base: Timestamp) -> EarlierSamples {
        EarlierSamples::new(self.samples, self.series, self.since(base).0)
    }

    /// A note on an earlier run that did not end in order.
    pub(super) fn note(&self) -> String {
        let left_by = self.left_by.as_ref().map_or(String::new(), |run| format!("; {run}"));
        format!(
            "the place held {} before this run{left_by}: sizes and bytes per sample are not known of this run alone, \
             and are left out",
            self.words()
        )
    }
}

/// The place of a run; `None` for a store that keeps nothing, or that the caller has opened.
pub(crate) fn place_of(context: &RunContext) -> Result<Option<Place>, Error> {
    context.plan.stores.first().map_or(Ok(None), Place::of)
}

/// Finds what a store holds that was just opened, and refuses it unless the plan appends. Writes
/// nothing.
///
/// # Errors
/// [`Error::Plan`] for a place that is not empty, or in which another run goes on.
pub(crate) fn check(context: &RunContext, store: &dyn Store, place: Option<&Place>) -> Result<(), Error> {
    let spec = context.plan.stores.first();
    let drops = spec.is_some_and(|spec| spec.option("drop") == Some("1"));
    if context.plan.append && drops {
        return Err(Error::plan(format!("cannot append to {store}"))
            .because_of("its option drop=1 removes what is there")
            .hint("leave one of them out"));
    }
    let capabilities = store.capabilities();
    let samples = Some(store.stats().samples).filter(|samples| *samples > 0);
    let series = match spec {
        Some(spec) if samples.is_none() && !counts_samples(&capabilities) => listed(spec)?,
        _ => None,
    };
    if samples.is_none() && series.is_none() {
        return Ok(());
    }
    keep(context, store, place, (samples, series))
}

/// Whether a store that was just opened says how many samples it holds.
const fn counts_samples(capabilities: &Capabilities) -> bool {
    capabilities.counts_samples && !matches!(capabilities.exactness, Exactness::Consolidated(_) | Exactness::Slots(_))
}

/// The number of series that a store lists; `None` if there is none, or it cannot list them.
fn listed(spec: &crate::spec::Spec) -> Result<Option<u64>, Error> {
    match spec.series() {
        Ok(series) => Ok(series.map(|series| series.len() as u64).filter(|series| *series > 0)),
        // What cannot be listed is asked once the series are defined.
        Err(tsb_stores::Error::Unsupported { .. } | tsb_stores::Error::Spec { .. }) => Ok(None),
        Err(error) => Err(Error::opening(spec, &error)),
    }
}

/// Checks the series of this run once they are defined: those with samples make a place that is
/// not empty too, and none may have a sample from the start of this run on.
///
/// # Errors
/// [`Error::Plan`] for a place that is not empty, and where times would collide.
pub(crate) fn check_defined(context: &RunContext, store: &dyn Store, place: Option<&Place>) -> Result<(), Error> {
    let capabilities = store.capabilities();
    if !capabilities.query || context.held.get().is_none() && counts_samples(&capabilities) {
        return Ok(());
    }
    let (series, newest) = newest(context, store)
        .map_err(|error| Error::calling(format!("cannot ask {store} for its newest samples"), &error))?;
    if series > 0 && context.held.get().is_none() {
        keep(context, store, place, (None, Some(series)))?;
    }
    let since = context.held.get().map(|held| held.since(context.clock.wall()));
    match since.zip(newest) {
        Some((since, newest)) if newest >= since => Err(collision(store, newest, since)),
        _ => Ok(()),
    }
}

/// Remembers what a place holds, or refuses it.
fn keep(
    context: &RunContext,
    store: &dyn Store,
    place: Option<&Place>,
    (samples, series): (Option<u64>, Option<u64>),
) -> Result<(), Error> {
    let capabilities = store.capabilities();
    let slot_ns = match capabilities.exactness {
        Exactness::OnePerSlot(slot_ns) => slot_ns,
        _ => 1,
    };
    let left_by = place.map_or(Ok(None), Place::earlier_run)?;
    let is_busy = left_by.as_ref().is_some_and(|run| run.state == EarlierRunState::GoesOn);
    if let Some(place) = place.filter(|_| is_busy) {
        return Err(goes_on(place));
    }
    let held = Held {
        samples,
        series,
        granularity_ns: capabilities.resolution_ns.max(slot_ns).max(1),
        left_by,
    };
    if !context.plan.append {
        return Err(refusal(store, &held, place));
    }
    let _ = context.held.set(held);
    Ok(())
}

fn refusal(store: &dyn Store, held: &Held, place: Option<&Place>) -> Error {
    let refused = Error::plan(format!("cannot run into {store}"));
    let refused = match &held.left_by {
        Some(run) => refused.because_of(format!("it already holds {}; {run}", held.words())),
        None => refused.because_of(format!("it already holds {}", held.words())),
    };
    let command = place.and_then(Place::remove_command);
    refused.hint(match command {
        Some(command) => {
            format!("give another path, go on there with --append, or remove all that it holds: {command}")
        }
        None if place.is_some() => "give another prefix, or go on there with --append".to_owned(),
        None => "a run fills an empty store; give another one, or append to it".to_owned(),
    })
}

fn collision(store: &dyn Store, newest: Timestamp, since: Timestamp) -> Error {
    Error::plan(format!("cannot append to {store}"))
        .because_of(format!(
            "it holds a sample of {newest} already, and this run would begin at {since} (seconds since 1970): samples \
             of both would have the same times"
        ))
        .hint("a fleet that ran faster than real time is ahead of it: wait until then, or give another path")
}

/// The number of this run's series that have samples, and the newest of them.
fn newest(context: &RunContext, store: &dyn Store) -> tsb_stores::Result<(u64, Option<Timestamp>)> {
    let ids: Vec<SeriesId> = (0..context.workload.catalog().len() as u32).map(SeriesId).collect();
    let (mut series, mut newest) = (0, None);
    for ids in ids.chunks(SERIES_PER_QUESTION) {
        let (mut visible, mut accepted) = (vec![None; ids.len()], vec![None; ids.len()]);
        store.newest(ids, &mut visible)?;
        store.newest_accepted(ids, &mut accepted)?;
        for at in visible.into_iter().zip(accepted).map(|(one, other)| one.max(other)) {
            series += u64::from(at.is_some());
            newest = newest.max(at);
        }
    }
    Ok((series, newest))
}
