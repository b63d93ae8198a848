//! The search for the knee, as a state machine: results in, the next load out.
//!
//! The load doubles (or halves) until one probe holds and one breaks. Then each load is drawn
//! from the middle of what the [`Knee`] still allows, which bisects on a logarithmic scale while
//! probes agree and repeats loads near the knee where they do not. When the interval is narrow
//! enough, two passes over the loads around it look for hysteresis. A probe after a failed one
//! waits, longer after each further failure. Probes that say nothing about the store are repeated,
//! and then bound the loads that can be asked.

use super::knee::Knee;
use super::passes::{Passes, RUNGS, knee_of, rungs};

/// Factor from load to load until one probe holds and one breaks.
const BRACKET_FACTOR: f64 = 2.0;
/// A load that cannot be asked, above one that held by less than this factor, ends the search.
const UNASKABLE_FACTOR: f64 = 1.1;
/// Void probes in a row after which their load counts as one that cannot be asked.
const VOID_MAX: u32 = 3;
/// Probes in a row that a disturbed machine, or a missing figure, may make void.
const DISTURBED_MAX: u32 = 5;
/// Most doublings of the wait after a failed probe.
const SETTLE_DOUBLINGS: u32 = 3;
/// Once the interval is narrow enough, the search goes on until this many probes are within 5 % of the
/// estimate, or this many were made since.
const PROBES_NEAR: usize = 6;
/// Part of the probability from which the next load is drawn.
const DRAWN_FROM: (f64, f64) = (0.35, 0.65);
/// Fractional part of the golden ratio: multiples of it are evenly spread over [0, 1).
const GOLDEN: f64 = 0.618_033_988_749_895;

/// The bounds of a search. Loads are samples per second, or series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchOptions {
    /// The first load; within `lowest` and `highest`.
    pub first: u64,
    /// The lowest load that may be probed; at least 1.
    pub lowest: u64,
    /// The highest load that may be probed.
    pub highest: u64,
    /// Width of the interval, as a share of its lower end, at which the search ends.
    pub tolerance: f64,
    /// Most probes, including those that say nothing.
    pub probes_max: u32,
    /// Most time for all probes and waits, in nanoseconds.
    pub time_max_ns: u64,
    /// Wait after a failed probe, in nanoseconds; it doubles with each further failure, up to eight
    /// times.
    pub settle_ns: u64,
    /// Whether the two passes are made.
    pub passes: bool,
    /// Decides which load of the middle is probed.
    pub seed: u64,
}

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Finds a load that holds and one that breaks.
    Bracket,
    /// Narrows the interval.
    Narrow,
    /// Part of the upward pass.
    Upwards,
    /// Part of the downward pass.
    Downwards,
}

/// The next probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its number, from 1.
    pub number: u32,
    /// Samples per second, or series.
    pub load: u64,
    /// What it is for.
    pub purpose: Purpose,
    /// Wait before it, in nanoseconds.
    pub settle_ns: u64,
}

/// What limited a probe or a search, where it was not the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The generator could not offer the load.
    Generator,
    /// Samples were lost between emitter and store.
    Wire,
    /// The machine was disturbed.
    Machine,
    /// The run lacks a figure of the objective.
    Objective,
    /// Every load up to the highest that may be probed held.
    Highest,
    /// Every load down to the lowest that may be probed broke.
    Lowest,
    /// The search was stopped, or time or probes ran out, before a load broke or held.
    Budget,
}

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// Every condition held.
    Held,
    /// A condition broke, and the store was the reason.
    Broke,
    /// The probe says nothing about the store.
    Void(Limit),
}

