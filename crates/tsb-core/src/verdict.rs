//! The verdict: whether a run's figures mean anything, and why.
//!
//! Decided in one fixed order; the first that applies is the status, and every one that
//! applies is a reason. Thresholds are the constants here; each reason shows the measured
//! figure beside them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An asked rate above this share of the ceiling says nothing about the store.
pub const CEILING_SHARE_MAX: f64 = 0.9;
/// A p99 of our own lag above this share of the interval spoils the schedule.
pub const LAG_SHARE_MAX: f64 = 0.1;
/// A held rate below this share of the asked one is the store's limit.
pub const HELD_SHARE_MIN: f64 = 0.99;
/// CPU stolen or waited for above this share of the time makes a run noisy.
pub const NOISE_SHARE_MAX: f64 = 0.02;

/// The words, in the order in which they are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Status {
    /// The ledger is unbalanced, or acknowledged data is lost or altered.
    Invalid,
    /// Nothing was read back.
    Unverified,
    /// The generator was, or may have been, what limited the rate.
    GeneratorLimited,
    /// The store did not hold the asked rate.
    StoreLimited,
    /// Others used the machine.
    Noisy,
    /// None of these.
    Valid,
}

impl Status {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::Unverified => "UNVERIFIED",
            Self::GeneratorLimited => "GENERATOR-LIMITED",
            Self::StoreLimited => "STORE-LIMITED",
            Self::Noisy => "NOISY",
            Self::Valid => "VALID",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A status and what led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The first word that applies.
    pub status: Status,
    /// Every reason that applies, or why the run is valid; with measured figures.
    pub reasons: Vec<String>,
}

/// What is judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Equations of the ledger that do not hold, and failures of either side.
    pub violations: Vec<String>,
    /// Samples accepted and not there.
    pub lost: u64,
    /// Samples with another value.
    pub altered: u64,
    /// Copies beyond one, and samples that nobody sent.
    pub duplicated: u64,
    /// Samples that were read back and compared.
    pub verified: u64,
    /// Why nothing was read back; `None`: it was.
    pub unverified: Option<String>,
    /// Asked samples per second; `None` in a closed loop.
    pub asked_per_second: Option<f64>,
    /// Held samples per second.
    pub held_per_second: f64,
    /// The generator's ceiling, where it was measured.
    pub ceiling_per_second: Option<f64>,
    /// p99 of our own part of the lag: while the store was idle.
    pub own_lag_p99_ns: Option<u64>,
    /// Shortest interval of the workload in real time.
    pub interval_ns: Option<u64>,
    /// Share of the time that CPU was stolen or waited for. in [0, 1]
    pub noise_share: Option<f64>,
}

/// Appends the reasons, if any, for which a word applies.
type Check = fn(&Evidence, &mut Vec<String>);

impl Evidence {
    /// Judges.
    pub fn verdict(&self) -> Verdict {
        let mut reasons = Vec::new();
        let mut status = Status::Valid;
        let checks: [(Status, Check); 5] = [
            (Status::Invalid, Self::invalid),
            (Status::Unverified, Self::unverified),
            (Status::GeneratorLimited, Self::generator_limited),
            (Status::StoreLimited, Self::store_limited),
            (Status::Noisy, Self::noisy),
        ];
        for (candidate, check) in checks {
            let before = reasons.len();
            check(self, &mut reasons);
            if reasons.len() > before {
                status = status.min(candidate);
            }
        }
        if reasons.is_empty() {
            reasons.push(self.soundness());
        }
        Verdict { status, reasons }
    }

    fn invalid(&self, reasons: &mut Vec<String>) {
        reasons.extend(self.violations.iter().cloned());
        let counts = [
            (self.lost, "were acknowledged and are not there"),
            (self.altered, "have another value than was sent"),
            (self.duplicated, "are there more often than they were sent"),
        ];
        let broken = counts.iter().filter(|(count, _)| *count > 0);
        reasons.extend(broken.map(|(count, what)| format!("{count} samples {what}")));
    }

    fn unverified(&self, reasons: &mut Vec<String>) {
        reasons.extend(self.unverified.clone());
    }

    fn generator_limited(&self, reasons: &mut Vec<String>) {
        if let (Some(asked), Some(ceiling)) = (self.asked_per_second, self.ceiling_per_second)
            && asked > CEILING_SHARE_MAX * ceiling
        {
            reasons.push(format!(
                "asked {asked:.0}/s is {:.2} of the generator's ceiling of {ceiling:.0}/s (at most {CEILING_SHARE_MAX})",
                asked / ceiling
            ));
        }
        if let (Some(lag), Some(interval)) = (self.own_lag_p99_ns, self.interval_ns)
            && lag as f64 > LAG_SHARE_MAX * interval as f64
        {
            reasons.push(format!(
                "the generator itself was {:.1} ms late at p99 (at most {LAG_SHARE_MAX} of the interval of {:.1} ms)",
                lag as f64 / 1e6,
                interval as f64 / 1e6
            ));
        }
    }

