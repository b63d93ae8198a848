//! By which way bytes get into kept files, learned from what it has cost.
//!
//! A page that waits to be written out takes further changes through a mapping for nothing,
//! and a call for each. A page that has been written out since its last change costs a fault
//! when it is changed through a mapping, which is more than a call. Which of them pages are
//! depends on how often files are updated and synced, so a pass in so many is watched.

/// One pass of so many is watched, or tries the mapping.
const SAMPLE: u32 = 64;
/// So many watched passes in turn have to say the same before the way changes.
const ENOUGH: u32 = 4;

/// The way of the next passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habit {
    maps: bool,
    passes: u32,
    /// Watched passes in turn that spoke for the other way.
    against: u32,
}

/// How a pass writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A call for each place.
    Calls,
    /// Through the mapping.
    Mapping {
        /// Whether its faults are counted, for [`Habit::saw`].
        is_watched: bool,
    },
}

impl Habit {
    /// One that has found pages waiting to be written out.
    #[cfg(test)]
    pub(crate) fn mapping() -> Self {
        Self {
            maps: true,
            ..Self::default()
        }
    }

    /// For the next pass, over a file that was written through its mapping the last time or not.
    pub(crate) fn route(&mut self, was_mapped: bool) -> Route {
        self.passes = self.passes.wrapping_add(1);
        let is_sample = self.passes.is_multiple_of(SAMPLE);
        match (self.maps, was_mapped) {
            (true, _) => Route::Mapping {
                is_watched: was_mapped && is_sample,
            },
            // Was tried: what it costs the second time is what it would cost always.
            (false, true) => Route::Mapping { is_watched: true },
            (false, false) if is_sample => Route::Mapping { is_watched: false },
            (false, false) => Route::Calls,
        }
    }

    /// Whether the next pass over a file that was written so is to be watched.
    pub(crate) fn goes_on(&self, route: Route) -> bool {
        self.maps || route == Route::Mapping { is_watched: false }
    }

    /// What a watched pass has cost, in faults. One may be a row's step into its next page.
    pub(crate) fn saw(&mut self, faults: u64) {
        let was_cheap = faults <= 1;
        self.against = if was_cheap == self.maps { 0 } else { self.against + 1 };
        if self.against >= ENOUGH {
            (self.maps, self.against) = (!self.maps, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes over `files` in turn, of which a page faults if it is clean: the share of them
    /// that wrote through the mapping.
    fn share(habit: &mut Habit, was_mapped: &mut [bool], rounds: usize, is_clean: bool) -> f64 {
        let mut mapped = 0;
        for _ in 0..rounds {
            for was in was_mapped.iter_mut() {
                let route = habit.route(*was);
                if route == (Route::Mapping { is_watched: true }) {
                    habit.saw(if is_clean { 3 } else { 0 });
                }
                *was = habit.goes_on(route);
                mapped += usize::from(route != Route::Calls);
            }
        }
        mapped as f64 / (rounds * was_mapped.len()) as f64
    }

    #[test]
    fn it_follows_what_pages_are_like() {
        for files in [1, 5, 100, 1_000, 10_001] {
            let (mut habit, mut was_mapped) = (Habit::default(), vec![false; files]);
            let rounds = 6_000 / files + 2;
            let mut settled = |is_clean: bool| {
                share(&mut habit, &mut was_mapped, rounds, is_clean);
                share(&mut habit, &mut was_mapped, rounds, is_clean)
            };
            assert!(settled(true) < 0.04, "{files}");
            assert!(settled(false) > 0.96, "{files}");
            assert!(settled(true) < 0.04, "{files}");
        }
    }
}