/// What happens next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run this probe, and [`record`](Search::record) its result.
    Probe(Probe),
    /// The search is over.
    Done(Finding),
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The store was the limit.
    Found {
        /// The load at which half of the probes that do not lapse hold.
        load: f64,
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
        /// Whether the interval is as narrow as was asked.
        narrow: bool,
        /// The two passes, if they were made.
        passes: Option<Passes>,
        /// What besides its budget or a stop ended it early; time or probes that ran out show only as
        /// `narrow: false`.
        ended: Option<Limit>,
    },
    /// There is no capacity, because something else was the limit.
    Limited {
        /// What it was.
        by: Limit,
        /// The highest load that held.
        held: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    load: u64,
    held: bool,
}

#[derive(Clone, Debug)]
struct Ladder {
    loads: Vec<u64>,
    resolution: f64,
    results: Vec<bool>,
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Search {
    options: SearchOptions,
    seen: Vec<Seen>,
    knee: Option<Knee>,
    ladder: Option<Ladder>,
    // The lowest load that could not be asked, and why.
    unaskable: Option<(u64, Limit)>,
    // Void probes in a row.
    voids: u32,
    failures: u32,
    narrow_since: Option<usize>,
    probes: u32,
    spent_ns: u64,
    longest_ns: u64,
    current: Option<Probe>,
    ended: Option<Limit>,
    is_stopped: bool,
}

impl Search {
    /// A search that has not begun.
    pub fn new(options: SearchOptions) -> Self {
        Self {
            options,
            seen: Vec::new(),
            knee: None,
            ladder: None,
            unaskable: None,
            voids: 0,
            failures: 0,
            narrow_since: None,
            probes: 0,
            spent_ns: 0,
            longest_ns: 0,
            current: None,
            ended: None,
            is_stopped: false,
        }
    }

    /// The next probe, or the result. Until [`record`](Self::record) is called the answer is the
    /// same.
    pub fn step(&mut self) -> Step {
        if let Some(probe) = self.current {
            return Step::Probe(probe);
        }
        let next = if self.is_stopped || self.ended.is_some() || self.is_exhausted() {
            None
        } else {
            self.next_load()
        };
        let Some((load, purpose)) = next else {
            return Step::Done(self.finding());
        };
        let settle_ns = self.settle_ns(purpose);
        self.probes += 1;
        let probe = Probe {
            number: self.probes,
            load,
            purpose,
            settle_ns,
        };
        self.current = Some(probe);
        Step::Probe(probe)
    }

    /// Takes in the result of the probe that [`step`](Self::step) returned, and how long it and the
    /// wait before it took, in nanoseconds. Without such a probe it does nothing.
    pub fn record(&mut self, result: ProbeResult, took_ns: u64) {
        let Some(probe) = self.current.take() else { return };
        self.spent_ns = self.spent_ns.saturating_add(took_ns);
        self.longest_ns = self.longest_ns.max(took_ns);
        match result {
            ProbeResult::Void(limit) => self.record_void(probe, limit),
            ProbeResult::Held => self.record_seen(probe, true),
            ProbeResult::Broke => self.record_seen(probe, false),
        }
    }

    /// Ends the search with what is known; a probe that was not recorded counts for nothing.
    pub fn stop(&mut self) {
        self.current = None;
        self.is_stopped = true;
    }

    fn record_seen(&mut self, probe: Probe, held: bool) {
        self.voids = 0;
        self.failures = if held { 0 } else { self.failures + 1 };
        if let Some(ladder) = &mut self.ladder {
            ladder.results.push(held);
        }
        // The downward pass comes straight from an overload, and would bias the estimate.
        if probe.purpose != Purpose::Downwards {
            self.seen.push(Seen { load: probe.load, held });
            match &mut self.knee {
                Some(knee) if knee.covers(probe.load as f64) => knee.observe(probe.load as f64, held),
                _ => self.knee = self.bracketed(),
            }
        }
    }

