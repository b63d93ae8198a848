//! Collects what the hosts measured, and reads back what those had sent that were lost.

use tsb_core::Timestamp;
use tsb_core::workload::FleetPart;
use tsb_stores::Stats;

use super::{Ended, Host, Leader, VerifyLost};
use crate::error::Error;
use crate::hosts::documents::{self, JOURNAL, PART};
use crate::hosts::merge::{LostPart, MeasuredPart, Whole, merge};
use crate::hosts::part::HostPart;
use crate::journal;
use crate::run::{MadeRun, OpenStore, preload};
use crate::spec::Spec;

impl Leader<'_> {
    /// The report of the whole.
    pub(super) fn report(&self, ended: Ended, open: OpenStore<'_>, verify: VerifyLost<'_>) -> Result<MadeRun, Error> {
        let mut parts = Vec::new();
        for (name, host) in ended.hosts {
            let result = match host.lost.clone() {
                None => self.part_of(&name).map(Box::new).map_err(|error| error.to_string()),
                Some(why) => Err(why),
            };
            let result = match result {
                Ok(part) => Ok(part),
                Err(why) => Err(self.lost_part(&name, &host, why, verify)?),
            };
            parts.push(MeasuredPart {
                name,
                part: host.part,
                result,
            });
        }
        parts.sort_by_key(|part| part.part.first_group);
        let whole = Whole {
            context: self.context,
            base_ns: ended.base_ns,
            stats: self.stats(open)?,
        };
        merge(&whole, &parts).ok_or_else(|| {
            let why = parts
                .iter()
                .filter_map(|part| Some((&part.name, part.result.as_ref().err()?)));
            let why: Vec<String> = why.map(|(name, lost)| format!("{name}: {}", lost.why)).collect();
            Error::unreachable("no host reported what it measured").because_of(why.join("; "))
        })
    }

    fn part_of(&self, name: &str) -> Result<HostPart, Error> {
        let text = self.coordination.get_long(&documents::of(PART, name))?;
        let text = text.ok_or_else(|| Error::internal(format!("what {name} measured is not whole")))?;
        HostPart::of_text(name, &text)
    }

    /// What is known of a lost host: its journal, and what reading back says of it.
    fn lost_part(&self, name: &str, host: &Host, why: String, verify: VerifyLost<'_>) -> Result<LostPart, Error> {
        let lines = self.coordination.get_long(&documents::of(JOURNAL, name))?;
        let contents = lines.map(|lines| journal::parse(lines.as_bytes()));
        let journaled = contents.as_ref().and_then(|contents| contents.sections.last());
        let sent = journaled.map_or(0, |section| section.reached.sent);
        let history = journaled.map_or(0, |_| self.history_of(host.part));
        let verified = match &contents {
            Some(contents) if !contents.sections.is_empty() => verify(contents).map(Box::new),
            _ => Err("it published no journal".to_owned()),
        };
        Ok(LostPart {
            why,
            sent: sent.max(host.progress.sent) + history,
            verified,
            clock: (host.joined.clock.offset_ns, host.joined.clock.uncertainty_ns),
        })
    }

    /// Samples of history that the host of a part had written when the run began.
    fn history_of(&self, part: FleetPart) -> u64 {
        let context = self.context;
        let history = preload::history_of(context, Timestamp(0));
        let samples = |group: usize| context.workload.samples_due(group, history.ticks(group)) as f64;
        let due: f64 = part.range().map(samples).sum();
        (due * context.workload.sent_share()).round() as u64
    }

    /// What a store holds that all hosts share.
    fn stats(&self, open: OpenStore<'_>) -> Result<Option<Stats>, Error> {
        let plan = &self.context.plan;
        if !plan.stores.iter().any(Spec::is_client) {
            return Ok(None);
        }
        let store = open(plan)?.store();
        let stats = store.stats();
        // What it says of its end concerns no sample.
        let _ = store.close();
        Ok(Some(stats))
    }
}
