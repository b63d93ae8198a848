//! The client of version 3.

use std::fmt;
use std::sync::Arc;

use tokio::task::JoinSet;
use tonic::{Code, Status};
use tsb_core::Durability;

use super::super::connection::{CallError, EtcdConnection};
use super::super::key_space::{after, between};
use super::super::message::{DeleteRange, MemberList, Operation, Put as EtcdPut, Range, Txn, TxnReply};
use super::super::options::EtcdOptions;
use super::batch::{Refused, distinct, to_send};
use super::lease::{LATE_EXPIRY_NS, SharedLeases};
use super::prefix::Prefix;
use crate::acks::Acks;
use crate::{Address, KeyPage, KeyedClient};
use tsb_stores::error::Result;
use tsb_stores::keyed::{Key, KeyedCapabilities, Put, PutAck};
use tsb_stores::{Reason, Refusals};

/// Maximum size of a transaction in bytes: a server accepts requests of 1.5 MiB unless it was
/// started with another `--max-request-bytes`.
const BYTES_MAX: usize = 3 << 19;
/// Upper bound of the bytes around a key and a value: tags, lengths and the lease.
const OVERHEAD_BYTES: usize = 32;
/// Number of keys per page of a list.
const PAGE: i64 = 1_000;
/// Number of keys that one request removes.
const REMOVED_MAX: i64 = 10_000;

/// A client that keeps keys below a prefix of etcd, by version 3 of its interface.
pub struct EtcdKeyed {
    connection: Arc<EtcdConnection>,
    prefix: Prefix,
    options: EtcdOptions,
    leases: SharedLeases,
    copies: u32,
    acks: Acks,
}

/// Some operations that are one request, and the indices of their puts or keys.
struct Request {
    indices: Vec<usize>,
    txn: Txn,
}

type Outcome = (Vec<usize>, std::result::Result<TxnReply, CallError>);

impl EtcdKeyed {
    /// Connects. Of the options, those about samples (`ttl_ns`, `drop`, `max_series`) mean
    /// nothing here.
    ///
    /// # Errors
    /// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no member answers, and
    /// [`Error::Spec`](tsb_stores::Error::Spec) for an address that cannot be used.
    pub async fn connect(address: &Address, options: &EtcdOptions) -> Result<Self> {
        let connection = EtcdConnection::new(address, options)?;
        let members = connection.ask("ask for the members", MemberList {}).await?.members;
        let voters = members.iter().filter(|member| !member.is_learner).count();
        Ok(Self {
            connection: Arc::new(connection),
            prefix: Prefix::new(address.place()),
            options: options.clone(),
            leases: SharedLeases::default(),
            copies: voters as u32 / 2 + 1,
            acks: Acks::default(),
        })
    }

    /// The operations that put these keys, each with its size.
    async fn operations(
        &self,
        sent: &[(usize, &Put)],
    ) -> std::result::Result<Vec<(usize, Operation, usize)>, CallError> {
        let mut operations = Vec::with_capacity(sent.len());
        for (index, put) in sent {
            let lease = match put.ttl_ns {
                None => 0,
                Some(ttl_ns) => self.leases.id(&self.connection, ttl_ns).await?,
            };
            let key = self.prefix.of(&put.key);
            let bytes = key.len() + put.value.len() + OVERHEAD_BYTES;
            let put = EtcdPut {
                key: key.into(),
                value: put.value.clone().into(),
                lease,
            };
            operations.push((*index, put.into(), bytes));
        }
        Ok(operations)
    }