    fn store_limited(&self, reasons: &mut Vec<String>) {
        if let Some(asked) = self.asked_per_second
            && self.held_per_second < HELD_SHARE_MIN * asked
        {
            reasons.push(format!(
                "held {:.0}/s of {asked:.0}/s asked: {:.3} (at least {HELD_SHARE_MIN})",
                self.held_per_second,
                self.held_per_second / asked
            ));
        }
    }

    fn noisy(&self, reasons: &mut Vec<String>) {
        if let Some(share) = self.noise_share
            && share > NOISE_SHARE_MAX
        {
            reasons.push(format!(
                "others took the CPU for {:.1} % of the time (at most {:.0} %)",
                share * 100.0,
                NOISE_SHARE_MAX * 100.0
            ));
        }
    }

    fn soundness(&self) -> String {
        let held = self.asked_per_second.map_or(String::new(), |asked| {
            format!(
                ", {:.4} of the asked rate held",
                self.held_per_second / asked.max(f64::MIN_POSITIVE)
            )
        });
        let ceiling = match (self.asked_per_second, self.ceiling_per_second) {
            (Some(asked), Some(ceiling)) => format!(", {:.4} of the generator's ceiling used", asked / ceiling),
            _ => String::new(),
        };
        format!("the ledger balances, {} samples verified{held}{ceiling}", self.verified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Evidence {
        Evidence {
            verified: 540_000,
            asked_per_second: Some(54_000.0),
            held_per_second: 54_000.0,
            ceiling_per_second: Some(2e7),
            own_lag_p99_ns: Some(2_000),
            interval_ns: Some(1_000_000_000),
            noise_share: Some(0.001),
            ..Evidence::default()
        }
    }

    #[test]
    fn a_sound_run_is_valid_and_says_why() {
        let verdict = sound().verdict();
        assert_eq!(verdict.status, Status::Valid);
        assert_eq!(
            verdict.reasons,
            [
                "the ledger balances, 540000 samples verified, 1.0000 of the asked rate held, 0.0027 of the generator's ceiling used"
            ]
        );
    }

    #[test]
    fn each_word_has_its_evidence_and_the_first_one_stands() {
        let noisy = Evidence {
            noise_share: Some(0.05),
            ..sound()
        };
        assert_eq!(noisy.verdict().status, Status::Noisy);
        let slow_store = Evidence {
            held_per_second: 53_000.0,
            ..noisy
        };
        assert_eq!(slow_store.verdict().status, Status::StoreLimited);
        let starved = Evidence {
            own_lag_p99_ns: Some(200_000_000),
            ..slow_store
        };
        assert_eq!(starved.verdict().status, Status::GeneratorLimited);
        let unread = Evidence {
            unverified: Some("told not to".to_owned()),
            ..starved
        };
        assert_eq!(unread.verdict().status, Status::Unverified);
        let broken = Evidence { lost: 1, ..unread };
        let verdict = broken.verdict();
        assert_eq!((verdict.status, verdict.reasons.len()), (Status::Invalid, 5));
    }

    #[test]
    fn each_kind_of_damage_alone_makes_a_run_invalid() {
        let damages = [
            Evidence { lost: 1, ..sound() },
            Evidence { altered: 1, ..sound() },
            Evidence {
                duplicated: 1,
                ..sound()
            },
            Evidence {
                violations: vec!["due 2 is not shed + sent = 1".to_owned()],
                ..sound()
            },
        ];
        for damage in damages {
            let verdict = damage.verdict();
            assert_eq!(verdict.status, Status::Invalid, "{damage:?}");
            assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
        }
    }

    #[test]
    fn a_rate_near_the_ceiling_is_the_generators_limit() {
        let near = Evidence {
            ceiling_per_second: Some(59_000.0),
            ..sound()
        };
        assert_eq!(near.verdict().status, Status::GeneratorLimited);
        let closed = Evidence {
            asked_per_second: None,
            ceiling_per_second: Some(1.0),
            ..sound()
        };
        assert_eq!(closed.verdict().status, Status::Valid);
    }

    #[test]
    fn the_json_has_the_words_of_the_design() {
        for status in [
            Status::Invalid,
            Status::Unverified,
            Status::GeneratorLimited,
            Status::StoreLimited,
            Status::Noisy,
            Status::Valid,
        ] {
            assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{status}\""));
        }
    }
}
