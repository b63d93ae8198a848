//! The contract of the reference store, with each flaw at the place where it would be made.

use super::*;
use crate::damage::{Damage, DamageKind};

impl Store for Reference {
    fn capabilities(&self) -> Capabilities {
        self.options.capabilities
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let mut state = self.enter()?;
        for (id, key) in series {
            if let Some(existing) = state.keys.get(id) {
                if existing != key && !self.has(Flaw::RebindsAnId) {
                    return Err(Error::Conflict {
                        id: *id,
                        existing: existing.to_string(),
                    });
                }
            } else if let Some((other, _)) = state.keys.iter().find(|(_, existing)| *existing == key) {
                if !self.has(Flaw::BindsAKeyTwice) {
                    return Err(Error::Conflict {
                        id: *other,
                        existing: key.to_string(),
                    });
                }
            } else if state.keys.len() >= self.options.max_series && !self.has(Flaw::ForgetsItsSeriesBound) {
                return Err(Error::TooManySeries {
                    limit: self.options.max_series,
                });
            }
            let is_new = state.keys.insert(*id, key.clone()).is_none();
            if is_new {
                let stored = self
                    .disk
                    .series
                    .lock()
                    .unwrap()
                    .get(&self.name_on_disk(*id, key))
                    .cloned();
                let mut rows = stored.unwrap_or_default();
                if let Some((&last, values)) = rows.last_key_value()
                    && self.has(Flaw::InventsARowWhenOpened)
                {
                    let values = values.clone();
                    rows.insert(last + 1, values);
                }
                let newest = rows.keys().next_back().copied();
                state.series.insert(
                    *id,
                    StoredSeries {
                        rows,
                        newest,
                        last_written: newest,
                    },
                );
            } else if self.has(Flaw::ForgetsWhenDefinedAgain) {
                state.series.insert(*id, StoredSeries::default());
            }
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let entered = self.enter();
        if self.has(Flaw::WritesAfterClosing) && entered.as_ref().is_err_and(|error| matches!(error, Error::Closed)) {
            let (accepted, durability) = (batch.len(), Durability::Volatile);
            return Ok(Ack::new(accepted, 0, Position(u64::MAX), durability));
        }
        let mut state = entered?;
        let samples = self.read(batch);
        let unknown = samples
            .iter()
            .position(|(_, sample)| !self.is_defined(&state, sample.0));
        if self.options.capabilities.visibility_delay_ms > 0 || self.has(Flaw::HidesTheLastWrite) {
            state.hidden = samples.iter().map(|(_, (id, at, _))| (*id, *at)).collect();
        }
        if self.has(Flaw::ClearsTheRefusals) {
            refused.clear();
        }
        if self.has(Flaw::CoversLessAfterAWrite) {
            state.synced = Position(0);
        }
        if let Some(unknown) = unknown
            && !self.has(Flaw::SkipsTheUnknown)
        {
            return Err(self.reject(state, &samples, unknown));
        }
        let mut rejected = 0;
        for (index, sample) in samples {
            let mut reason = None;
            state = self.apply(state, sample, &mut reason);
            if let Some(reason) = reason {
                rejected += 1;
                self.refuse(refused, index, reason);
            }
        }
        let accepted = batch.len() - rejected;
        let position = Position(state.accepted);
        drop(state);
        self.count(accepted as u64);
        Ok(Ack::new(
            if self.has(Flaw::CountsRefusedAsAccepted) {
                batch.len()
            } else {
                accepted
            },
            rejected,
            if self.has(Flaw::StandsStill) {
                Position(1)
            } else {
                position
            },
            match self.flaw {
                Some(Flaw::AcksTooHigh) => Durability::Synced,
                Some(Flaw::AcksTooLow) => Durability::Unconfirmed,
                _ => Durability::Volatile,
            },
        ))
    }

    fn durable(&self, level: Durability) -> Position {
        let state = self.state.lock().unwrap();
        let accepted = Position(state.accepted);
        match level {
            Durability::Unconfirmed if self.has(Flaw::CoversMoreAtHigherLevels) => state.synced,
            Durability::Unconfirmed | Durability::Volatile => accepted,
            _ if self.has(Flaw::CoversWithoutAClaim) || self.has(Flaw::CoversBeforeTheSync) => accepted,
            _ => state.synced,
        }
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        let mut state = self.enter()?;
        if level > self.options.capabilities.reaches && !self.has(Flaw::FlushesBeyondReach) {
            return Err(self.unsupported("flush"));
        }
        if let Scope::Series(kept) = scope
            && self.has(Flaw::ForgetsTheSeriesNotFlushed)
        {
            state.series.retain(|id, _| kept.contains(id));
        }
        if self.has(Flaw::IgnoresTheSeriesFlushed) && matches!(scope, Scope::Series(_)) {
            return Ok(());
        }
        if self.has(Flaw::LiesAboutSynced) && level == Durability::Synced {
            state.synced = Position(state.accepted);
            return Ok(());
        }
        if level > Durability::Volatile && !self.has(Flaw::ReturnsBeforeTheSync) {
            self.sync(&mut state)
        } else {
            Ok(())
        }
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        let entered = self.enter();
        if self.has(Flaw::ReadsAfterClosing) && entered.is_err() {
            return Ok(());
        }
        let mut state = entered?;
        let c = &self.options.capabilities;
        let claims = (c.query || self.has(Flaw::ReadsWithoutAClaim))
            && (query.resample.is_none() || c.resample || self.has(Flaw::ResamplesWithoutAClaim));
        if !claims {
            return Err(self.unsupported("query"));
        }
        self.check_known(&state, query.series)?;
        let mut asked = query.series.to_vec();
        if self.has(Flaw::SortsTheSeries) {
            asked.sort_unstable();
        }
        let targets: Vec<_> = asked.iter().map(|&id| self.target(&state, id)).collect();
        let series = Self::visible(&mut state, &targets);
        let held = self.has(Flaw::HoldsItsLockWhileVisiting).then_some(state);
        for (&id, target) in asked.iter().zip(&targets) {
            let empty = StoredSeries::default();
            let line = series.get(target).unwrap_or(&empty);
            let (times, values) = match query.resample {
                None => self.rows(line, query.range),
                Some(resample) => self.resampled(line, query.range, resample),
            };
            if times.is_empty() && !self.has(Flaw::GivesEmptyChunks) {
                continue;
            }
            if visit(id, &times, &values) == ControlFlow::Break(()) {
                match self.flaw {
                    Some(Flaw::GoesOnAfterBreak) => {}
                    Some(Flaw::FailsAfterBreak) => return Err(Self::failed("go on")),
                    _ => break,
                }
            }
        }
        drop(held);
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let mut state = self.enter()?;
        if !self.options.capabilities.query && !self.has(Flaw::ReadsWithoutAClaim) {
            return Err(self.unsupported("newest"));
        }
        self.check_known(&state, series)?;
        let mut asked: Vec<_> = series.iter().map(|&id| self.target(&state, id)).collect();
        if self.has(Flaw::AnswersInIdOrder) {
            asked.sort_unstable();
        }
        let lines = Self::visible(&mut state, &asked);
        for (id, slot) in asked.iter().zip(into) {
            let line = lines.get(id).cloned().unwrap_or_default();
            let newest = match self.flaw {
                Some(Flaw::IsOneSampleBehind) => line.rows.keys().rev().nth(1).copied(),
                Some(Flaw::SaysTheLastWritten) => line.last_written,
                Some(Flaw::LeavesEmptySlots) if line.rows.is_empty() => continue,
                _ => line.rows.keys().next_back().copied(),
            };
            *slot = newest;
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let state = self.enter()?;
        self.check_known(&state, series)?;
        for (&id, slot) in series.iter().zip(into) {
            let newest = state.series.get(&id).and_then(|line| line.newest);
            *slot = newest.filter(|_| !self.has(Flaw::ForgetsWhatItAccepted));
        }
        Ok(())
    }

    fn stats(&self) -> Stats {
        let state = self.state.lock().unwrap();
        let rows = state.series.values().flat_map(|line| line.rows.values());
        let mut samples: u64 = rows.map(|values| values.len() as u64).sum();
        if !self.has(Flaw::CountsSamplesOfThisLife) {
            samples += self.samples_of_others(&state);
        }
        let mut series = state.keys.len();
        if self.has(Flaw::CountsKeysOfEarlierLives) {
            series = series.max(self.disk.series.lock().unwrap().len());
        }
        let racy = self.racy_count.load(Ordering::SeqCst);
        Stats {
            series: series as u64,
            samples,
            accepted: if self.has(Flaw::LosesCountsInARace) {
                racy
            } else {
                state.accepted
            },
            superseded: state.superseded,
            expired: state.expired,
            footprint: Footprint {
                head_bytes: samples * 16,
                ..Footprint::default()
            },
            damage: if self.disk.is_damaged && !self.has(Flaw::HidesDamage) {
                vec![Damage::new(DamageKind::Missing, "disk", "a row is gone")]
            } else {
                Vec::new()
            },
            ..Stats::default()
        }
    }

    fn close(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        if state.is_closed {
            return if self.has(Flaw::ClosesOnce) {
                Err(Error::Closed)
            } else {
                Ok(())
            };
        }
        state.is_closed = true;
        if self.options.capabilities.persistent && state.poison.is_none() && !self.has(Flaw::DropsWhatIsPendingAtClose)
        {
            self.sync(&mut state)?;
        }
        if !self.has(Flaw::KeepsItsLockWhenClosed) {
            self.unlock();
        }
        Ok(())
    }
}
