//! Comparisons simulated in virtual time, with noise as measured on a real machine.

use super::*;
use crate::stats::quantile;

/// Simulated comparisons for each claim.
const TRIALS: u32 = 2_000;
/// Intervals of a run, and intervals between two runs in which nothing is measured.
const RUN: usize = 10;
const PAUSE: usize = 3;

/// Noise of a machine: the logarithm of a figure in one interval is autoregressive.
#[derive(Clone, Copy)]
struct Noise {
    correlation: f64,
    deviation: f64,
    /// Standard deviation of the step of a random walk: how the machine drifts.
    walk: f64,
    /// Share of intervals that another process disturbs, by up to a factor of e.
    spikes: f64,
}

/// Deviation and correlation of neighbouring intervals of 250 ms, as measured (ADR 112): response
/// times of memory, samples that SQLite accepted, response times of SQLite; and noise with drift
/// and disturbances.
const MEASURED: &[Noise] = &[
    Noise {
        correlation: 0.10,
        deviation: 0.43,
        walk: 0.0,
        spikes: 0.0,
    },
    Noise {
        correlation: 0.42,
        deviation: 0.40,
        walk: 0.0,
        spikes: 0.0,
    },
    Noise {
        correlation: 0.97,
        deviation: 0.84,
        walk: 0.0,
        spikes: 0.0,
    },
    Noise {
        correlation: 0.15,
        deviation: 0.05,
        walk: 0.02,
        spikes: 0.05,
    },
];

/// A machine on which one run follows the other.
struct Machine {
    noise: Noise,
    state: u64,
    now: f64,
    drift: f64,
}

impl Machine {
    fn new(noise: Noise, seed: u64) -> Self {
        let mut machine = Self {
            noise,
            state: mix64(seed),
            now: 0.0,
            drift: 0.0,
        };
        machine.now = noise.deviation * machine.normal();
        machine
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.state)
    }

    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A sum of eight uniform numbers of 16 bits, with mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        let eighths =
            [self.bits(), self.bits()].map(|bits| (0..4).map(|part| bits >> (16 * part) & 0xffff).sum::<u64>());
        ((eighths[0] + eighths[1]) as f64 / 65_535.0 - 4.0) * 1.5_f64.sqrt()
    }

    fn interval(&mut self) -> f64 {
        let Noise {
            correlation,
            deviation,
            walk,
            spikes,
        } = self.noise;
        self.now = correlation * self.now + deviation * (1.0 - correlation * correlation).sqrt() * self.normal();
        self.drift += walk * self.normal();
        let spike = if self.uniform() < spikes { self.uniform() } else { 0.0 };
        (self.now + self.drift + spike).exp()
    }

    /// The figure of one run: the mean of its intervals.
    fn run(&mut self, true_figure: f64) -> f64 {
        for _ in 0..PAUSE {
            self.interval();
        }
        true_figure * (0..RUN).map(|_| self.interval()).sum::<f64>() / RUN as f64
    }

    /// One round of two sides, `b` a factor above `a`.
    fn round(&mut self, seed: u64, round: u32, factor: f64) -> [f64; 4] {
        let order = order(seed, round, 2);
        let mut runs = [[0.0; 2]; 2];
        for (index, &side) in order.iter().enumerate() {
            runs[side][index / 2] = self.run(if side == 0 { 1.0 } else { factor });
        }
        [runs[0][0], runs[1][0], runs[1][1], runs[0][1]]
    }

    fn rounds(&mut self, seed: u64, rounds: u32, factor: f64) -> Vec<[f64; 4]> {
        (0..rounds).map(|round| self.round(seed, round, factor)).collect()
    }
}

fn share(hits: u32) -> f64 {
    f64::from(hits) / f64::from(TRIALS)
}

#[test]
fn the_interval_of_equal_sides_covers_one_as_often_as_it_says() {
    for (kind, &noise) in MEASURED.iter().enumerate() {
        for rounds in [5, 10] {
            let mut covered = 0;
            for trial in 0..TRIALS {
                let seed = u64::from(trial);
                let runs = Machine::new(noise, seed).rounds(seed, rounds, 1.0);
                covered += u32::from(!Ratio::from_blocks(&runs).unwrap().is_different());
            }
            let covered = share(covered);
            assert!(
                (0.93..=0.97).contains(&covered),
                "noise {kind}, {rounds} rounds: {covered}"
            );
        }
    }
}

/// As `tsb compare` does it.
#[test]
fn ending_early_keeps_the_coverage() {
    for (kind, &noise) in MEASURED.iter().enumerate() {
        let mut covered = 0;
        for trial in 0..TRIALS {
            let (seed, mut runs) = (u64::from(trial), Vec::new());
            let mut machine = Machine::new(noise, seed);
            for round in 0..30 {
                runs.push(machine.round(seed, round, 1.0));
                if have_answered(&runs, 0.1) {
                    break;
                }
            }
            let ratio = Ratio::from_blocks(&runs);
            covered += u32::from(!ratio.unwrap().is_different());
        }
        let covered = share(covered);
        assert!((0.93..=0.97).contains(&covered), "noise {kind}: {covered}");
    }
}

