//! Stores of keys that are broken on purpose: the suite must see each flaw, by a check of the
//! clause that it breaks.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tsb_core::Durability;
use tsb_core::time::Clock;

use super::{KeyedFresh, checks};
use crate::error::Result;
use crate::keyed::contract::{KeyedCapabilities, KeyedStore, KeyedVisitor, Put, PutAck};
use crate::keyed::key::Key;
use crate::keyed::memory::{KeyedMemory, KeyedMemoryOptions};
use crate::store::Refusals;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// An accepted key is not stored.
    LosesThe100thKey,
    TrimsValues,
    CountsRefusedAsAccepted,
    ClaimsMoreThanItAcks,
    FirstOfACallWins,
    KeepsTheFirstTimeToLive,
    ForgetsTimeToLive,
    ExpiresEarly,
    ListsLikeAText,
    ListsThePrefix,
    VisitsOnAfterBreak,
    CountsDeletionsTwice,
    DeletesTheNeighbours,
    AnswersOnceClosed,
    RefusesReplacementsWhenFull,
    ClaimsDirectories,
}

#[derive(Debug)]
struct Broken {
    flaw: Flaw,
    inner: KeyedMemory,
    puts: AtomicUsize,
    is_closed: AtomicBool,
    max_keys: usize,
}

impl Broken {
    fn new(flaw: Flaw, clock: Arc<dyn Clock>, max_keys: usize) -> Self {
        Self {
            flaw,
            inner: KeyedMemory::new(KeyedMemoryOptions { max_keys }, clock),
            puts: AtomicUsize::default(),
            is_closed: AtomicBool::default(),
            max_keys,
        }
    }

    fn count(&self) -> Result<usize> {
        let mut keys = 0;
        self.inner.list(None, &mut |_, _| {
            keys += 1;
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }

    /// What is put in place of a put; `None`: nothing.
    fn changed(&self, put: &Put) -> Result<Option<Put>> {
        let mut put = put.clone();
        match self.flaw {
            Flaw::LosesThe100thKey if self.puts.fetch_add(1, Ordering::Relaxed) == 100 => return Ok(None),
            Flaw::TrimsValues => put.value = put.value.trim().to_owned(),
            Flaw::KeepsTheFirstTimeToLive if self.inner.get(&put.key)?.is_some() && put.ttl_ns.is_none() => {
                put.ttl_ns = Some(1_000_000_000);
            }
            Flaw::ForgetsTimeToLive => put.ttl_ns = None,
            Flaw::ExpiresEarly => put.ttl_ns = put.ttl_ns.map(|ttl_ns| (ttl_ns / 2).max(1)),
            _ => {}
        }
        Ok(Some(put))
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.flaw)
    }
}

impl KeyedStore for Broken {
    fn capabilities(&self) -> KeyedCapabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.directories = self.flaw == Flaw::ClaimsDirectories;
        if self.flaw == Flaw::ClaimsMoreThanItAcks {
            capabilities.acknowledges = Durability::Synced;
        }
        capabilities
    }

    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        if self.flaw == Flaw::FirstOfACallWins {
            let reversed: Vec<Put> = puts.iter().rev().cloned().collect();
            return self.inner.put(&reversed, refused);
        }
        if self.flaw == Flaw::RefusesReplacementsWhenFull && self.count()? >= self.max_keys {
            (0..puts.len()).for_each(|index| refused.push(index, crate::store::Reason::Full));
            return Ok(PutAck::new(0, puts.len(), Durability::Volatile));
        }
        let (mut accepted, mut found) = (0, Vec::new());
        for (index, put) in puts.iter().enumerate() {
            let Some(put) = self.changed(put)? else {
                accepted += 1;
                continue;
            };
            let mut own = Refusals::new();
            accepted += self.inner.put(&[put], &mut own)?.accepted;
            found.extend(own.as_slice().iter().map(|refusal| (index, refusal.reason)));
        }
        // An empty put notices a closed store, too.
        let _ = self.inner.put(&[], refused)?;
        let rejected = if self.flaw == Flaw::CountsRefusedAsAccepted {
            0
        } else {
            found.len()
        };
        for (index, reason) in &found {
            refused.push(*index, *reason);
        }
        Ok(PutAck::new(accepted, rejected, Durability::Volatile))
    }

    fn delete(&self, keys: &[Key]) -> Result<usize> {
        let deleted = self.inner.delete(keys)?;
        Ok(if self.flaw == Flaw::CountsDeletionsTwice {
            keys.len()
        } else {
            deleted
        })
    }

    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        if let (Flaw::DeletesTheNeighbours, Some(prefix)) = (self.flaw, prefix) {
            let mut all = Vec::new();
            self.inner.list(None, &mut |key, _| {
                all.push(key.clone());
                ControlFlow::Continue(())
            })?;
            all.retain(|key| key.as_str().starts_with(prefix.as_str()));
            return self.inner.delete(&all).map(drop);
        }
        self.inner.delete_below(prefix)
    }

    fn get(&self, key: &Key) -> Result<Option<String>> {
        let is_closed = self.is_closed.load(Ordering::Relaxed);
        if self.flaw == Flaw::AnswersOnceClosed && is_closed {
            return Ok(None);
        }
        self.inner.get(key)
    }

    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        match (self.flaw, prefix) {
            (Flaw::ListsLikeAText, Some(prefix)) => self.inner.list(None, &mut |key, value| {
                let is_like = key != prefix && key.as_str().starts_with(prefix.as_str());
                if is_like {
                    visit(key, value)
                } else {
                    ControlFlow::Continue(())
                }
            }),
            (Flaw::ListsThePrefix, Some(prefix)) => {
                if let Some(value) = self.inner.get(prefix)? {
                    let _ = visit(prefix, &value);
                }
                self.inner.list(Some(prefix), visit)
            }
            (Flaw::VisitsOnAfterBreak, prefix) => self.inner.list(prefix, &mut |key, value| {
                let _ = visit(key, value);
                ControlFlow::Continue(())
            }),
            (_, prefix) => self.inner.list(prefix, visit),
        }
    }

    fn close(&self) -> Result<()> {
        self.is_closed.store(true, Ordering::Relaxed);
        self.inner.close()
    }
}

