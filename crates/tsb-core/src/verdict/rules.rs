//! The rules of the verdict, in their fixed order.

use super::{
    CEILING_SHARE_MAX, COMPARED_SHARE_MIN, Evidence, HELD_SHARE_MIN, LAG_NS_MAX, LAG_SHARE_MAX, Measured,
    NOISE_SHARE_MAX, REFUSED_SHARE_MAX, STRAYED_SHARE_MAX, Status, Verdict, beside,
};

/// The reasons and figures found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    reasons: Vec<(Status, String)>,
    measured: Vec<Measured>,
}

impl Findings {
    fn add(&mut self, status: Status, reason: impl Into<String>) {
        self.reasons.push((status, reason.into()));
    }

    /// Records a figure, and a reason if its limit is crossed. `{figure}` in `words` is replaced
    /// by the figure.
    pub(super) fn weigh(&mut self, measured: Measured, words: &str) {
        if measured.is_crossed() {
            self.add(measured.status, words.replace("{figure}", &measured.figure()));
        }
        self.measured.push(measured);
    }
}

/// A share of a whole; `None` if the whole is 0.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Evidence {
    /// Applies all rules in order.
    pub fn verdict(&self) -> Verdict {
        let mut findings = Findings::default();
        for rule in [
            Self::invalid,
            Self::unverified,
            Self::generator_limited,
            Self::transport_limited,
            Self::store_limited,
            Self::queries,
            Self::noisy,
        ] {
            rule(self, &mut findings);
        }
        let Findings { reasons, measured } = findings;
        let status = reasons.iter().map(|(status, _)| *status).min();
        let reasons = if reasons.is_empty() {
            vec![self.soundness()]
        } else {
            reasons.into_iter().map(|(_, reason)| reason).collect()
        };
        Verdict {
            status: status.unwrap_or(Status::Valid),
            reasons,
            measured,
        }
    }

    fn invalid(&self, findings: &mut Findings) {
        for violation in &self.violations {
            findings.add(Status::Invalid, violation.as_str());
        }
        let counts = [
            (self.lost, "were acknowledged and are not there"),
            (self.altered, "have another value than was sent"),
            (self.duplicated, "are there more often than they were sent"),
        ];
        for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
            findings.add(Status::Invalid, format!("{count} samples {what}"));
        }
    }

    fn unverified(&self, findings: &mut Findings) {
        if let Some(unread) = &self.unread {
            findings.add(Status::Unverified, unread.as_str());
            return;
        }
        let compared = self.compared.saturating_sub(self.perhaps_lost());
        let Some(share) = share(compared, self.accepted) else {
            findings.add(Status::Unverified, self.why_nothing_was_accepted());
            return;
        };
        let why = self.uncompared.iter().filter(|uncompared| uncompared.samples > 0);
        let why = why.map(|uncompared| format!("{} {}", uncompared.samples, uncompared.why));
        let why: Vec<String> = why.chain(self.perhaps_lost_in_words()).collect();
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {}", why.join("; "))
        };
        findings.weigh(
            Measured::share_at_least(
                Status::Unverified,
                "compared, of the accepted samples",
                share,
                COMPARED_SHARE_MIN,
            ),
            &format!(
                "{} of {} accepted samples could be compared with what was sent, {{figure}}{why}",
                compared, self.accepted
            ),
        );
    }

    /// Number of samples that the store may have lost, without proof.
    fn perhaps_lost(&self) -> u64 {
        self.lost_at_most.map_or(0, |at_most| at_most.saturating_sub(self.lost))
    }

    fn perhaps_lost_in_words(&self) -> Option<String> {
        let samples = self.perhaps_lost();
        (samples > 0).then(|| {
            format!(
                "{samples} may have been lost by the store or on the way, and it is unknown which: reduce the losses on the way to find out"
            )
        })
    }

    /// Says how far the last samples got, and what to do about it.
    fn why_nothing_was_accepted(&self) -> String {
        let Self {
            due,
            sent,
            received,
            refused,
            ..
        } = self;
        let why = if *due == 0 {
            "nothing was due: run for longer than the interval of the series, or leave out fewer samples".to_owned()
        } else if *sent == 0 {
            format!("none of the {due} samples due was sent")
        } else if *received == 0 {
            format!("none of the {sent} samples sent reached the store")
        } else {
            format!("the store refused {refused} of the {received} samples that reached it")
        };
        format!("no sample was accepted, so there is nothing to verify: {why}")
    }

    fn generator_limited(&self, findings: &mut Findings) {
        // A closed loop has no asked rate, so this rule does not apply to it.
        if let (Some(mean), Some(ceiling)) = (self.asked_per_second, self.ceiling_per_second)
            && ceiling > 0.0
        {
            // For a schedule with changing rates, the highest one.
            let asked = self.peak_asked_per_second.map_or(mean, |peak| peak.max(mean));
            findings.weigh(
                Measured::share_at_most(
                    Status::GeneratorLimited,
                    "asked, of the generator's ceiling",
                    asked / ceiling,
                    CEILING_SHARE_MAX,
                ),
                &format!("asked {asked:.0}/s of the generator's ceiling of {ceiling:.0}/s: {{figure}}"),
            );
        }
        if let (Some(lag), Some(interval)) = (self.own_lag_p99_ns, self.interval_ns) {
            let interval_ms = interval as f64 / 1e6;
            let limit = (LAG_SHARE_MAX * interval_ms).min(LAG_NS_MAX as f64 / 1e6);
            let measured = Measured {
                unit: "ms".to_owned(),
                ..Measured::share_at_most(
                    Status::GeneratorLimited,
                    "p99 of the generator's own lag",
                    lag as f64 / 1e6,
                    limit,
                )
            };
            findings.weigh(
                measured,
                &format!("the generator itself was late, at p99 by {{figure}}; the interval is {interval_ms} ms"),
            );
        }
    }

    fn transport_limited(&self, findings: &mut Findings) {
        let undelivered = self.undelivered.iter().map(|undelivered| undelivered.samples).sum();
        let Some(share) = share(undelivered, self.sent) else {
            return;
        };
        let places = self.undelivered.iter().filter(|undelivered| undelivered.samples > 0);
        let places: Vec<String> = places
            .map(|undelivered| format!("{} {}", undelivered.samples, undelivered.place))
            .collect();
        findings.weigh(
            Measured::share_at_most(
                Status::TransportLimited,
                "lost between emitter and store, of the samples sent",
                share,
                STRAYED_SHARE_MAX,
            ),
            &format!(
                "{undelivered} of {} samples sent did not reach the store, {{figure}}: {}",
                self.sent,
                places.join("; ")
            ),
        );
    }

    /// Smallest share of the asked rate that a store must hold: of the time in which this process
    /// ran, because a store receives nothing while the process stands still.
    fn held_share_min(&self) -> f64 {
        let stood_still = self.noise.as_ref().map_or(0.0, |noise| noise.late_share);
        if stood_still > NOISE_SHARE_MAX {
            HELD_SHARE_MIN * (1.0 - stood_still.min(1.0))
        } else {
            HELD_SHARE_MIN
        }
    }

    fn store_limited(&self, findings: &mut Findings) {
        if let Some(asked) = self.asked_per_second
            && asked > 0.0
        {
            findings.weigh(
                Measured::share_at_least(
                    Status::StoreLimited,
                    "held, of the asked rate",
                    self.held_per_second / asked,
                    self.held_share_min(),
                ),
                &format!("held {:.0}/s of {asked:.0}/s asked: {{figure}}", self.held_per_second),
            );
        }
        if let (Some(peak), Some(kept)) = (self.peak_asked_per_second, self.peak_kept_share) {
            findings.weigh(
                Measured::share_at_least(
                    Status::StoreLimited,
                    "held at the highest rate, of what was due by then",
                    kept,
                    HELD_SHARE_MIN,
                ),
                &format!(
                    "of what was due by the end of the interval with the highest rate, {peak:.0}/s, a share of {{figure}} \
                     was accepted by the end of the next interval; the rest was worked off later, if at all"
                ),
            );
        }
        for phase in &self.phases {
            findings.weigh(
                Measured::share_at_least(
                    Status::StoreLimited,
                    &format!("phase {}: held by its end, of what was due", phase.name),
                    phase.kept_share,
                    HELD_SHARE_MIN,
                ),
                &format!(
                    "at the end of phase {} the store was behind: of what was due in it, a share of {{figure}} was \
                     accepted by the end of the next interval",
                    phase.name
                ),
            );
        }
        if let Some(refused) = share(self.refused, self.received) {
            findings.weigh(
                Measured::share_at_most(
                    Status::StoreLimited,
                    "refused, of the samples that the store received",
                    refused,
                    REFUSED_SHARE_MAX,
                ),
                &format!(
                    "the store refused {} of the {} samples that it received: {{figure}}",
                    self.refused, self.received
                ),
            );
        }
    }

    fn noisy(&self, findings: &mut Findings) {
        let Some(noise) = &self.noise else { return };
        let (stolen, foreign) = (noise.stolen_share, noise.foreign_share);
        if stolen.is_some() || foreign.is_some() {
            let (stolen, foreign) = (stolen.unwrap_or(0.0), foreign.unwrap_or(0.0));
            findings.weigh(
                Measured::share_at_most(
                    Status::Noisy,
                    "CPU taken from the run by others, of the time",
                    stolen + foreign,
                    NOISE_SHARE_MAX,
                ),
                &format!(
                    "others took the CPU while the run wanted it, for a share of the time of {{figure}}: \
                     {stolen:.4} was stolen by the hypervisor, {foreign:.4} was used by other processes \
                     (a server of the run's own is named with --watch-pid)"
                ),
            );
        }
        findings.weigh(
            Measured::share_at_most(
                Status::Noisy,
                "the process stood still, of the time",
                noise.late_share,
                NOISE_SHARE_MAX,
            ),
            &format!(
                "the process stood still (stopped, paused or swapped out) for a share of the time of {{figure}}, \
                 once for {:.1} ms",
                noise.late_max_ms
            ),
        );
    }

    fn soundness(&self) -> String {
        let held = self.asked_per_second.map_or(String::new(), |asked| {
            let held = self.held_per_second / asked.max(f64::MIN_POSITIVE);
            format!(", {} of the asked rate held", beside(held, HELD_SHARE_MIN, 4))
        });
        let ceiling = match (self.asked_per_second, self.ceiling_per_second) {
            (Some(mean), Some(ceiling)) if ceiling > 0.0 => {
                let asked = self.peak_asked_per_second.map_or(mean, |peak| peak.max(mean));
                let used = beside(asked / ceiling, CEILING_SHARE_MAX, 4);
                format!(", {used} of the generator's ceiling used")
            }
            (None, Some(ceiling)) if ceiling > 0.0 => {
                format!(
                    ", {:.4} of the generator's ceiling held",
                    self.held_per_second / ceiling
                )
            }
            _ => String::new(),
        };
        let perhaps = self.perhaps_lost_in_words();
        let perhaps = perhaps.map_or(String::new(), |words| format!("; {words}"));
        format!(
            "the ledger balances, {} samples verified{held}{ceiling}{}{perhaps}",
            self.verified,
            self.right_answers()
        )
    }
}
