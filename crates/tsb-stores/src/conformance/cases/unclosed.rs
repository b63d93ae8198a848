//! Clauses 5, 8 and 10 for stores that were not closed: write, flush or not, then drop the value,
//! kill its process or cut the power, reopen the place, and check.

use tsb_core::{Durability, SeriesId};

use super::tick_writer::{SERIES, TickWriter};
use super::{Case, CheckResult, of};
use crate::conformance::failure::{ensure, equal};
use crate::conformance::rng::Rng;
use crate::conformance::subject::{definitions, reads};
use crate::conformance::{CheckOutcome, Context, kill};
use crate::store::{Capabilities, Scope, TimeRange};

pub(super) const CASES: &[Case] = &[
    of("c5_what_durable_covers_survives_a_drop", outlives, durable_survives),
    of("c8_what_was_flushed_survives_a_drop", flushes, flushed_survives),
    of(
        "c8_a_flush_of_some_series_survives_a_drop",
        flushes,
        flush_of_some_survives,
    ),
    of("c8_what_was_synced_survives_a_power_cut", syncs, synced_survives_a_cut),
    of(
        "c10_close_releases_the_place_while_the_value_lives",
        outlives,
        close_releases,
    ),
    of("c10_goes_on_after_one_drop_after_another", outlives, goes_on),
    of("c10_what_was_durable_survives_a_kill", outlives, kill::durable_survives),
    of(
        "c10_statistics_tell_this_life_from_the_place",
        |c| reads(c) && c.persistent && c.retention_ns.is_none() && c.counts_samples,
        statistics_of_two_lives,
    ),
];

/// The levels that survive a process, from the lowest up.
const OUTLIVING: [Durability; 2] = [Durability::Buffered, Durability::Synced];

/// Whether these checks can read the store's samples after a reopening.
pub(in crate::conformance) fn outlives(c: &Capabilities) -> bool {
    c.persistent && (reads(c) || super::consolidated::consolidates(c))
}

fn flushes(c: &Capabilities) -> bool {
    outlives(c) && c.reaches >= Durability::Buffered
}

fn syncs(c: &Capabilities) -> bool {
    outlives(c) && c.reaches >= Durability::Synced
}

