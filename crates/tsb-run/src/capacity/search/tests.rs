//! Searches on simulated stores whose knee is known.

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// A store that holds up to its knee, which moves from probe to probe.
struct SimulatedStore {
    knee: f64,
    /// Standard deviation of the knee's logarithm.
    noise: f64,
    /// Share of probes that break because of a stall.
    stalls: f64,
    /// The highest load that the generator can offer.
    ceiling: f64,
    state: u64,
}

impl SimulatedStore {
    fn new(knee: f64, noise: f64, stalls: f64, seed: u64) -> Self {
        Self {
            knee,
            noise,
            stalls,
            ceiling: f64::INFINITY,
            state: seed,
        }
    }

    /// Uniform in (0, 1): SplitMix64.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = self.state;
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-17
    }

    fn probe(&mut self, load: u64) -> ProbeResult {
        let normal = (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos();
        let has_stalled = self.uniform() < self.stalls;
        if load as f64 > self.ceiling {
            return ProbeResult::Void(Limit::Generator);
        }
        if !has_stalled && (load as f64) < self.knee * (self.noise * normal).exp() {
            ProbeResult::Held
        } else {
            ProbeResult::Broke
        }
    }
}

fn options(first: u64, seed: u64) -> SearchOptions {
    SearchOptions {
        first,
        lowest: 1,
        highest: 1_000_000_000,
        tolerance: 0.03,
        probes_max: 80,
        time_max_ns: 3_600 * SECOND,
        settle_ns: SECOND,
        passes: true,
        seed,
    }
}

/// Runs a search to its end. Returns the finding and the probes.
fn searched(options: SearchOptions, mut probe: impl FnMut(&Probe) -> ProbeResult) -> (Finding, Vec<Probe>) {
    let mut search = Search::new(options);
    let mut probes = Vec::new();
    loop {
        match search.step() {
            Step::Done(finding) => return (finding, probes),
            Step::Probe(next) => {
                assert_eq!(
                    search.step(),
                    Step::Probe(next),
                    "a step is repeated until it is recorded"
                );
                search.record(probe(&next), 10 * SECOND + next.settle_ns);
                probes.push(next);
            }
        }
    }
}

fn found(finding: &Finding) -> (f64, f64, f64) {
    match *finding {
        Finding::Found { load, low, high, .. } => (load, low, high),
        Finding::Limited { .. } => panic!("no capacity: {finding:?}"),
    }
}

/// Counts how often the interval covers the knee, and the worst and mean distance of the estimate.
fn coverage(searches: u64, noise: f64, stalls: f64) -> (f64, f64, f64) {
    let (mut covered, mut worst, mut total) = (0, 0.0_f64, 0);
    for seed in 0..searches {
        let knee = 40_000.0 * (1.0 + (seed as f64 * GOLDEN).fract() * 3.0);
        let mut store = SimulatedStore::new(knee, noise, stalls, seed * 7_919 + 1);
        let (finding, probes) = searched(
            SearchOptions {
                passes: false,
                ..options(54_000, seed)
            },
            |probe| store.probe(probe.load),
        );
        let (load, low, high) = found(&finding);
        covered += u64::from(low <= knee && knee <= high);
        worst = worst.max((load / knee - 1.0).abs());
        total += probes.len();
    }
    (covered as f64 / searches as f64, worst, total as f64 / searches as f64)
}

/// Searches per case; more by hand, for the figures in the ADR.
fn searches() -> u64 {
    option_env!("TSB_CAPACITY_SEARCHES")
        .and_then(|count| count.parse().ok())
        .unwrap_or(40)
}

#[test]
fn the_interval_covers_the_knee_at_the_stated_share() {
    for (noise, stalls, farthest) in [
        (0.0, 0.0, 0.03),
        (0.01, 0.0, 0.03),
        (0.01, 0.1, 0.03),
        (0.03, 0.0, 0.06),
    ] {
        let (share, worst, probes) = coverage(searches(), noise, stalls);
        println!("noise {noise} stalls {stalls}: covered {share}, farthest {worst:.4}, {probes:.1} probes");
        assert!(share >= 0.9, "noise {noise}, stalls {stalls}: covered {share}");
        assert!(worst <= farthest, "noise {noise}, stalls {stalls}: {worst}");
    }
}

#[test]
fn a_store_that_never_breaks_has_no_capacity() {
    let (finding, _) = searched(options(54_000, 1), |_| ProbeResult::Held);
    let highest = 1_000_000_000;
    let expected = Finding::Limited {
        by: Limit::Highest,
        held: Some(highest),
    };
    assert_eq!(finding, expected);
}

#[test]
fn a_store_that_always_breaks_has_none_either() {
    let (finding, probes) = searched(options(54_000, 1), |_| ProbeResult::Broke);
    assert_eq!(
        finding,
        Finding::Limited {
            by: Limit::Lowest,
            held: None
        }
    );
    assert_eq!(probes.last().map(|probe| probe.load), Some(1));
    let waits: Vec<u64> = probes.iter().map(|probe| probe.settle_ns / SECOND).take(6).collect();
    assert_eq!(waits, [0, 1, 2, 4, 8, 8], "the wait doubles with each further failure");
}

