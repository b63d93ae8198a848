//! Reads the keys of a phase, from a run file or from `--set NAME.KEY=VALUE`.

use tsb_run::plan::{PhaseFaults, QueryStream, RunPhase};
use tsb_run::spec::or_nearest;
use tsb_run::units;

/// The key of a table of faults.
pub(super) const FAULTS: &str = "faults";

/// The keys of a phase.
pub const PHASE_KEYS: [&str; 5] = ["name", "duration", "rate", "queries", FAULTS];

/// The keys of its faults.
pub const FAULT_KEYS: [&str; 4] = ["rate", "stall", "stall-every", "error-one-in"];

/// A phase whose keys are being read.
#[derive(Debug, Default)]
pub(super) struct PhaseDraft {
    name: Option<String>,
    duration_ns: Option<u64>,
    // At the beginning and, if it changes, at the end.
    rate: Option<(u64, Option<u64>)>,
    faults: PhaseFaults,
    queries: Vec<QueryStream>,
}

impl PhaseDraft {
    /// A draft that holds a phase already.
    fn of(phase: &RunPhase) -> Self {
        Self {
            name: Some(phase.name.clone()),
            duration_ns: Some(phase.duration_ns),
            rate: Some((phase.rate_per_second, phase.to_per_second)),
            faults: phase.faults,
            queries: phase.queries.clone(),
        }
    }

    /// Reads one key.
    ///
    /// # Errors
    /// If there is no such key, or if it does not take this value.
    pub(super) fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            "name" => self.name = Some(text.to_owned()),
            "duration" => self.duration_ns = Some(units::parse_duration(text)?),
            "rate" => self.rate = Some(rate(text)?),
            "queries" => self.queries = QueryStream::parse_list(text).map_err(|why| why.to_string())?,
            FAULTS if text == "none" => self.faults = PhaseFaults::default(),
            FAULTS => {
                return Err(format!(
                    "faults is a table, such as {{ stall = \"2s\" }}, and no {text:?}; in --set it is NAME.faults.stall=2s, \
                     or NAME.faults=none"
                ));
            }
            "churn" => {
                return Err(
                    "churn is a pattern of the whole run in the fleet's own time, so a phase cannot have \
                            one of its own: write it above the phases"
                        .to_owned(),
                );
            }
            _ => {
                let nearest = or_nearest(key, PHASE_KEYS.into_iter(), "");
                return Err(format!("unknown key {key:?} of a phase{nearest}"));
            }
        }
        Ok(())
    }

    /// Reads one key of the faults.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub(super) fn set_fault(&mut self, key: &str, text: &str) -> Result<(), String> {
        let faults = &mut self.faults;
        match key {
            "rate" => faults.rate_per_second = Some(units::parse_count(text)?),
            "stall" => faults.stall_ns = Some(units::parse_duration(text)?),
            "stall-every" => faults.stall_every_ns = Some(units::parse_duration(text)?),
            "error-one-in" => faults.error_one_in = Some(units::parse_count(text)?),
            _ => {
                let nearest = or_nearest(key, FAULT_KEYS.into_iter(), "");
                return Err(format!("unknown key {key:?} of the faults of a phase{nearest}"));
            }
        }
        Ok(())
    }

    /// The phase.
    ///
    /// # Errors
    /// If a key that every phase has is missing.
    pub(super) fn finish(self) -> Result<RunPhase, String> {
        let missing = |key: &str| format!("a phase has a name, a duration and a rate: {key} is missing");
        let (rate_per_second, to_per_second) = self.rate.ok_or_else(|| missing("rate"))?;
        Ok(RunPhase {
            name: self.name.ok_or_else(|| missing("name"))?,
            duration_ns: self.duration_ns.ok_or_else(|| missing("duration"))?,
            rate_per_second,
            to_per_second,
            faults: self.faults,
            queries: self.queries,
        })
    }
}

/// Samples per second: a number, or two with `..` between them for a linear change.
fn rate(text: &str) -> Result<(u64, Option<u64>), String> {
    if text == "max" {
        return Err("a phase has a schedule, and max is a closed loop without one".to_owned());
    }
    match text.split_once("..") {
        Some((from, to)) => Ok((units::parse_count(from)?, Some(units::parse_count(to)?))),
        None => Ok((units::parse_count(text)?, None)),
    }
}

/// Changes a key of the phase called `name`: `rate`, or `faults.stall`.
///
/// # Errors
/// If there is no such phase or key, or if it does not take this value.
pub(super) fn change(phases: &mut [RunPhase], name: &str, key: &str, text: &str) -> Result<(), String> {
    if phases.is_empty() {
        return Err(format!("the plan has no phases, so none is called {name}"));
    }
    let names: Vec<String> = phases.iter().map(|phase| phase.name.clone()).collect();
    let Some(phase) = phases.iter_mut().find(|phase| phase.name == name) else {
        let names = names.iter().map(String::as_str);
        return Err(format!("no phase is called {name:?}{}", or_nearest(name, names, "")));
    };
    let mut draft = PhaseDraft::of(phase);
    match key.split_once('.') {
        None => draft.set(key, text)?,
        Some((FAULTS, fault)) => draft.set_fault(fault, text)?,
        Some(_) => {
            let nearest = or_nearest(key, PHASE_KEYS.into_iter(), "");
            return Err(format!("unknown key {key:?} of a phase{nearest}"));
        }
    }
    *phase = draft.finish()?;
    Ok(())
}
