//! Reports what a store found damaged in its files, and what its processes say, each finding and
//! line once.
//!
//! A store lists damage in its [`Stats`](tsb_stores::Stats) and continues without what it cannot
//! read. Call this after opening a store and again after reading it, because some stores open a
//! file only when it is needed.

use tsb_core::verdict::Verdict;
use tsb_stores::{Damage, Store};

use crate::foreign;

/// The findings reported so far, and the number of lines of the store's processes.
#[derive(Clone, Debug, Default)]
pub struct ReportedDamage(Vec<Damage>, usize);

impl ReportedDamage {
    /// Reports what the store has found, and its processes have said, since the last call.
    pub fn tell(&mut self, store: &dyn Store, say: impl Fn(&str)) {
        let stats = store.stats();
        for message in stats.messages.iter().skip(self.1) {
            say(&format!("{store} says: {}", foreign::line(message)));
        }
        self.1 = self.1.max(stats.messages.len());
        self.tell_list(stats.damage, say);
    }

    /// The same for a list that does not come from a store.
    pub fn tell_list(&mut self, list: Vec<Damage>, say: impl Fn(&str)) {
        for damage in list.iter().filter(|damage| !self.0.contains(damage)) {
            say(&damage.to_string());
        }
        self.0 = list;
    }

    /// Whether a finding may have lost acknowledged samples, so that what was read may be less
    /// than what was written.
    pub fn may_lose_samples(&self) -> bool {
        self.0.iter().any(Damage::may_lose_samples)
    }

    /// Reports new findings and adds all findings to the reasons of a verdict. Returns all
    /// findings.
    pub fn damage_of(&mut self, store: &dyn Store, verdict: &mut Verdict, say: impl Fn(&str)) -> Vec<Damage> {
        self.tell(store, say);
        verdict.reasons.extend(self.0.iter().map(ToString::to_string));
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tsb_stores::DamageKind;

    use super::*;

    #[test]
    fn each_finding_is_said_once() {
        let said = RefCell::new(Vec::new());
        let say = |text: &str| said.borrow_mut().push(text.to_owned());
        let torn = Damage::new(DamageKind::Torn, "/j/3", "a record is cut short");
        let gone = Damage::new(DamageKind::Missing, "/j", "segment 2 is gone");
        let mut told = ReportedDamage::default();
        told.tell_list(vec![torn.clone()], say);
        assert!(!told.may_lose_samples());
        told.tell_list(vec![torn.clone(), gone.clone()], say);
        assert!(told.may_lose_samples());
        assert_eq!(*said.borrow(), [torn.to_string(), gone.to_string()]);
        assert_eq!(told.0.len(), 2);
    }
}
