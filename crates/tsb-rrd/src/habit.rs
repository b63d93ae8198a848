//! The policy for writing to open files: through a mapping or with write calls, chosen from
//! measured cost.
//!
//! If a page is already waiting for writeback, a further change through a mapping is nearly free,
//! while each write call costs a system call. If a page has been written back since its last
//! change, changing it through a mapping costs a page fault, which is more than a call. Which case
//! applies depends on how often files are updated and synced, so one pass in [`SAMPLE`] is
//! measured.

/// One pass in this many is measured, or tries the mapping.
const SAMPLE: u32 = 64;
/// Number of consecutive measurements that must agree before the method changes.
const ENOUGH: u32 = 4;

/// The method for the next passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habit {
    maps: bool,
    passes: u32,
    /// Number of consecutive measurements in favour of the other method.
    against: u32,
}

/// How a pass writes its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// One write call per place.
    Calls,
    /// Through the mapping.
    Mapping {
        /// Whether page faults are counted for [`Habit::saw`].
        is_watched: bool,
    },
}

impl Habit {
    /// A policy that currently prefers the mapping.
    #[cfg(test)]
    pub(crate) fn mapping() -> Self {
        Self {
            maps: true,
            ..Self::default()
        }
    }

    /// The method of the next pass over a file. `was_mapped`: whether the file's last pass wrote
    /// through its mapping.
    pub(crate) fn route(&mut self, was_mapped: bool) -> Route {
        self.passes = self.passes.wrapping_add(1);
        let is_sample = self.passes.is_multiple_of(SAMPLE);
        match (self.maps, was_mapped) {
            (true, _) => Route::Mapping {
                is_watched: was_mapped && is_sample,
            },
            // The mapping was tried: only its second use shows the steady cost.
            (false, true) => Route::Mapping { is_watched: true },
            (false, false) if is_sample => Route::Mapping { is_watched: false },
            (false, false) => Route::Calls,
        }
    }

    /// Whether the next pass over a file written by `route` is to be measured.
    pub(crate) fn goes_on(&self, route: Route) -> bool {
        self.maps || route == Route::Mapping { is_watched: false }
    }

    /// Records the page faults of a measured pass. One fault may be a row that enters its next
    /// page.
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
