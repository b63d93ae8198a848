//! What a canary knows of each sample within the time that it looks back: a ring of ticks, allocated
//! once.

use tsb_core::Durability;

use super::stream::StreamPlace;

/// What is known of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SampleState {
    /// It was not written.
    #[default]
    Unwritten,
    /// It may be there: its write was not answered, was refused, or was an earlier canary's.
    Uncertain,
    /// It has to be there.
    Expected,
    /// It had to be in an answer and was not.
    Missing,
    /// An answer had another value.
    Suspect,
    /// It is counted as lost, altered or invented.
    Lost,
    Altered,
    Invented,
}

/// A sample as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownSample {
    pub(super) state: SampleState,
    /// The level that it is known to have reached.
    pub(super) durability: Durability,
    pub(super) is_acknowledged: bool,
    /// An answer had it, with the right value.
    pub(super) was_seen: bool,
    pub(super) is_duplicated: bool,
    /// When it was written, or was first missing in an answer, in seconds since the canary was started.
    pub(super) since_s: u32,
}

impl KnownSample {
    /// Acknowledged, and nothing more is known of it.
    pub(super) const fn is_open(&self) -> bool {
        let is_settled = self.was_seen || matches!(self.state, SampleState::Lost | SampleState::Altered);
        self.is_acknowledged && !is_settled
    }

    /// Another answer has to settle what became of it.
    pub(super) const fn is_doubtful(&self) -> bool {
        matches!(self.state, SampleState::Missing | SampleState::Suspect)
    }
}

/// The samples of the last ticks.
#[derive(Debug)]
pub(super) struct SampleStates {
    series: usize,
    /// The newest tick that has a place, and the oldest.
    newest: i64,
    oldest: i64,
    ring: Vec<KnownSample>,
    /// How many of them are open, and how many doubtful.
    open: u64,
    doubtful: u64,
}

impl SampleStates {
    /// Room for `ticks` ticks (at least 1), of which the newest is `newest`; all samples are uncertain.
    pub(super) fn new(series: u32, ticks: usize, newest: i64) -> Self {
        let uncertain = KnownSample {
            state: SampleState::Uncertain,
            ..KnownSample::default()
        };
        let (series, ticks) = (series as usize, ticks.max(1));
        Self {
            series,
            newest,
            oldest: newest - (ticks as i64 - 1),
            ring: vec![uncertain; series * ticks],
            open: 0,
            doubtful: 0,
        }
    }

    /// The oldest tick that has a place.
    pub(super) const fn oldest(&self) -> i64 {
        self.oldest
    }

    /// The newest tick that has a place.
    pub(super) const fn newest(&self) -> i64 {
        self.newest
    }

    /// Makes room up to a tick, and lets go of the oldest. Returns how many open samples went.
    pub(super) fn advance(&mut self, newest: i64) -> u64 {
        let ticks = self.ticks();
        let open = self.open;
        // Past a whole ring, each place is made empty once.
        for tick in (self.newest + 1).max(newest - ticks + 1)..=newest {
            for series in 0..self.series as u32 {
                let at = self.index(StreamPlace { tick, series });
                self.replace(at, KnownSample::default());
            }
        }
        self.newest = self.newest.max(newest);
        self.oldest = self.oldest.max(newest - ticks + 1);
        open - self.open
    }

    /// A sample, if its tick has a place.
    pub(super) fn get(&self, place: StreamPlace) -> Option<KnownSample> {
        self.has(place).then(|| self.ring[self.index(place)])
    }

    /// Notes what is known of a sample, if its tick has a place.
    pub(super) fn put(&mut self, place: StreamPlace, known: KnownSample) {
        if self.has(place) {
            self.replace(self.index(place), known);
        }
    }

    fn has(&self, place: StreamPlace) -> bool {
        (self.oldest..=self.newest).contains(&place.tick) && (place.series as usize) < self.series
    }

    fn ticks(&self) -> i64 {
        (self.ring.len() / self.series.max(1)) as i64
    }

    fn index(&self, place: StreamPlace) -> usize {
        place.tick.rem_euclid(self.ticks()) as usize * self.series + place.series as usize
    }

