//! Progress: when fleet time reached which value, for runs whose pace is not that of the fleet.

/// Maximum number of points; when it is reached, every other point is dropped.
const POINTS_MAX: usize = 1 << 16;
/// Initial distance between points, in nanoseconds of wall time.
const STEP_NS: u64 = 1_000_000;

/// Fleet times with the wall times at which they were due, recorded during a run, with linear
/// interpolation between points.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    // Invariant: ascending in both; not empty if there is a last.
    points: Vec<(u64, u64)>,
    // The newest pair, which becomes a point when it is far enough from the previous one.
    last: Option<(u64, u64)>,
    // How many times every other point was dropped.
    thinned: u32,
}

impl Progress {
    /// Records that fleet time `fleet_ns` was due at `wall_ns`, both since the start. A fleet time
    /// that does not advance is ignored: what counts is when it was first reached.
    pub fn note(&mut self, fleet_ns: u64, wall_ns: u64) {
        let Some(last) = self.last else {
            self.points.push((fleet_ns, wall_ns));
            self.last = Some((fleet_ns, wall_ns));
            return;
        };
        if fleet_ns <= last.0 || wall_ns < last.1 {
            return;
        }
        let kept = self.points.last().map_or(0, |(_, wall)| *wall);
        if last.1.saturating_sub(kept) >= STEP_NS << self.thinned {
            if self.points.len() == POINTS_MAX {
                let mut index = 0;
                self.points.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.thinned += 1;
            }
            self.points.push(last);
        }
        self.last = Some((fleet_ns, wall_ns));
    }

    /// The newest fleet time; `None` before the first.
    pub fn fleet_ns(&self) -> Option<u64> {
        self.last.map(|(fleet, _)| fleet)
    }

    /// When a fleet time was due. Values beyond the newest or before the first point are clamped
    /// to it.
    pub fn wall_ns(&self, fleet_ns: u64) -> u64 {
        let (Some(&first), Some(last)) = (self.points.first(), self.last) else {
            return 0;
        };
        if fleet_ns <= first.0 || fleet_ns >= last.0 {
            return if fleet_ns <= first.0 { first.1 } else { last.1 };
        }
        let behind = self.points.partition_point(|(fleet, _)| *fleet <= fleet_ns);
        let from = self.points[behind.saturating_sub(1)];
        let to = self.points.get(behind).copied().unwrap_or(last);
        let share = u128::from(fleet_ns.saturating_sub(from.0)) * u128::from(to.1 - from.1);
        from.1 + (share / u128::from((to.0 - from.0).max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_time_was_due_between_its_neighbours() {
        let mut progress = Progress::default();
        assert_eq!((progress.fleet_ns(), progress.wall_ns(5)), (None, 0));
        for (fleet, wall) in [
            (1_000, 5_000_000),
            (1_000, 9_000_000),
            (3_000, 25_000_000),
            (4_000, 25_000_100),
        ] {
            progress.note(fleet, wall);
        }
        assert_eq!(progress.fleet_ns(), Some(4_000));
        assert_eq!(progress.wall_ns(1_000), 5_000_000);
        assert_eq!(progress.wall_ns(2_000), 15_000_000);
        assert_eq!(progress.wall_ns(500), 5_000_000);
        assert_eq!(progress.wall_ns(9_999), 25_000_100);
    }

    #[test]
    fn memory_is_bounded_and_times_stay_close() {
        let mut progress = Progress::default();
        let points = 4 * POINTS_MAX as u64;
        for point in 1..=points {
            progress.note(point * 1_000, point * STEP_NS);
        }
        assert!(progress.points.len() <= POINTS_MAX);
        for point in [1, 77_777, points - 1, points] {
            let (wall, exact) = (progress.wall_ns(point * 1_000), point * STEP_NS);
            assert!(wall.abs_diff(exact) <= 8 * STEP_NS, "{point}: {wall} for {exact}");
        }
    }
}