/// A difference as large as the stated one is found about as often as stated; one of a fifth of
/// it is called "not seen", with the difference that could have been.
#[test]
fn what_is_detectable_is_detected() {
    let noise = Noise {
        correlation: 0.5,
        deviation: 0.05,
        walk: 0.0,
        spikes: 0.0,
    };
    let rounds = 10;
    let detectable: Vec<f64> = (0..200)
        .map(|seed| Machine::new(noise, seed).rounds(seed, rounds, 1.0))
        .map(|runs| Ratio::from_blocks(&runs).unwrap().detectable)
        .collect();
    let typical = quantile(&detectable, 0.5).unwrap();
    let found = |factor: f64| {
        let hits = (0..TRIALS).filter(|&trial| {
            let seed = u64::from(trial) + 1_000;
            let runs = Machine::new(noise, seed).rounds(seed, rounds, factor);
            RatioOutcome::of(&Ratio::from_blocks(&runs).unwrap(), None) == RatioOutcome::Higher
        });
        share(hits.count() as u32)
    };
    let (whole, fifth) = (found(1.0 + typical), found(1.0 + typical / 5.0));
    assert!((0.72..0.9).contains(&whole), "{typical} is found in {whole}");
    assert!(fifth < 0.15, "{} is found in {fifth}", typical / 5.0);
}

#[test]
fn a_side_five_percent_slower_is_found_and_one_percent_is_not_seen() {
    // Ten rounds on a machine that could show about 3 %.
    let noise = Noise {
        correlation: 0.5,
        deviation: 0.06,
        walk: 0.0,
        spikes: 0.0,
    };
    let compared = |factor| {
        let runs = Machine::new(noise, 7).rounds(7, 10, factor);
        let ratio = Ratio::from_blocks(&runs).unwrap();
        (RatioOutcome::of(&ratio, rounds_disagree(&runs)), ratio)
    };
    let (outcome, ratio) = compared(1.05);
    assert_eq!(outcome, RatioOutcome::Higher);
    assert!(
        ratio.detectable < 0.05 && ratio.ratio_low < 1.05 && ratio.ratio_high > 1.05,
        "{ratio:?}"
    );
    let (outcome, ratio) = compared(1.01);
    assert_eq!(outcome, RatioOutcome::NotSeen);
    assert!(ratio.detectable > 0.01, "{ratio:?}");
}

#[test]
fn rounds_that_differ_by_chance_are_erratic_in_at_most_one_of_a_hundred() {
    for &noise in MEASURED {
        let erratic = (0..TRIALS).filter(|&trial| {
            let seed = u64::from(trial);
            rounds_disagree(&Machine::new(noise, seed).rounds(seed, 8, 1.0)) == Some(true)
        });
        assert!(share(erratic.count() as u32) <= 0.01);
    }
}

#[test]
fn rounds_that_contradict_each_other_are_erratic() {
    let noise = MEASURED[1];
    let mut machine = Machine::new(noise, 3);
    // The second side is 40 % faster in one round, and 40 % slower in the next.
    let runs: Vec<_> = (0..8)
        .map(|round| machine.round(3, round, if round % 2 == 0 { 1.4 } else { 0.6 }))
        .collect();
    let ratio = Ratio::from_blocks(&runs).unwrap();
    assert_eq!(RatioOutcome::of(&ratio, rounds_disagree(&runs)), RatioOutcome::Erratic);
    assert_eq!(rounds_disagree(&runs[..2]), None);
    assert_eq!(rounds_disagree(&[[1.0, 2.0, 2.0, 1.0]; 4]), Some(false));
    assert_eq!(rounds_disagree(&[[1.0, 0.0, 2.0, 1.0]; 4]), None);
}

#[test]
fn rounds_have_answered_when_they_are_sure_or_twice_precise() {
    let sides = |rounds: i32, factor: f64, scatter: f64| {
        let round = |i: i32| [1.0, factor * (1.0 + scatter * f64::from(i % 3 - 1)), factor, 1.0];
        (0..rounds).map(round).collect::<Vec<_>>()
    };
    assert!(have_answered(&sides(6, 2.0, 0.1), 0.01));
    assert!(have_answered(&sides(9, 1.0, 0.001), 0.01));
    assert!(have_answered(&sides(6, 1.0, 0.0), 0.0));
    assert!(!have_answered(&sides(9, 1.0, 0.1), 0.01));
    // Not between two looks, and not before the first.
    let looks: Vec<i32> = (0..50)
        .filter(|&rounds| have_answered(&sides(rounds, 2.0, 0.0), 0.01))
        .collect();
    assert_eq!(looks, [6, 9, 13, 19, 28, 42]);
    // What is precise for the first time is looked at again.
    let mut rounds = sides(6, 1.0, 0.4);
    rounds.extend(sides(3, 1.0, 0.0));
    let detectable = |rounds: &[[f64; 4]]| Ratio::from_blocks(rounds).unwrap().detectable;
    let enough = f64::midpoint(detectable(&rounds), detectable(&rounds[..6]));
    assert!(!have_answered(&rounds, enough) && have_answered(&rounds, 2.0));
}

#[test]
fn an_order_is_seeded_and_its_second_half_is_the_first_reversed() {
    assert_eq!(order(1, 0, 0), Vec::<usize>::new());
    let mut firsts = [0; 3];
    for round in 0..300 {
        let order = order(5, round, 3);
        let (first, second) = order.split_at(3);
        assert!(first.iter().eq(second.iter().rev()), "{order:?}");
        let mut sorted = first.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
        firsts[first[0]] += 1;
    }
    assert!(firsts.iter().all(|&count| count > 60), "{firsts:?}");
    assert_eq!(order(5, 7, 4), order(5, 7, 4));
}
