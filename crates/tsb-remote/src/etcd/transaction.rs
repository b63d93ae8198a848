//! Divides a batch into transactions.

use std::collections::HashSet;
use std::ops::Range;

use prost::bytes::Bytes;
use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};

use super::key_space::KeySpace;
use super::message::{Operation, Put, Txn};

/// Maximum size of a transaction in bytes: a server accepts requests of 1.5 MiB unless it was
/// started with another `--max-request-bytes`.
const BYTES_MAX: usize = 3 << 19;
/// Upper bound of the bytes around a key and a value: tags, lengths and the lease.
const OVERHEAD_BYTES: usize = 32;
/// Bytes of a value.
const VALUE_BYTES: usize = 8;

/// Some samples of a batch.
#[derive(Debug)]
pub(super) struct Transaction {
    /// Their indices in the batch.
    pub(super) indices: Range<usize>,
    pub(super) request: Txn,
}

/// The transactions of a batch.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) transactions: Vec<Transaction>,
    /// A key is in several transactions: each must wait for the previous one.
    pub(super) is_ordered: bool,
}

/// Divides a batch, whose ids are numbers, into transactions of at most `operations` operations.
pub(super) fn plan(key_space: &KeySpace, batch: &Batch<'_>, operations: usize, lease: i64) -> Plan {
    let mut is_ordered = false;
    let mut transactions = Vec::with_capacity(batch.len().div_ceil(operations));
    // A tick has each key only once, so there is nothing to check.
    let mut seen = (!is_tick(batch)).then(HashSet::<(SeriesId, Timestamp), foldhash::fast::FixedState>::default);
    let mut all = seen.clone();
    let key_bytes = key_space.sample(0, Timestamp(0)).len();
    let most = operations.clamp(1, BYTES_MAX / (key_bytes + VALUE_BYTES + OVERHEAD_BYTES));
    let mut start = 0;
    for index in 0..batch.len() {
        let key = (batch.id(index), batch.time(index));
        // etcd refuses a transaction that puts a key twice.
        let is_there = seen.as_ref().is_some_and(|seen| seen.contains(&key));
        is_ordered |= all.as_mut().is_some_and(|all| !all.insert(key));
        if is_there || index - start == most {
            transactions.push(transaction(key_space, batch, start..index, lease));
            start = index;
            seen.iter_mut().for_each(HashSet::clear);
        }
        if let Some(seen) = &mut seen {
            seen.insert(key);
        }
    }
    if start < batch.len() {
        transactions.push(transaction(key_space, batch, start..batch.len(), lease));
    }
    Plan {
        transactions,
        is_ordered,
    }
}

fn is_tick(batch: &Batch<'_>) -> bool {
    matches!((batch.ids(), batch.times()), (Ids::Range(_), Times::One(_)))
}

/// Builds a transaction. Its keys and values are slices of one allocation.
fn transaction(key_space: &KeySpace, batch: &Batch<'_>, indices: Range<usize>, lease: i64) -> Transaction {
    let mut bytes = Vec::new();
    for index in indices.clone() {
        key_space.push_sample(batch.id(index).0, batch.time(index), &mut bytes);
        bytes.extend(batch.values()[index].to_le_bytes());
    }
    let pair_bytes = bytes.len() / indices.len().max(1);
    let bytes = Bytes::from(bytes);
    let put = |place: usize| -> Operation {
        let (start, end) = (place * pair_bytes, (place + 1) * pair_bytes);
        let key = bytes.slice(start..end - VALUE_BYTES);
        let value = bytes.slice(end - VALUE_BYTES..end);
        Put { key, value, lease }.into()
    };
    let request = Txn {
        success: (0..indices.len()).map(put).collect(),
        ..Txn::default()
    };
    Transaction { indices, request }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(batch: &Batch<'_>, operations: usize) -> (Vec<Range<usize>>, bool) {
        let plan = plan(&KeySpace::new("x"), batch, operations, 3);
        let indices = plan.transactions.iter().map(|transaction| transaction.indices.clone());
        (indices.collect(), plan.is_ordered)
    }

    #[test]
    fn a_tick_is_cut_by_operations_and_carries_its_values() {
        let values = [0.0, -0.0, 2.0, f64::NAN, 4.0];
        let batch = Batch::tick(SeriesId(7), Timestamp(5), &values);
        assert_eq!(cuts(&batch, 2), (vec![0..2, 2..4, 4..5], false));
        let key_space = KeySpace::new("x");
        let transactions = plan(&key_space, &batch, 2, 3).transactions;
        let puts = transactions.iter().flat_map(|transaction| &transaction.request.success);
        for (index, operation) in puts.enumerate() {
            let put = operation.put.as_ref().unwrap();
            assert_eq!(key_space.sample_of(&put.key), Some((7 + index as u32, Timestamp(5))));
            assert_eq!(*put.value, values[index].to_le_bytes());
            assert_eq!(put.lease, 3);
        }
    }

    #[test]
    fn a_key_is_never_twice_in_a_transaction() {
        let ids = [1, 2, 1, 1, 2].map(SeriesId);
        let values = [0.0; 5];
        let batch = Batch::new(Ids::Each(&ids), Times::One(Timestamp(5)), &values);
        assert_eq!(cuts(&batch, 128), (vec![0..2, 2..3, 3..5], true));
        let times = [1, 2, 3, 4, 5].map(Timestamp);
        let batch = Batch::new(Ids::Each(&ids), Times::Each(&times), &values);
        assert_eq!(cuts(&batch, 128), (std::iter::once(0..5).collect(), false));
        // Divided, and to be written in order.
        let ids = [1, 2, 1].map(SeriesId);
        let batch = Batch::new(Ids::Each(&ids), Times::One(Timestamp(5)), &values[..3]);
        assert_eq!(cuts(&batch, 2), (vec![0..2, 2..3], true));
        assert_eq!(cuts(&Batch::tick(SeriesId(0), Timestamp(0), &[]), 2), (vec![], false));
    }

    #[test]
    fn a_request_stays_below_what_a_server_takes() {
        let values = vec![0.5; 100_000];
        let batch = Batch::tick(SeriesId(0), Timestamp(5), &values);
        for place in ["p", &"p".repeat(63)] {
            let plan = plan(&KeySpace::new(place), &batch, 1_000_000, i64::MAX);
            assert!(plan.transactions.len() > 1);
            for transaction in plan.transactions {
                let bytes = prost::Message::encoded_len(&transaction.request);
                assert!(bytes <= BYTES_MAX, "{bytes} bytes");
            }
        }
    }
}