    /// A load that said nothing several times cannot be asked; on a disturbed machine no load can.
    fn record_void(&mut self, probe: Probe, limit: Limit) {
        self.voids += 1;
        self.failures += 1;
        let ends_search = matches!(limit, Limit::Machine | Limit::Objective);
        if self.voids < if ends_search { DISTURBED_MAX } else { VOID_MAX } {
            return;
        }
        self.voids = 0;
        if ends_search {
            self.ended = Some(limit);
            return;
        }
        if self.unaskable.is_none_or(|(load, _)| probe.load < load) {
            self.unaskable = Some((probe.load, limit));
        }
        if self.ladder.is_some() {
            // The passes end here; the interval stands.
            self.ended = Some(limit);
        }
    }

    /// The knee, as soon as one probe held and one broke.
    fn bracketed(&self) -> Option<Knee> {
        let held = self.seen.iter().filter(|seen| seen.held).map(|seen| seen.load).max()?;
        let broke = self.seen.iter().filter(|seen| !seen.held).map(|seen| seen.load).min()?;
        let (low, high) = (held.min(broke) as f64 / 8.0, held.max(broke) as f64 * 8.0);
        let low = low.max(self.options.lowest as f64 / BRACKET_FACTOR);
        let high = high.min(self.options.highest as f64 * BRACKET_FACTOR);
        let mut knee = Knee::between(low, high);
        for seen in &self.seen {
            knee.observe(seen.load as f64, seen.held);
        }
        Some(knee)
    }

    /// Whether another probe would exceed the bounds.
    fn is_exhausted(&self) -> bool {
        let with_another = self.spent_ns.saturating_add(self.longest_ns);
        self.probes >= self.options.probes_max || with_another > self.options.time_max_ns
    }

    fn settle_ns(&self, purpose: Purpose) -> u64 {
        if self.failures == 0 || purpose == Purpose::Downwards {
            return 0;
        }
        let doublings = (self.failures - 1).min(SETTLE_DOUBLINGS);
        self.options.settle_ns.saturating_mul(1 << doublings)
    }

    fn next_load(&mut self) -> Option<(u64, Purpose)> {
        if self.ladder.is_some() {
            return self.next_rung();
        }
        if self.knee.is_none() {
            return self.next_bracket().map(|load| (load, Purpose::Bracket));
        }
        let load = self.next_narrow()?;
        let purpose = if self.ladder.is_some() {
            Purpose::Upwards
        } else {
            Purpose::Narrow
        };
        Some((load, purpose))
    }

    /// Doubles above the loads that held, or halves below those that broke.
    fn next_bracket(&mut self) -> Option<u64> {
        let held = self.highest_held();
        let broke = self.seen.iter().filter(|seen| !seen.held).map(|seen| seen.load).min();
        let SearchOptions { lowest, highest, .. } = self.options;
        let scaled = |load: u64, factor: f64| (load as f64 * factor).round() as u64;
        match (held, broke, self.unaskable) {
            (None, None, None) => Some(self.options.first.clamp(lowest, highest)),
            (Some(held), _, Some((load, limit))) => {
                let between = (held as f64 * load as f64).sqrt().round() as u64;
                if load as f64 / held as f64 <= UNASKABLE_FACTOR || between <= held {
                    self.ended = Some(limit);
                    return None;
                }
                Some(between)
            }
            (Some(held), _, None) if held >= highest => {
                self.ended = Some(Limit::Highest);
                None
            }
            (Some(held), _, None) => Some(scaled(held, BRACKET_FACTOR).clamp(held + 1, highest)),
            (None, broke, unaskable) => {
                let load = broke.into_iter().chain(unaskable.map(|(load, _)| load)).min()?;
                if load <= lowest {
                    self.ended = Some(unaskable.map_or(Limit::Lowest, |(_, limit)| limit));
                    return None;
                }
                Some(scaled(load, 1.0 / BRACKET_FACTOR).max(lowest))
            }
        }
    }

    fn highest_held(&self) -> Option<u64> {
        self.seen.iter().filter(|seen| seen.held).map(|seen| seen.load).max()
    }