    fn replace(&mut self, index: usize, known: KnownSample) {
        let before = std::mem::replace(&mut self.ring[index], known);
        self.open = self.open + u64::from(known.is_open()) - u64::from(before.is_open());
        self.doubtful = self.doubtful + u64::from(known.is_doubtful()) - u64::from(before.is_doubtful());
    }

    /// The first tick from `from` to `to` (excluded) with a doubtful sample.
    pub(super) fn doubtful(&self, from: i64, to: i64) -> Option<i64> {
        if self.doubtful == 0 {
            return None;
        }
        let mut ticks = from.max(self.oldest)..to.min(self.newest + 1);
        ticks.find(|&tick| self.of_tick(tick).iter().any(KnownSample::is_doubtful))
    }

    /// The samples of a tick that has a place.
    fn of_tick(&self, tick: i64) -> &[KnownSample] {
        let first = self.index(StreamPlace { tick, series: 0 });
        &self.ring[first..first + self.series]
    }

    /// Number of acknowledged samples that are not settled.
    pub(super) const fn open(&self) -> u64 {
        self.open
    }

    /// Number of samples that an answer had.
    pub(super) fn seen(&self) -> u64 {
        self.ring.iter().filter(|known| known.was_seen).count() as u64
    }

    /// The newest tick of a series that an answer had and that has to be there.
    pub(super) fn newest_seen(&self, series: u32) -> Option<i64> {
        let mut ticks = (self.oldest..=self.newest).rev();
        ticks.find(|&tick| {
            let known = self.of_tick(tick).get(series as usize);
            known.is_some_and(|known| known.was_seen && known.state == SampleState::Expected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(tick: i64, series: u32) -> StreamPlace {
        StreamPlace { tick, series }
    }

    /// Changes what is known of a sample.
    fn change(states: &mut SampleStates, place: StreamPlace, change: impl FnOnce(&mut KnownSample)) {
        let mut known = states.get(place).unwrap();
        change(&mut known);
        states.put(place, known);
    }

    #[test]
    fn a_ring_holds_the_last_ticks_and_says_what_it_let_go() {
        let mut states = SampleStates::new(2, 4, 10);
        let state = |states: &SampleStates, tick| states.get(place(tick, 1)).map(|known| known.state);
        assert_eq!((states.oldest(), states.newest()), (7, 10));
        assert_eq!(
            [6, 7, 11].map(|tick| state(&states, tick)),
            [None, Some(SampleState::Uncertain), None]
        );
        change(&mut states, place(8, 1), |known| known.is_acknowledged = true);
        change(&mut states, place(9, 0), |known| {
            (known.is_acknowledged, known.was_seen) = (true, true);
        });
        assert_eq!((states.open(), states.seen()), (1, 1));
        assert_eq!((states.advance(11), states.open()), (0, 1));
        assert_eq!(state(&states, 11), Some(SampleState::Unwritten));
        assert_eq!((states.advance(13), states.open()), (1, 0));
        assert_eq!((states.oldest(), states.newest()), (10, 13));
        // A stop of longer than the ring.
        change(&mut states, place(13, 0), |known| known.is_acknowledged = true);
        assert_eq!(states.advance(1_000), 1);
        assert_eq!((states.oldest(), states.newest()), (997, 1_000));
        assert!((997..=1_000).all(|tick| state(&states, tick) == Some(SampleState::Unwritten)));
        // A clock that was put back.
        assert_eq!((states.advance(900), states.newest()), (0, 1_000));
    }

    #[test]
    fn doubtful_and_newest_samples_are_found() {
        let mut states = SampleStates::new(2, 8, 8);
        assert_eq!((states.doubtful(0, 9), states.newest_seen(1)), (None, None));
        change(&mut states, place(5, 1), |known| known.state = SampleState::Missing);
        assert_eq!(
            [(0, 9), (6, 9), (0, 5)].map(|(from, to)| states.doubtful(from, to)),
            [Some(5), None, None]
        );
        for tick in [3, 6] {
            change(&mut states, place(tick, 1), |known| {
                (known.state, known.was_seen) = (SampleState::Expected, true);
            });
        }
        assert_eq!([0, 1].map(|series| states.newest_seen(series)), [None, Some(6)]);
    }
}