#[test]
fn what_is_not_the_store_bounds_the_search_and_is_no_capacity() {
    for limit in [Limit::Generator, Limit::Wire] {
        let (finding, _) = searched(options(54_000, 1), |probe| {
            if probe.load > 300_000 {
                ProbeResult::Void(limit)
            } else {
                ProbeResult::Held
            }
        });
        let Finding::Limited { by, held: Some(held) } = finding else {
            panic!("{finding:?}");
        };
        assert_eq!(by, limit);
        assert!((250_000..=300_000).contains(&held), "{held}");
    }
}

#[test]
fn a_knee_below_what_cannot_be_asked_is_found() {
    let mut store = SimulatedStore::new(180_000.0, 0.005, 0.0, 3);
    store.ceiling = 240_000.0;
    let (finding, _) = searched(options(54_000, 1), |probe| store.probe(probe.load));
    let (load, ..) = found(&finding);
    assert!((load / 180_000.0 - 1.0).abs() < 0.03, "{load}");
}

#[test]
fn a_machine_that_is_disturbed_all_the_time_ends_the_search() {
    let (finding, probes) = searched(options(54_000, 1), |_| ProbeResult::Void(Limit::Machine));
    assert_eq!(
        finding,
        Finding::Limited {
            by: Limit::Machine,
            held: None
        }
    );
    assert_eq!(probes.len(), DISTURBED_MAX as usize);
    // One disturbed probe in four is repeated, and changes nothing.
    let mut count = 0;
    let (finding, _) = searched(options(54_000, 1), |probe| {
        count += 1;
        match (count % 4, probe.load < 90_000) {
            (0, _) => ProbeResult::Void(Limit::Machine),
            (_, true) => ProbeResult::Held,
            (_, false) => ProbeResult::Broke,
        }
    });
    let (load, ..) = found(&finding);
    assert!((load / 90_000.0 - 1.0).abs() < 0.03, "{load}");
}

#[test]
fn a_store_that_recovers_only_at_lower_loads_has_hysteresis() {
    let mut overloaded = false;
    let mut probe = |probe: &Probe| {
        // A rest lets it recover.
        overloaded &= probe.settle_ns == 0 && probe.purpose == Purpose::Downwards;
        let knee = if overloaded { 80_000 } else { 100_000 };
        overloaded = probe.load >= knee;
        if overloaded {
            ProbeResult::Broke
        } else {
            ProbeResult::Held
        }
    };
    let (finding, _) = searched(options(54_000, 1), &mut probe);
    let Finding::Found {
        load,
        passes: Some(passes),
        ..
    } = finding
    else {
        panic!("{finding:?}");
    };
    assert!((load / 100_000.0 - 1.0).abs() < 0.03, "{load}");
    assert!(passes.has_hysteresis(), "{passes:?}");
    let (finding, _) = searched(options(54_000, 1), |probe| {
        if probe.load < 100_000 {
            ProbeResult::Held
        } else {
            ProbeResult::Broke
        }
    });
    let Finding::Found {
        passes: Some(passes), ..
    } = finding
    else {
        panic!("{finding:?}");
    };
    assert!(!passes.has_hysteresis(), "{passes:?}");
}

#[test]
fn a_first_probe_that_broke_by_chance_far_below_the_knee_is_overcome() {
    let (finding, _) = searched(options(54_000, 1), |probe| {
        if probe.number > 1 && probe.load < 3_000_000 {
            ProbeResult::Held
        } else {
            ProbeResult::Broke
        }
    });
    let (load, ..) = found(&finding);
    assert!((load / 3_000_000.0 - 1.0).abs() < 0.03, "{load}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_search_ends_within_its_bounds(
        knee in 1.0_f64..2e6,
        noise in 0.0_f64..0.1,
        stalls in 0.0_f64..0.5,
        ceiling in 1.0_f64..4e6,
        first in 1_u64..1_000_000,
        probes_max in 0_u32..60,
        seconds in 0_u64..2_000,
        seed: u64,
    ) {
        let mut store = SimulatedStore::new(knee, noise, stalls, seed);
        store.ceiling = ceiling;
        let bounds = SearchOptions { highest: 2_000_000, probes_max, time_max_ns: seconds * SECOND, ..options(first, seed) };
        let mut spent = 0;
        let (finding, probes) = searched(bounds, |probe| {
            spent += 10 * SECOND + probe.settle_ns;
            store.probe(probe.load)
        });
        prop_assert!(probes.len() <= probes_max as usize);
        prop_assert!(probes.iter().all(|probe| (1..=2_000_000).contains(&probe.load)));
        // The first probe's length is not known before it; a later wait is at most 8 s longer.
        prop_assert!(probes.len() <= 1 || spent <= (seconds + 8) * SECOND, "{} {}", spent, seconds);
        if let Finding::Found { load, low, high, .. } = finding {
            prop_assert!(0.0 < low && low <= load && load <= high && high.is_finite());
        }
    }

    #[test]
    fn a_sharp_knee_is_found_within_three_percent(knee in 500_u64..5_000_000, first in 1_000_u64..1_000_000, seed: u64) {
        let (finding, _) = searched(SearchOptions { passes: false, ..options(first, seed) }, |probe| {
            if probe.load < knee { ProbeResult::Held } else { ProbeResult::Broke }
        });
        let (load, low, high) = found(&finding);
        prop_assert!((load / knee as f64 - 1.0).abs() < 0.03, "{} for {}", load, knee);
        prop_assert!(low <= knee as f64 && knee as f64 <= high + 1.0, "{} {} for {}", low, high, knee);
    }
}