    /// A load from the middle of the knee's probability; or the first of the passes, or nothing,
    /// once the interval is narrow enough.
    fn next_narrow(&mut self) -> Option<u64> {
        let knee = self.knee.as_ref()?;
        let (low, found, high) = knee.estimate();
        self.ended = self.beyond(knee);
        if self.ended.is_some() {
            return None;
        }
        if self.is_narrow(low, high) {
            let since = *self.narrow_since.get_or_insert(self.seen.len());
            let near = self.seen.iter().filter(|seen| is_near(seen.load as f64, found)).count();
            if near >= PROBES_NEAR || self.seen.len() >= since + PROBES_NEAR {
                return self.begin_passes(low, found, high);
            }
        }
        let (from, to) = DRAWN_FROM;
        let drawn = (self.options.seed as f64 * GOLDEN + f64::from(self.probes) * GOLDEN).fract();
        let load = knee.quantile(from + (to - from) * drawn).round() as u64;
        let highest = self
            .unaskable
            .map_or(self.options.highest, |(load, _)| load.saturating_sub(1));
        Some(load.clamp(self.options.lowest, highest.max(self.options.lowest)))
    }

    /// What keeps the search from the knee, if it is more probably beyond the loads that can be
    /// asked than among them.
    fn beyond(&self, knee: &Knee) -> Option<Limit> {
        let SearchOptions { lowest, highest, .. } = self.options;
        let (top, limit) = self.unaskable.unwrap_or((highest, Limit::Highest));
        if knee.above(top as f64) > 0.5 {
            return Some(limit);
        }
        (knee.above(lowest as f64) < 0.5).then_some(Limit::Lowest)
    }

    fn is_narrow(&self, low: f64, high: f64) -> bool {
        high / low - 1.0 <= self.options.tolerance || high - low <= 1.0
    }

    fn begin_passes(&mut self, low: f64, found: f64, high: f64) -> Option<u64> {
        if !self.options.passes {
            return None;
        }
        let (loads, resolution) = rungs(low, found, high);
        let first = loads.first().copied();
        self.ladder = Some(Ladder {
            loads,
            resolution,
            results: Vec::new(),
        });
        first
    }

    fn next_rung(&self) -> Option<(u64, Purpose)> {
        let ladder = self.ladder.as_ref()?;
        let done = ladder.results.len();
        if done < RUNGS {
            return ladder.loads.get(done).map(|load| (*load, Purpose::Upwards));
        }
        let back = (2 * RUNGS - 1).checked_sub(done)?;
        ladder.loads.get(back).map(|load| (*load, Purpose::Downwards))
    }

    fn finding(&self) -> Finding {
        let limited = |by| Finding::Limited {
            by,
            held: self.highest_held(),
        };
        match (&self.knee, self.ended, &self.ladder) {
            (None, ended, _) => limited(ended.unwrap_or(Limit::Budget)),
            // The probes before a disturbance stand, and the interval says how little they are.
            (Some(_), Some(limit), None) if !matches!(limit, Limit::Machine | Limit::Objective) => limited(limit),
            (Some(knee), _, ladder) => {
                let (low, load, high) = knee.estimate();
                Finding::Found {
                    load,
                    low,
                    high,
                    narrow: self.is_narrow(low, high),
                    passes: ladder.as_ref().and_then(passes),
                    ended: self.ended,
                }
            }
        }
    }
}

/// Whether a load is within a twentieth of the estimate.
fn is_near(load: f64, found: f64) -> bool {
    (load / found).ln().abs() <= 0.05
}

/// What complete passes saw.
fn passes(ladder: &Ladder) -> Option<Passes> {
    let lowest = *ladder.loads.first()?;
    if ladder.results.len() < 2 * RUNGS {
        return None;
    }
    let (up, down) = ladder.results.split_at(RUNGS);
    let knee = |results: &[bool]| {
        let held = results.iter().filter(|held| **held).count();
        knee_of(lowest, ladder.resolution, held)
    };
    Some(Passes {
        upwards: knee(up),
        downwards: knee(down),
        resolution: ladder.resolution,
    })
}

#[cfg(test)]
mod tests;
