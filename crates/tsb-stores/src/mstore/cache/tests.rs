//! Each rule of the two rounds, and the sizes of their writes.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::*;

/// Keeps every block: its first point, and the words.
#[derive(Debug, Default)]
struct Blocks(Vec<(i64, Vec<u64>)>);

impl WriteBlock for Blocks {
    type Error = Infallible;

    fn write(&mut self, first: i64, points: &[u64]) -> Result<(), Infallible> {
        self.0.push((first, points.to_vec()));
        Ok(())
    }
}

fn rules(policy: CachePolicy, points: usize) -> CacheRules {
    CacheRules {
        policy,
        points,
        has_defect: false,
    }
}

fn put(entry: &mut Entry, rules: &CacheRules, point: i64, out: &mut Blocks) {
    entry.put(rules, 0, (point, 1_000 + point as u64), out).unwrap();
}

/// The first point and the number of points of each block.
type Sizes = Vec<(i64, usize)>;

/// The blocks, in order, after these points, and then those that waited.
fn written(rules: &CacheRules, points: &[i64]) -> (Sizes, Sizes) {
    let (mut entry, mut out) = (Entry::default(), Blocks::default());
    // Behind the first window, whose length is drawn.
    entry.is_past_first = true;
    for &point in points {
        put(&mut entry, rules, point, &mut out);
    }
    let before = std::mem::take(&mut out);
    entry.write_all(rules, &mut out).unwrap();
    assert!(entry.is_empty() && entry.newest().is_none());
    let sizes = |blocks: Blocks| {
        blocks
            .0
            .into_iter()
            .map(|(first, words)| (first, words.len()))
            .collect()
    };
    (sizes(before), sizes(out))
}

#[test]
fn round_1_keeps_one_unbroken_block() {
    let five = rules(CachePolicy::Round1, 5);
    // Rules 1 to 3: created, appended, prepended.
    assert_eq!(written(&five, &[10, 11, 12, 9]), (vec![], vec![(9, 4)]));
    // Rule 4: a full entry is written with the point that comes next, or before it.
    assert_eq!(written(&five, &[1, 2, 3, 4, 5, 6, 7]), (vec![(1, 6)], vec![(7, 1)]));
    assert_eq!(
        written(&five, &[1, 2, 3, 4, 5, 9, 10]),
        (vec![(1, 5), (9, 1)], vec![(10, 1)])
    );
    // Rule 5: a gap, a repeat, a late point.
    assert_eq!(written(&five, &[1, 2, 4]), (vec![(1, 2)], vec![(4, 1)]));
    assert_eq!(written(&five, &[1, 2, 2, 3]), (vec![(1, 2)], vec![(2, 2)]));
    assert_eq!(written(&five, &[4, 5, 2]), (vec![(4, 2)], vec![(2, 1)]));
}

#[test]
fn round_2_keeps_a_window_in_any_order() {
    let five = rules(CachePolicy::Round2, 5);
    assert_eq!(written(&five, &[1, 2, 3, 4, 5, 6]), (vec![(1, 5)], vec![(6, 1)]));
    // Late within the window, and repeated.
    assert_eq!(written(&five, &[1, 4, 2, 4, 3]), (vec![], vec![(1, 4)]));
    // Before the window: written at once.
    assert_eq!(written(&five, &[5, 6, 4, 7]), (vec![(4, 1)], vec![(5, 3)]));
    // What lies between is not written over points of the file.
    assert_eq!(written(&five, &[1, 2, 4, 9]), (vec![(1, 2), (4, 1)], vec![(9, 1)]));
}

#[test]
fn a_repeated_point_has_its_last_value() {
    for policy in [CachePolicy::Round1, CachePolicy::Round2, CachePolicy::Off] {
        let (mut entry, mut out) = (Entry::default(), Blocks::default());
        let rules = rules(policy, 50);
        for (point, word) in [(7, 1), (8, 2), (7, 3)] {
            assert_eq!(entry.has(8), point != 8 && word == 3);
            entry.put(&rules, u32::MAX, (point, word), &mut out).unwrap();
        }
        entry.write_all(&rules, &mut out).unwrap();
        let words = out
            .0
            .iter()
            .flat_map(|(first, words)| (*first..).zip(words.iter().copied()));
        assert_eq!(
            words.collect::<BTreeMap<_, _>>(),
            BTreeMap::from([(7, 3), (8, 2)]),
            "{policy:?}"
        );
    }
}

#[test]
fn the_defect_of_round_2_loses_what_is_behind_a_late_point() {
    let feed = [1, 2, 3, 4, 2];
    let mut five = rules(CachePolicy::Round2, 5);
    assert_eq!(written(&five, &feed), (vec![], vec![(1, 4)]));
    five.has_defect = true;
    assert_eq!(written(&five, &feed), (vec![], vec![(1, 2)]));
    let (mut entry, mut out) = (Entry::default(), Blocks::default());
    entry.is_past_first = true;
    for point in feed {
        put(&mut entry, &five, point, &mut out);
    }
    assert_eq!(entry.newest(), Some(2), "a query would return no newer one");
    entry.write_all(&five, &mut out).unwrap();
    assert_eq!((entry.take_forgotten(), entry.take_forgotten()), (2, 0));
}

/// 15,000 metrics report every second; their first writes are spread over the window.
#[test]
fn the_first_windows_of_round_2_end_at_different_times() {
    const POINTS: usize = 120;
    let rules = rules(CachePolicy::Round2, POINTS);
    let mut at = [0_u32; POINTS + 1];
    for metric in 0..15_000 {
        let (mut entry, mut out) = (Entry::default(), Blocks::default());
        let mut lengths = Vec::new();
        for point in 0..3 * POINTS as i64 {
            entry.put(&rules, metric, (point, 1), &mut out).unwrap();
            lengths.extend(out.0.drain(..).map(|(_, words)| words.len()));
        }
        at[lengths[0]] += 1;
        assert!(lengths[1..].iter().all(|&length| length == POINTS), "{lengths:?}");
    }
    assert_eq!(at[0], 0);
    // 125 each on average.
    assert!(at[1..].iter().all(|&metrics| (80..=180).contains(&metrics)), "{at:?}");
}