/// The clauses whose checks fail.
fn broken_clauses(flaw: Flaw) -> Vec<u8> {
    let fixture = KeyedFresh::new("broken", move |clock| Ok(Broken::new(flaw, clock, 1_000_000)))
        .bounded(20, move |clock| Ok(Broken::new(flaw, clock, 20)));
    let checks = checks(fixture);
    let failing = checks.iter().filter(|check| check.run().is_err());
    failing.map(crate::conformance::Check::clause).collect()
}

#[test]
fn the_suite_sees_every_flaw() {
    assert_eq!(broken_clauses(Flaw::None), Vec::<u8>::new());
    for (flaw, clause) in [
        (Flaw::LosesThe100thKey, 8),
        (Flaw::TrimsValues, 3),
        (Flaw::CountsRefusedAsAccepted, 3),
        (Flaw::ClaimsMoreThanItAcks, 4),
        (Flaw::FirstOfACallWins, 5),
        (Flaw::KeepsTheFirstTimeToLive, 5),
        (Flaw::ForgetsTimeToLive, 6),
        (Flaw::ExpiresEarly, 6),
        (Flaw::ListsLikeAText, 8),
        (Flaw::ListsThePrefix, 8),
        (Flaw::VisitsOnAfterBreak, 8),
        (Flaw::CountsDeletionsTwice, 9),
        (Flaw::DeletesTheNeighbours, 9),
        (Flaw::AnswersOnceClosed, 10),
        (Flaw::RefusesReplacementsWhenFull, 11),
        (Flaw::ClaimsDirectories, 12),
    ] {
        let found = broken_clauses(flaw);
        assert!(
            found.contains(&clause),
            "{flaw:?} breaks clause {clause}, and checks of {found:?} failed"
        );
    }
}
