//! The capacity of the report, from what a search found.

use std::collections::BTreeMap;

use tsb_core::report::capacity::{Capacity, Hysteresis, ProbeReport};

use super::drive::load_words;
use super::load::Find;
use super::search::{Finding, Limit, Purpose};

/// How intervals are computed, for the report.
const METHOD: &str = "the load at which half of the probes that do not lapse hold, with the interval that leaves 2.5 % of its posterior \
     probability on each side, over all probes but those of the downward pass; how much the knee varies from probe to \
     probe, and how often a probe breaks at any load, are unknowns of the same fit";

impl Purpose {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bracket => "bracket",
            Self::Narrow => "narrow",
            Self::Upwards => "upwards",
            Self::Downwards => "downwards",
        }
    }
}

impl Limit {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generator => "generator",
            Self::Wire => "wire",
            Self::Machine => "machine",
            Self::Objective => "objective",
            Self::Highest => "highest-load",
            Self::Lowest => "lowest-load",
            Self::Budget => "budget",
        }
    }

    /// What it was, as a sentence.
    const fn why(self) -> &'static str {
        match self {
            Self::Generator => "the generator cannot offer more: add --workers, or larger batches",
            Self::Wire => "samples were lost between emitter and store: the wire was the limit",
            Self::Machine => {
                "the machine was disturbed in several probes in a row: leave it alone, and look at tsb doctor"
            }
            Self::Objective => "the runs lack a figure that the objective names",
            Self::Highest => "every load held, up to the highest that may be probed",
            Self::Lowest => "every load broke, down to the lowest that may be probed",
            Self::Budget => {
                "the search ended before one load held and one broke: see the notes, or give it more --max-time or --max-probes"
            }
        }
    }
}

/// The capacity of the report.
pub(super) fn capacity(finding: &Finding, probes: Vec<ProbeReport>, find: Find) -> Capacity {
    let mut capacity = Capacity::default();
    match finding {
        Finding::Found {
            load,
            low,
            high,
            narrow,
            passes,
            ended,
        } => {
            capacity.found_per_second = Some(*load);
            capacity.low_per_second = Some(*low);
            capacity.high_per_second = Some(*high);
            capacity.narrow = *narrow;
            METHOD.clone_into(&mut capacity.method);
            "store".clone_into(&mut capacity.limited_by);
            let first = broke_first(&probes, *low);
            capacity.why = format!(
                "the store was the limit: {} broke at the lowest loads",
                first.as_deref().unwrap_or("no condition")
            );
            if let Some(limit) = ended {
                capacity.why = format!("{}; the search ended early: {}", capacity.why, limit.why());
            }
            capacity.broke_first = first;
            capacity.hysteresis = passes.map(|passes| {
                let seen = passes.has_hysteresis();
                Hysteresis::new(passes.upwards, passes.downwards, passes.resolution, seen)
            });
        }
        Finding::Limited { by, held } => {
            by.name().clone_into(&mut capacity.limited_by);
            capacity.low_per_second = held.map(|held| held as f64);
            let highest = held.map_or_else(
                || "no load held".to_owned(),
                |held| format!("the highest load that held is {}", load_words(held as f64, find)),
            );
            let absent = match by {
                Limit::Objective => absent(&probes),
                _ => String::new(),
            };
            capacity.why = format!("{}{absent}; {highest}", by.why());
            capacity.broke_first = broke_first(&probes, 0.0);
        }
    }
    capacity.probes = probes;
    capacity
}

/// Why the last probe lacked a figure.
fn absent(probes: &[ProbeReport]) -> String {
    let broken = probes
        .last()
        .and_then(|probe| probe.broke.iter().find(|broken| broken.absent));
    broken.map_or_else(String::new, |broken| format!(": {}", broken.measured))
}

/// The condition that broke most often in the probes from slightly below the knee to slightly above
/// it; of several, the one at the lowest load.
fn broke_first(probes: &[ProbeReport], low: f64) -> Option<String> {
    const NEAR: f64 = 1.1;
    let broke = |probe: &&ProbeReport| probe.result == "broke" && probe.load_per_second as f64 * NEAR >= low;
    let lowest = probes.iter().filter(broke).map(|probe| probe.load_per_second).min()?;
    let near = probes
        .iter()
        .filter(broke)
        .filter(|probe| probe.load_per_second as f64 <= lowest as f64 * NEAR);
    // Conditions by how often they broke, and the lowest load at which they did.
    let mut conditions: BTreeMap<&str, (u32, u64)> = BTreeMap::new();
    for probe in near {
        for broken in &probe.broke {
            let (count, load) = conditions.entry(&broken.condition).or_insert((0, u64::MAX));
            *count += 1;
            *load = probe.load_per_second.min(*load);
        }
    }
    let first = conditions
        .into_iter()
        .max_by_key(|(_, (count, load))| (*count, u64::MAX - load));
    first.map(|(condition, _)| condition.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::report::capacity::BrokenCondition;

    fn broke(load: u64, conditions: &[&str]) -> ProbeReport {
        let mut probe = ProbeReport::default();
        probe.load_per_second = load;
        probe.result = "broke".to_owned();
        probe.broke = conditions
            .iter()
            .map(|condition| BrokenCondition::new(*condition, ""))
            .collect();
        probe
    }

    #[test]
    fn the_condition_that_broke_first_is_that_near_the_knee() {
        let probes = [
            broke(50, &["a stall"]),
            broke(101, &["response.p99<50ms"]),
            broke(103, &["response.p99<50ms", "not STORE-LIMITED"]),
            broke(105, &["response.p99<50ms", "not STORE-LIMITED"]),
            broke(200, &["not STORE-LIMITED", "staleness.p99<2s"]),
            broke(400, &["not STORE-LIMITED", "staleness.p99<2s"]),
        ];
        assert_eq!(broke_first(&probes, 100.0).as_deref(), Some("response.p99<50ms"));
        assert_eq!(broke_first(&[], 100.0), None);
    }

    #[test]
    fn without_a_capacity_nothing_is_found_and_the_reason_is_said() {
        for limit in [
            Limit::Generator,
            Limit::Wire,
            Limit::Machine,
            Limit::Objective,
            Limit::Highest,
            Limit::Lowest,
            Limit::Budget,
        ] {
            let finding = Finding::Limited {
                by: limit,
                held: Some(54_000),
            };
            let capacity = capacity(&finding, Vec::new(), Find::Rate);
            let json = serde_json::to_value(&capacity).unwrap();
            assert_eq!(json.get("found_per_second"), None);
            assert_eq!(json["limited_by"], limit.name());
            assert_eq!(json["low_per_second"], 54_000.0);
            assert!(capacity.why.contains("54,000 samples/s"), "{}", capacity.why);
        }
    }
}
