//! Decides which new series share an extent: neighbours that were first written together.

use super::extent::MAX_LEN;

/// Number of consecutive equal timestamps that begin an extent of their own.
const LONG: usize = 8;

/// Divides new series, each with the timestamp of its first sample, into extents (first id and
/// length). `series` must be sorted by id, without duplicates.
///
/// An extent ends at a gap in the ids, where a long run of another timestamp begins (another
/// host, with a phase of its own), and where it is full.
pub(super) fn extents(series: &[(u32, i64)]) -> Vec<(u32, usize)> {
    let mut extents = Vec::new();
    let mut from = 0;
    // The timestamp of the first long run in the current extent.
    let mut time = None;
    let mut at = 0;
    while at < series.len() {
        let run = series[at..]
            .iter()
            .zip(series[at].0..)
            .take_while(|(new, id)| new.0 == *id && new.1 == series[at].1);
        let run = run.count();
        let adjoins = at == from || series[at - 1].0 + 1 == series[at].0;
        let other = run >= LONG && time.is_some_and(|time| time != series[at].1);
        if !adjoins || other {
            cut(series, from..at, &mut extents);
            (from, time) = (at, None);
        }
        if run >= LONG {
            time = Some(series[at].1);
        }
        at += run;
    }
    cut(series, from..at, &mut extents);
    extents
}

/// Divides neighbouring ids into extents of about equal length.
fn cut(series: &[(u32, i64)], range: std::ops::Range<usize>, extents: &mut Vec<(u32, usize)>) {
    let count = range.len().div_ceil(MAX_LEN).max(1);
    // A multiple of eight, except for the last extent.
    let len = range.len().div_ceil(count).next_multiple_of(8).min(MAX_LEN);
    for extent in series[range].chunks(len.max(1)) {
        extents.push((extent[0].0, extent.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_phases_of_their_own_get_extents_of_their_own() {
        let hosts: Vec<(u32, i64)> = (0..162).map(|id| (id, i64::from(id / 54))).collect();
        assert_eq!(extents(&hosts), [(0, 54), (54, 54), (108, 54)]);
    }

    #[test]
    fn a_fleet_in_one_tick_is_cut_evenly() {
        let fleet: Vec<(u32, i64)> = (0..54_000).map(|id| (id, 7)).collect();
        let extents = extents(&fleet);
        assert_eq!(extents.iter().map(|(_, len)| len).sum::<usize>(), 54_000);
        assert!(extents.iter().all(|(_, len)| *len <= MAX_LEN));
        assert!(
            extents[..extents.len() - 1]
                .iter()
                .all(|(_, len)| len % 8 == 0 && *len > MAX_LEN / 2)
        );
    }

    #[test]
    fn jitter_and_late_samples_do_not_shatter_an_extent() {
        let jittered: Vec<(u32, i64)> = (0..100).map(|id| (id, i64::from(id % 7))).collect();
        assert_eq!(extents(&jittered), [(0, 100)]);
        let late: Vec<(u32, i64)> = (0..100).map(|id| (id, i64::from(id != 50))).collect();
        assert_eq!(extents(&late), [(0, 100)]);
        assert_eq!(extents(&[(3, 1), (4, 1), (9, 1)]), [(3, 2), (9, 1)]);
        assert_eq!(extents(&[]), []);
    }
}
