//! The newest timestamps of many series: one transaction with a read per series.
//!
//! etcd sorts a range only after reading all of it, so each series is read from the newest
//! timestamp seen before; the first time that means the whole series.

use tsb_core::Timestamp;

use super::super::message::{DESCENDING, Range, Ranges};
use super::{EtcdClient, OPERATIONS};
use tsb_stores::error::Result;
use tsb_stores::parts::{read, write};

const ACTION: &str = "ask for the newest samples";

impl EtcdClient {
    pub(super) async fn newest_of(&self, numbers: &[u32], into: &mut [Option<Timestamp>]) -> Result<()> {
        for (numbers, into) in numbers.chunks(OPERATIONS).zip(into.chunks_mut(OPERATIONS)) {
            let starts: Vec<Timestamp> = {
                let seen = read(&self.seen);
                let of = |number: &u32| seen.get(*number as usize).copied().unwrap_or(Timestamp::MIN);
                numbers.iter().map(of).collect()
            };
            self.newest_from(numbers, &starts, into).await?;
            // The samples seen before may have expired, without newer ones: search from the
            // start.
            let is_gone = |place: &usize| into[*place].is_none() && starts[*place] > Timestamp::MIN;
            let gone: Vec<usize> = (0..numbers.len()).filter(is_gone).collect();
            if !gone.is_empty() {
                let again: Vec<u32> = gone.iter().map(|place| numbers[*place]).collect();
                let mut found = vec![None; again.len()];
                self.newest_from(&again, &vec![Timestamp::MIN; again.len()], &mut found)
                    .await?;
                for (place, found) in gone.into_iter().zip(found) {
                    into[place] = found;
                }
            }
            self.note_newest(numbers, into);
        }
        Ok(())
    }

    async fn newest_from(&self, numbers: &[u32], starts: &[Timestamp], into: &mut [Option<Timestamp>]) -> Result<()> {
        let range = |(number, start): (&u32, &Timestamp)| Range {
            limit: 1,
            sort_order: DESCENDING,
            keys_only: true,
            ..self.key_space.samples_from(*number, *start)
        };
        let ranges = numbers.iter().zip(starts).map(|pair| range(pair).into()).collect();
        let reply = self.connection.ask(ACTION, Ranges { ranges }).await?;
        if reply.replies.len() != numbers.len() {
            return Err(self
                .connection
                .failed(ACTION, "it answers for another number of series"));
        }
        for (reply, slot) in reply.replies.iter().zip(into) {
            let pair = reply.range.as_ref().and_then(|range| range.pairs.first());
            *slot = pair
                .and_then(|pair| self.key_space.sample_of(&pair.key))
                .map(|(_, at)| at);
        }
        Ok(())
    }

    fn note_newest(&self, numbers: &[u32], newest: &[Option<Timestamp>]) {
        let mut seen = write(&self.seen);
        for (number, newest) in numbers.iter().zip(newest) {
            let place = *number as usize;
            if seen.len() <= place {
                seen.resize(place + 1, Timestamp::MIN);
            }
            seen[place] = newest.unwrap_or(Timestamp::MIN);
        }
    }
}
