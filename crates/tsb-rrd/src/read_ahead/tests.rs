//! The order of the stages, and which pages are prefetched.

use rustix::fs::fsync;

use super::*;
use crate::layout::{Archive, Cf, DataSource, DsKind};

/// The stages of `count` files, of which those in `cold` are not in memory.
fn stages(ahead: &mut ReadAhead, count: usize, cold: std::ops::Range<usize>) -> Vec<(Stage, usize)> {
    let mut seen = Vec::new();
    let result: std::result::Result<(), ()> = ahead.for_each(count, |stage, index| {
        seen.push((stage, index));
        Ok(if cold.contains(&index) {
            Residency::Cold
        } else {
            Residency::Warm
        })
    });
    result.unwrap();
    seen
}

#[test]
fn warm_files_are_probed_rarely_and_cold_ones_prefetched_in_two_stages() {
    let mut ahead = ReadAhead::default();
    let warm = stages(&mut ahead, 1_000, 0..0);
    assert_eq!(
        warm.len(),
        1_000 + 2 * 1_000_usize.div_ceil(32),
        "two probes of one file in 32"
    );
    let cold = stages(&mut ahead, 1_000, 0..1_000);
    let at = |what: (Stage, usize)| cold.iter().position(|&seen| seen == what);
    for index in 0..1_000 {
        let updated = at((Stage::Update, index)).unwrap();
        if let Some(rows) = at((Stage::Rows, index)) {
            assert!(at((Stage::Header, index)).unwrap() < rows && rows < updated);
        }
        assert_eq!(cold.iter().filter(|&&seen| seen == (Stage::Update, index)).count(), 1);
    }
    // The first sample finds out, and from then on nothing is waited for.
    let prefetched = cold.iter().filter(|(stage, _)| *stage == Stage::Header).count();
    assert!(prefetched > 960, "{prefetched}");
    let ahead_of_500 = cold[..at((Stage::Update, 500)).unwrap()].iter();
    assert_eq!(
        ahead_of_500
            .clone()
            .filter(|seen| seen.0 == Stage::Header)
            .map(|seen| seen.1)
            .max(),
        Some(627)
    );
    assert_eq!(
        ahead_of_500
            .filter(|seen| seen.0 == Stage::Rows)
            .map(|seen| seen.1)
            .max(),
        Some(563)
    );
    let again = stages(&mut ahead, 1_000, 0..0);
    let prefetched = again.iter().filter(|(stage, _)| *stage != Stage::Update).count();
    assert!(prefetched < 350, "warm again: {prefetched}");
}

#[test]
fn a_single_file_is_never_prefetched_and_an_error_ends_it() {
    let mut ahead = ReadAhead::default();
    assert_eq!(stages(&mut ahead, 1, 0..1), [(Stage::Update, 0)]);
    let failed = ReadAhead::default().for_each(5, |stage, index| match (stage, index) {
        (Stage::Update, 3) => Err("three"),
        _ => Ok(Residency::NotProbed),
    });
    assert_eq!(failed, Err("three"));
}

fn layout(archives: Vec<Archive>) -> Layout {
    Layout::new(10, vec![DataSource::new("a", DsKind::Gauge, 20)], archives).unwrap()
}

#[test]
fn the_pages_of_ending_rows_are_prefetched() {
    let archives = [(1, 2_000), (6, 2_000)].map(|(steps, rows)| Archive::new(Cf::Average, 0.5, steps, rows));
    let layout = layout(archives.to_vec());
    let live = LiveHeader::new(&layout, 1_700_000_000, [5, 1_999].into_iter());
    let prefetched = |until_s| row_offsets(&layout, &live, until_s).collect::<Vec<_>>();
    assert_eq!(prefetched(1_700_000_009), []);
    assert_eq!(prefetched(1_700_000_010), [layout.row_offset(0, 6)]);
    let (first, last) = (layout.row_offset(0, 6), layout.row_offset(0, 11));
    // The second archive's minute ends 40 seconds after the start, in the row after its last.
    assert_eq!(prefetched(1_700_000_060), [first, last, layout.row_offset(1, 0)]);
    // A gap rewrites everything.
    assert_eq!(prefetched(1_800_000_000).len(), 4);
    assert_eq!(prefetched(i64::MIN), []);
}

#[test]
fn a_cold_file_is_detected_and_read_by_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rrd");
    let layout = layout(vec![Archive::new(Cf::Average, 0.5, 1, 100_000)]);
    crate::create(&path, &layout, 1_700_000_000, 3).unwrap();
    let file = RrdFile::open(&path).unwrap();
    let mut session = Session::default();
    assert_eq!(file.prefetch_header(), Residency::Warm);
    assert_eq!(
        file.prefetch_rows(&mut session, 1_700_000_100).unwrap(),
        Residency::Warm
    );
    fsync(file.file()).unwrap();
    fadvise(file.file(), 0, None, Advice::DontNeed).unwrap();
    // A file system in memory cannot forget, and some cannot say.
    if file.prefetch_header() == Residency::Cold {
        file.newest(&mut session).unwrap();
        assert_eq!(file.prefetch_header(), Residency::Warm);
        assert_eq!(
            file.prefetch_rows(&mut session, 1_700_000_100).unwrap(),
            Residency::Cold
        );
    }
    file.update(&mut session, &["1700000100:1"]).unwrap();
    assert_eq!(update_time_s("1700000100.5:1"), Some(1_700_000_100));
    assert_eq!(update_time_s("N:1"), None);
}
