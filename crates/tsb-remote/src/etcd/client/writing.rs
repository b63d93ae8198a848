//! Writes a batch as concurrent transactions, and combines their outcomes.

use std::sync::Arc;

use tokio::task::JoinSet;
use tonic::{Code, Status};
use tsb_core::Batch;

use super::super::connection::{CallError, EtcdConnection};
use super::super::message::{Txn, TxnReply};
use super::super::transaction::{Plan, Transaction, plan};
use super::EtcdClient;
use tsb_stores::error::{Error, Result};
use tsb_stores::store::Reason;

const WRITING: &str = "write samples";

/// The outcome of a transaction.
type Outcome = std::result::Result<TxnReply, CallError>;

impl EtcdClient {
    /// Writes a batch whose ids are numbers. Returns the refused samples, by index.
    pub(super) async fn write_batch(&self, batch: &Batch<'_>) -> Result<Vec<(u32, Reason)>> {
        let lease = match &self.leases {
            None => 0,
            Some(leases) => leases
                .id(&self.connection)
                .await
                .map_err(not_written(&self.connection))?,
        };
        let plan = plan(&self.key_space, batch, self.options.operations, lease);
        let mut refused = Vec::new();
        let mut unanswered = None;
        let (count, mut unsent) = (plan.transactions.len(), 0);
        for (indices, outcome) in self.perform(plan).await {
            let error = match outcome {
                Ok(_) => continue,
                Err(CallError::Refused(status)) if status.code() != Code::InvalidArgument => {
                    let reason = reason_of(&status);
                    refused.extend(indices.map(|index| (index as u32, reason)));
                    continue;
                }
                Err(error) => error,
            };
            unsent += usize::from(matches!(error, CallError::Unsent(_)));
            unanswered.get_or_insert(error);
        }
        refused.sort_unstable_by_key(|(index, _)| *index);
        match unanswered {
            None => Ok(refused),
            // Other transactions may have been applied, so the write as a whole was not unsent.
            Some(CallError::Unsent(status)) if unsent < count => Err(self
                .connection
                .error_for::<Txn>(WRITING, CallError::Lost(status.into()))),
            Some(error) => Err(self.connection.error_for::<Txn>(WRITING, error)),
        }
    }

    /// Runs all transactions. The outcomes are in no particular order.
    async fn perform(&self, plan: Plan) -> Vec<(std::ops::Range<usize>, Outcome)> {
        let send = |transaction: Transaction| {
            let connection = Arc::clone(&self.connection);
            async move { (transaction.indices, connection.call(transaction.request).await) }
        };
        let mut outcomes = Vec::with_capacity(plan.transactions.len());
        let at_once = if plan.is_ordered { 1 } else { self.options.parallel };
        let mut waiting = plan.transactions.into_iter();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < at_once
                && let Some(transaction) = waiting.next()
            {
                under_way.spawn(send(transaction));
            }
            match under_way.join_next().await {
                None => return outcomes,
                Some(Ok(outcome)) => outcomes.push(outcome),
                // The only possible error is a panic: pass it on.
                Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            }
        }
    }
}

/// Converts a failure before the first transaction: nothing is written, though an unused lease
/// may have been granted.
fn not_written(connection: &EtcdConnection) -> impl Fn(CallError) -> Error {
    const ACTION: &str = "get a lease";
    |error| match error {
        CallError::Lost(source) => connection.error_for::<Txn>(ACTION, CallError::Unsent(Status::from_error(source))),
        other => connection.error_for::<Txn>(ACTION, other),
    }
}

/// The reason for a refusal, from the server's status.
fn reason_of(status: &Status) -> Reason {
    match status.code() {
        // "mvcc: database space exceeded"; the other error with this code is "too many requests".
        Code::ResourceExhausted if status.message().contains("space") => Reason::Full,
        _ => Reason::Refused,
    }
}