fn durable_survives(context: &Context) -> CheckResult {
    for writes in [1, 2, 5, 16, 43] {
        let place = context.fixture.place()?;
        let mut writer = TickWriter::open(&*place)?;
        for _ in 0..writes {
            writer.write()?;
        }
        // Ask after the writes: a store that commits by the clock may have made progress.
        let covered = OUTLIVING.map(|level| writer.covered(level));
        let left = writer.drop_unclosed();
        for (level, ticks) in OUTLIVING.into_iter().zip(covered) {
            left.clone()
                .reopen(&*place, &[ticks; SERIES])
                .map_err(|what| format!("durable({level}) covered {ticks} of {writes} writes: {what}"))?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn flushed_survives(context: &Context) -> CheckResult {
    for level in OUTLIVING
        .into_iter()
        .filter(|&level| level <= context.capabilities.reaches)
    {
        for behind in [0, 3] {
            let place = context.fixture.place()?;
            let mut writer = TickWriter::open(&*place)?;
            for _ in 0..7 {
                writer.write()?;
            }
            writer.store.flush(Scope::All, level)?;
            for _ in 0..behind {
                writer.write()?;
            }
            writer
                .drop_unclosed()
                .reopen(&*place, &[7; SERIES])
                .map_err(|what| format!("7 writes, flush({level}), {behind} more, dropped without close: {what}"))?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn flush_of_some_survives(context: &Context) -> CheckResult {
    for level in OUTLIVING
        .into_iter()
        .filter(|&level| level <= context.capabilities.reaches)
    {
        for flushed in [&[1_u32][..], &[2, 0], &[0, 1, 2]] {
            let place = context.fixture.place()?;
            let mut writer = TickWriter::open(&*place)?;
            for _ in 0..6 {
                writer.write()?;
            }
            let ids: Vec<SeriesId> = flushed.iter().map(|&id| SeriesId(id)).collect();
            writer.store.flush(Scope::Series(&ids), level)?;
            let mut ticks = [0; SERIES];
            for &id in flushed {
                ticks[id as usize] = 6;
            }
            writer
                .drop_unclosed()
                .reopen(&*place, &ticks)
                .map_err(|what| format!("flush({level}) of series {flushed:?}, dropped without close: {what}"))?;
        }
    }
    Ok(CheckOutcome::Holds)
}

fn synced_survives_a_cut(context: &Context) -> CheckResult {
    for seed in 0..12 {
        let Some(place) = context.fixture.lossy()? else {
            return Ok(CheckOutcome::NotShown(
                "the fixture has no medium that loses what was not synced",
            ));
        };
        let mut rng = Rng::new(seed);
        let mut writer = TickWriter::open(&*place)?;
        let writes = 1 + rng.below(60);
        for _ in 0..writes {
            writer.write()?;
            if rng.below(7) == 0 {
                writer.store.flush(Scope::All, Durability::Synced)?;
                let synced = writer.covered(Durability::Synced);
                equal("writes covered by a flush", &synced, &writer.ticks())?;
            }
        }
        let synced = writer.covered(Durability::Synced);
        // The image is taken while the store is open; what the store does afterwards is not in
        // it.
        let after = place.after_power_cut(seed)?;
        let left = writer.drop_unclosed();
        left.reopen(&*after, &[synced; SERIES])
            .map_err(|what| format!("power cut {seed} after {writes} writes, of which {synced} were synced: {what}"))?;
    }
    Ok(CheckOutcome::Holds)
}

fn close_releases(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let mut writer = TickWriter::open(&*place)?;
    for _ in 0..4 {
        writer.write()?;
    }
    writer.store.close()?;
    // The closed value still exists while another one has the place open.
    let mut second = TickWriter::after(&*place, writer.written())?;
    second.write()?;
    drop(writer);
    second.write()?;
    second.store.flush(Scope::All, context.capabilities.reaches)?;
    let ticks = second.ticks();
    second.store.close()?;
    second
        .drop_unclosed()
        .reopen(&*place, &[ticks; SERIES])
        .map_err(|what| format!("opened beside the closed value, which was dropped then: {what}"))?;
    Ok(CheckOutcome::Holds)
}

fn goes_on(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let mut writer = TickWriter::open(&*place)?;
    for round in 0..6 {
        for _ in 0..=round {
            writer.write()?;
        }
        if round % 2 == 0 {
            writer.store.flush(Scope::All, context.capabilities.reaches)?;
        }
        let covered = writer.covered(context.capabilities.reaches.min(Durability::Synced));
        let survives = context.capabilities.reaches >= Durability::Buffered;
        let left = writer.drop_unclosed();
        writer = left
            .reopen(&*place, &[if survives { covered } else { 0 }; SERIES])
            .map_err(|what| format!("drop {round}: {what}"))?;
    }
    Ok(CheckOutcome::Holds)
}

fn statistics_of_two_lives(context: &Context) -> CheckResult {
    let mut subject = context.subject(3)?;
    for tick in 0..9 {
        let _ = subject.tick(0, context.at(tick), &super::tick_values(0, 3, tick))?;
    }
    let held = subject.store.stats().samples;
    subject.store.close()?;
    let again = subject.open_again()?;
    let stats = again.stats();
    let counts = (stats.series, stats.samples, stats.accepted);
    equal(
        "(series, samples, accepted) with nothing defined",
        &counts,
        &(0, held, 0),
    )?;
    equal(
        "(superseded, expired) with nothing defined",
        &(stats.superseded, stats.expired),
        &(0, 0),
    )?;
    again.define(&definitions([1]))?;
    let stats = again.stats();
    let counts = (stats.series, stats.samples, stats.accepted);
    equal(
        "(series, samples, accepted) with one of three keys defined",
        &counts,
        &(1, held, 0),
    )?;
    let rows = {
        let mut rows = 0;
        let query = crate::store::Query {
            series: &[SeriesId(1)],
            range: TimeRange::ALL,
            resample: None,
        };
        again.query(&query, &mut |_, times, _| {
            rows += times.len();
            std::ops::ControlFlow::Continue(())
        })?;
        rows
    };
    ensure(rows > 0, || "the key that was defined again has no rows".to_owned())?;
    again.close()?;
    Ok(CheckOutcome::Holds)
}
