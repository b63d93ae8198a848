//! The samples of a canary: the value of each, and when it is written. Pure functions of series and
//! tick, so that a canary that starts again knows what an earlier one wrote.

use tsb_core::{SeriesKey, Timestamp};

use crate::draws::Draws;

/// Values are whole numbers below this: exact as 32-bit floats, with six significant digits, with any
/// number of decimals, and with a last bit of 0.
const VALUES: u64 = 1_000_000;
/// One in this many samples is written late.
const LATE_ONE_IN: u64 = 16;
/// The most ticks by which a sample is written late.
pub(super) const LATE_TICKS: i64 = 8;

/// The place of a sample in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamPlace {
    pub(super) tick: i64,
    pub(super) series: u32,
}

/// A stream of samples: each series has one per interval, at multiples of it since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    series: u32,
    interval_ns: i64,
    /// The most ticks by which a sample is written late; 0: none is.
    late_ticks: i64,
}

impl Stream {
    pub(super) fn new(series: u32, interval_ns: i64, late_ticks: i64) -> Self {
        Self {
            series,
            interval_ns: interval_ns.max(1),
            late_ticks: late_ticks.clamp(0, LATE_TICKS),
        }
    }

    pub(super) const fn series(&self) -> u32 {
        self.series
    }

    pub(super) const fn interval_ns(&self) -> i64 {
        self.interval_ns
    }

    /// The key of a series of the canary of this name.
    pub(super) fn key(name: &str, series: u32) -> SeriesKey {
        SeriesKey::with_labels("tsb_canary", [("canary", name), ("series", &series.to_string())])
    }

    pub(super) const fn time(&self, tick: i64) -> Timestamp {
        Timestamp(tick.saturating_mul(self.interval_ns))
    }

    /// The last tick at or before a time.
    pub(super) const fn tick_before(&self, at: Timestamp) -> i64 {
        at.0.div_euclid(self.interval_ns)
    }

    /// The tick of exactly this time.
    pub(super) const fn tick_at(&self, at: Timestamp) -> Option<i64> {
        match at.0.rem_euclid(self.interval_ns) {
            0 => Some(self.tick_before(at)),
            _ => None,
        }
    }

    /// The number of ticks that a time lasts, rounded up.
    pub(super) fn ticks_in(&self, ns: i64) -> i64 {
        ns.max(0).div_euclid(self.interval_ns) + i64::from(ns.max(0).rem_euclid(self.interval_ns) > 0)
    }

    pub(super) fn value(place: StreamPlace) -> f64 {
        draws(place, 0).below(VALUES) as f64
    }

    /// By how many ticks a sample is written late; most are not.
    fn delay(&self, place: StreamPlace) -> i64 {
        let mut draws = draws(place, 1);
        if self.late_ticks == 0 || draws.below(LATE_ONE_IN) > 0 {
            return 0;
        }
        1 + draws.below(self.late_ticks as u64) as i64
    }

    /// What is written at a tick: the late samples of earlier ticks from `first` on, then its own.
    pub(super) fn written_at(&self, tick: i64, first: i64) -> impl Iterator<Item = StreamPlace> + '_ {
        let ticks = (tick - self.late_ticks).max(first)..=tick;
        let places = ticks.flat_map(|tick| (0..self.series).map(move |series| StreamPlace { tick, series }));
        places.filter(move |&place| place.tick + self.delay(place) == tick)
    }
}

/// Random numbers of a sample, for one purpose.
fn draws(place: StreamPlace, purpose: u64) -> Draws {
    // The first draw of each seed would be a function of little more than the seed.
    let mut seed = Draws::new((u64::from(place.series) << 1) | purpose);
    Draws::new(seed.next() ^ place.tick as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_sample_is_written_once_and_some_are_late() {
        let stream = Stream::new(3, 10_000_000_000, LATE_TICKS);
        let mut times = BTreeMap::new();
        for tick in 100..1_200 {
            for place in stream.written_at(tick, 100) {
                assert_eq!(times.insert(place, tick), None, "{place:?}");
            }
        }
        let due = |place: &StreamPlace| place.tick < 1_200 - LATE_TICKS;
        assert_eq!(times.keys().filter(|place| due(place)).count(), 3 * 1_092);
        let late = times.iter().filter(|(place, tick)| place.tick < **tick).count();
        assert!((100..400).contains(&late), "{late}");
        assert!(times.iter().all(|(place, tick)| tick - place.tick <= LATE_TICKS));
        let punctual = Stream::new(3, 10_000_000_000, 0);
        assert!(punctual.written_at(500, 0).all(|place| place.tick == 500));
    }

    #[test]
    fn values_are_those_that_every_store_keeps() {
        let mut values: Vec<f64> = (0..1_000)
            .flat_map(|tick| (0..3).map(move |series| Stream::value(StreamPlace { tick, series })))
            .collect();
        assert!(
            values
                .iter()
                .all(|value| *value == f64::from(*value as f32) && value.to_bits() & 1 == 0)
        );
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        assert!(values.len() > 2_980, "{}", values.len());
    }

    #[test]
    fn times_and_ticks_are_the_same_thing() {
        let stream = Stream::new(1, 10_000_000_000, 0);
        assert_eq!(stream.tick_at(stream.time(-7)), Some(-7));
        assert_eq!(stream.tick_at(Timestamp(stream.time(9).0 + 1)), None);
        assert_eq!(stream.tick_before(Timestamp(stream.time(9).0 - 1)), 8);
        assert_eq!([0, 1, 10_000_000_000].map(|ns| stream.ticks_in(ns)), [0, 1, 1]);
    }
}
