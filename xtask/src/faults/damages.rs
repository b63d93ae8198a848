//! Damage: changes one file of a store, then opens the store.

use anyhow::{Result, bail};
use rustix::process::Signal;

use super::corrupt::corrupt;
use super::judge::{AllowedLoss, Outcome, SentTicks, examine};
use super::rng::Rng;
use super::service::StartingProcess;
use super::stores::Guarantee;
use super::trial::{Trial, TrialFolder};

/// Ticks of a place that is damaged.
const TICKS: u64 = 120;

/// A place with samples, of which copies are damaged.
#[derive(Debug)]
pub(super) struct Template {
    place: TrialFolder,
    given: SentTicks,
}

impl Template {
    /// Fills a place in two lives; the second is killed, or ends in order.
    pub(super) fn new(trial: &Trial<'_>, seed: u64) -> Result<Self> {
        let mut rng = Rng::new(seed);
        let place = TrialFolder::new(trial, "template", seed)?;
        let mut given = SentTicks::default();
        let ends = [Signal::TERM, rng.pick(&[Signal::TERM, Signal::KILL, Signal::KILL])];
        for end in ends {
            let Ok(service) = StartingProcess::spawn(trial.program, &[], trial.subject, &place.root)?.listening()?
            else {
                bail!("{} does not listen", trial.subject.name);
            };
            let mut client = service.client(trial.subject)?;
            for _ in 0..TICKS / 4 + rng.below(TICKS / 2) {
                let tick = given.next();
                let answer = client.send(tick);
                if !given.note(tick, &answer) {
                    bail!("{} does not take tick {tick}: {answer:?}", trial.subject.name);
                }
            }
            service.stop(end);
        }
        given.faults.push(given.acked.len());
        Ok(Self { place, given })
    }

    /// Damages a copy, and opens it.
    pub(super) fn corrupted(&self, trial: &Trial<'_>, seed: u64) -> Result<(Outcome, String)> {
        let place = TrialFolder::new(trial, "damage", seed)?;
        place.fill(&self.place.root)?;
        let Some(corruption) = corrupt(&place.root, seed)? else {
            bail!("{} has no file that can be damaged", trial.subject.name);
        };
        let name = corruption
            .file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let allowed = AllowedLoss {
            // What a kill takes is gone with or without damage.
            keeps: match trial.subject.after_kill {
                Guarantee::Nothing => Guarantee::All,
                keeps => keeps,
            },
            is_blind: corruption
                .with
                .iter()
                .chain([&corruption.file])
                .any(|file| trial.subject.is_blind(&file.to_string_lossy())),
        };
        let mut given = self.given.clone();
        let outcome = examine(trial.program, trial.subject, &place.root, &mut given, allowed)?;
        place.keep_if_wrong(&outcome);
        Ok((
            outcome,
            format!("seed {seed}, {:?} {name} at {}", corruption.kind, corruption.at),
        ))
    }
}