    /// Runs the requests, several at a time. The outcomes are in no particular order.
    async fn perform(&self, requests: Vec<Request>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(requests.len());
        let mut waiting = requests.into_iter();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.options.parallel
                && let Some(request) = waiting.next()
            {
                let connection = Arc::clone(&self.connection);
                under_way.spawn(async move { (request.indices, connection.call(request.txn).await) });
            }
            match under_way.join_next().await {
                None => return outcomes,
                Some(Ok(outcome)) => outcomes.push(outcome),
                // The only possible error is a panic: pass it on.
                Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            }
        }
    }

    /// The replies of requests that were answered; those that were refused are in `refused`, each
    /// index with its reason.
    ///
    /// # Errors
    /// If the outcome of one is open.
    fn settle(&self, action: &str, outcomes: Vec<Outcome>, refused: &mut Refused) -> Result<Vec<TxnReply>> {
        let (mut replies, mut failure) = (Vec::with_capacity(outcomes.len()), None);
        let (count, mut unsent) = (outcomes.len(), 0);
        for (indices, outcome) in outcomes {
            match outcome {
                Ok(reply) => replies.push(reply),
                Err(CallError::Refused(status)) if status.code() != Code::InvalidArgument => {
                    let reason = reason_of(&status);
                    refused.extend(indices.into_iter().map(|index| (index, reason)));
                }
                Err(error) => {
                    unsent += usize::from(matches!(error, CallError::Unsent(_)));
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            None => Ok(replies),
            // Other requests may have been applied, so the whole was not unsent.
            Some(CallError::Unsent(status)) if unsent < count => {
                Err(self.connection.error_for::<Txn>(action, CallError::Lost(status.into())))
            }
            Some(error) => Err(self.connection.error_for::<Txn>(action, error)),
        }
    }

    fn range(&self, prefix: Option<&Key>) -> Range {
        let (start, end) = self.prefix.range(prefix);
        between(start.into(), end.into())
    }
}

/// Divides operations into requests of at most `most` operations and [`BYTES_MAX`] bytes.
fn requests(operations: Vec<(usize, Operation, usize)>, most: usize) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    let mut bytes_left = 0;
    for (index, operation, bytes) in operations {
        let is_full = requests.last().is_none_or(|last| last.indices.len() >= most.max(1));
        if is_full || bytes > bytes_left {
            bytes_left = BYTES_MAX;
            requests.push(Request {
                indices: Vec::new(),
                txn: Txn::default(),
            });
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        if let Some(last) = requests.last_mut() {
            last.indices.push(index);
            last.txn.success.push(operation);
        }
    }
    requests
}

/// The reason for a refusal, from the server's status.
fn reason_of(status: &Status) -> Reason {
    match status.code() {
        // "mvcc: database space exceeded"; the other error with this code is "too many requests".
        Code::ResourceExhausted if status.message().contains("space") => Reason::Full,
        _ => Reason::Refused,
    }
}

impl fmt::Debug for EtcdKeyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdKeyed")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for EtcdKeyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keyed-etcd")
    }
}

impl KeyedClient for EtcdKeyed {
    fn capabilities(&self) -> KeyedCapabilities {
        let mut capabilities = KeyedCapabilities::new(Durability::Synced);
        capabilities.copies = self.copies;
        capabilities.persistent = true;
        capabilities.late_expiry_ns = LATE_EXPIRY_NS;
        capabilities
    }