/// Points per write and number of writes, as the first version of the document printed them.
const PUBLISHED: [(u64, u64); 29] = [
    (1, 11_719),
    (2, 86_841),
    (3, 15_206),
    (4, 52_765),
    (5, 85_455),
    (6, 29_203),
    (7, 25_545),
    (8, 12_780),
    (9, 11_694),
    (10, 13_124),
    (11, 4_398),
    (12, 4_030),
    (13, 806),
    (14, 849),
    (15, 588),
    (16, 69),
    (35, 682),
    (36, 1_030),
    (37, 132),
    (38, 3),
    (49, 32),
    (62, 672),
    (63, 682),
    (69, 682),
    (83, 149),
    (84, 417),
    (85, 10),
    (93, 672),
    (101, 37_089),
];

/// The figures in which two histograms of writes are compared.
#[derive(Debug)]
struct Shape {
    mean: f64,
    full_writes: f64,
    points_in_full: f64,
    writes_up_to_16: f64,
    longest: u64,
}

fn shape(histogram: impl IntoIterator<Item = (u64, u64)> + Clone) -> Shape {
    let sum = |of: &dyn Fn(u64, u64) -> u64| {
        histogram
            .clone()
            .into_iter()
            .map(|(size, count)| of(size, count))
            .sum::<u64>() as f64
    };
    let (writes, points) = (sum(&|_, count| count), sum(&|size, count| size * count));
    Shape {
        mean: points / writes,
        full_writes: sum(&|size, count| if size == 101 { count } else { 0 }) / writes,
        points_in_full: sum(&|size, count| if size == 101 { size * count } else { 0 }) / points,
        writes_up_to_16: sum(&|size, count| if size <= 16 { count } else { 0 }) / writes,
        longest: histogram.into_iter().map(|(size, _)| size).max().unwrap_or(0),
    }
}

#[test]
fn the_published_histogram_adds_up() {
    let sum = |of: fn(u64, u64) -> u64| PUBLISHED.iter().map(|&(size, count)| of(size, count)).sum::<u64>();
    assert_eq!(sum(|_, count| count), 397_324);
    assert_eq!(sum(|size, count| size * count), 5_747_073);
    let published = shape(PUBLISHED);
    assert!((published.mean - 14.46).abs() < 0.005);
    assert!((published.full_writes - 0.093).abs() < 0.001 && (published.points_in_full - 0.65).abs() < 0.005);
}

/// A sampler at 1 Hz whose clock skips a second, or repeats one, once in `one_in` seconds.
struct Sampler {
    point: i64,
    one_in: u64,
    random: u64,
}

impl Sampler {
    fn next(&mut self) -> i64 {
        // Knuth's MMIX generator.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let drawn = self.random >> 33;
        self.point += match drawn % (2 * self.one_in) {
            0 => 2,
            1 => 0,
            _ => 1,
        };
        self.point
    }
}

/// The sizes of the writes of round 1 for metrics that report for ten minutes and longer: of a
/// hypervisor's metrics 65 in 100 come each second, and 35 with a jitter of a second.
#[test]
fn jitter_breaks_the_blocks_of_round_1_as_published() {
    let rules = rules(CachePolicy::Round1, 100);
    let mut histogram = BTreeMap::new();
    let (mut taken, mut written) = (0, 0);
    for metric in 0..300_u64 {
        let one_in = if metric % 100 < 65 { 1_000_000 } else { 6 };
        let mut sampler = Sampler {
            point: 0,
            one_in,
            random: metric,
        };
        let (mut entry, mut out) = (Entry::default(), Blocks::default());
        for _ in 0..101 * 30 {
            put(&mut entry, &rules, sampler.next(), &mut out);
            taken += 1;
        }
        entry.write_all(&rules, &mut out).unwrap();
        for (_, words) in out.0 {
            written += words.len();
            *histogram.entry(words.len() as u64).or_insert(0) += 1;
        }
    }
    assert_eq!(taken, written, "every point is written, the repeated ones twice");
    let (ours, published) = (shape(histogram), shape(PUBLISHED));
    let is_near = |ours: f64, published: f64, by: f64| (ours - published).abs() < by;
    assert!(is_near(ours.mean, published.mean, 1.5), "{ours:?}, {published:?}");
    assert!(
        is_near(ours.full_writes, published.full_writes, 0.02),
        "{ours:?}, {published:?}"
    );
    assert!(
        is_near(ours.points_in_full, published.points_in_full, 0.03),
        "{ours:?}, {published:?}"
    );
    assert!(
        is_near(ours.writes_up_to_16, published.writes_up_to_16, 0.05),
        "{ours:?}, {published:?}"
    );
    assert_eq!(ours.longest, published.longest);
}

/// 15,000 metrics with 1,800 points each are 243 MB at the 9 bytes of 2014, and 216 MB at 8.
#[test]
fn a_window_of_thirty_minutes_takes_the_published_memory() {
    let rules = rules(CachePolicy::Round2, 1_800);
    let (mut entry, mut out) = (Entry::default(), Blocks::default());
    put(&mut entry, &rules, 0, &mut out);
    assert_eq!(15_000 * entry.bytes(), 216_000_000);
    assert_eq!(15_000 * entry.bytes() / 8 * 9, 243_000_000);
}