    async fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        const ACTION: &str = "write keys";
        self.acks.check_open()?;
        let (sent, mut found) = to_send(puts);
        let operations = match self.operations(&sent).await {
            Ok(operations) => operations,
            // A lease may have been granted, but no key was changed.
            Err(CallError::Lost(source)) => {
                let unsent = CallError::Unsent(Status::from_error(source));
                return Err(self.connection.error_for::<Txn>("get a lease", unsent));
            }
            Err(error) => return Err(self.connection.error_for::<Txn>("get a lease", error)),
        };
        let outcomes = self.perform(requests(operations, self.options.operations)).await;
        self.settle(ACTION, outcomes, &mut found)?;
        Ok(PutAck::refusing(puts.len(), found, refused, Durability::Synced))
    }

    async fn delete(&self, keys: &[Key]) -> Result<usize> {
        const ACTION: &str = "remove keys";
        self.acks.check_open()?;
        let operation = |(index, key): (usize, &Key)| {
            let key = self.prefix.of(key);
            let bytes = key.len() + OVERHEAD_BYTES;
            let delete = DeleteRange {
                key: key.into(),
                ..DeleteRange::default()
            };
            (index, delete.into(), bytes)
        };
        let operations = distinct(keys).into_iter().enumerate().map(operation).collect();
        let outcomes = self.perform(requests(operations, self.options.operations)).await;
        let mut refused = Vec::new();
        let replies = self.settle(ACTION, outcomes, &mut refused)?;
        if !refused.is_empty() {
            let what = format!("it refused to remove {} of {} keys", refused.len(), keys.len());
            return Err(self.connection.failed(ACTION, what));
        }
        let deleted = replies.iter().flat_map(|reply| &reply.replies);
        Ok(deleted
            .filter_map(|reply| reply.delete.as_ref())
            .map(|delete| delete.deleted as usize)
            .sum())
    }

    async fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        const ACTION: &str = "remove keys below a prefix";
        self.acks.check_open()?;
        let mut range = self.range(prefix);
        loop {
            let page = Range {
                limit: REMOVED_MAX,
                keys_only: true,
                ..range.clone()
            };
            let page = self.connection.ask(ACTION, page).await?;
            let Some(last) = page.pairs.last() else { return Ok(()) };
            let end = after(&last.key);
            let delete = DeleteRange {
                key: range.key,
                end: end.clone(),
            };
            self.connection.ask(ACTION, delete).await?;
            if !page.more {
                return Ok(());
            }
            range.key = end;
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<String>> {
        const ACTION: &str = "read a key";
        self.acks.check_open()?;
        let single = Range {
            key: self.prefix.of(key).into(),
            ..Range::default()
        };
        let pair = self.connection.ask(ACTION, single).await?.pairs.pop();
        pair.map(|pair| self.text(ACTION, &pair.value)).transpose()
    }

    async fn page(&self, prefix: Option<&Key>, after_key: Option<&Key>) -> Result<KeyPage> {
        const ACTION: &str = "list keys";
        self.acks.check_open()?;
        let mut range = Range {
            limit: PAGE,
            ..self.range(prefix)
        };
        if let Some(last) = after_key {
            range.key = after(self.prefix.of(last).as_bytes());
        }
        let page = self.connection.ask(ACTION, range).await?;
        let entry = |pair: &super::super::message::KeyValue| {
            let key = self
                .prefix
                .key(&pair.key)
                .map_err(|error| self.connection.failed(ACTION, error))?;
            Ok((key, self.text(ACTION, &pair.value)?))
        };
        Ok(KeyPage {
            entries: page.pairs.iter().map(entry).collect::<Result<_>>()?,
            more: page.more,
        })
    }

    async fn close(&self) -> Result<()> {
        self.acks.close();
        Ok(())
    }
}

impl EtcdKeyed {
    fn text(&self, action: &str, value: &[u8]) -> Result<String> {
        let text = String::from_utf8(value.to_vec());
        text.map_err(|_| {
            self.connection
                .failed(action, "a value is no text, so no store of keys has put it")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range as Indices;

    use super::*;

    #[test]
    fn requests_are_cut_by_operations_and_by_bytes() {
        let cut = |sizes: &[usize], most: usize| -> Vec<Indices<usize>> {
            let operations = sizes
                .iter()
                .enumerate()
                .map(|(index, bytes)| (index, Operation::default(), *bytes));
            let requests = requests(operations.collect(), most);
            let bounds = |request: &Request| request.indices[0]..request.indices[request.indices.len() - 1] + 1;
            requests.iter().map(bounds).collect()
        };
        assert_eq!(cut(&[1; 5], 2), [0..2, 2..4, 4..5]);
        assert_eq!(cut(&[BYTES_MAX, 1, BYTES_MAX - 1, 1], 128), [0..1, 1..3, 3..4]);
        assert_eq!(cut(&[BYTES_MAX + 1, BYTES_MAX + 1], 128), [0..1, 1..2]);
        assert!(cut(&[], 2).is_empty());
    }
}
