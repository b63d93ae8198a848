//! The client of version 2: one request per key.

use std::fmt;
use std::sync::Arc;

use http::{Method, StatusCode};
use tokio::task::JoinSet;
use tsb_core::Durability;
use tsb_core::time::SECOND_NS;

use super::super::options::EtcdOptions;
use super::batch::{distinct, to_send, whole_seconds};
use super::http::{Answer, Ask, Members, form_encoded};
use super::prefix::Prefix;
use super::reply::{Failure, KEY_NOT_FOUND, NOT_A_DIRECTORY, NOT_A_FILE, Node};
use crate::acks::Acks;
use crate::no_answer::NoAnswer;
use crate::{Address, KeyPage, KeyedClient};
use tsb_stores::error::{Error, Result};
use tsb_stores::keyed::{Key, KeyedCapabilities, Put, PutAck};
use tsb_stores::{Reason, Refusals};

/// How much longer than asked for a key may be there, in nanoseconds: the fraction of a second,
/// and two in which the leader has expired keys removed (it does every half second).
const LATE_EXPIRY_NS: u64 = 3 * SECOND_NS;
/// As go-etcd asks, and for an answer by a majority, which `consistent` meant in 2013.
const READ: &str = "consistent=true&quorum=true&sorted=false";

/// A client that keeps keys in a directory of etcd, by version 2 of its interface.
///
/// A directory stays when the keys in it are gone, and no key can have its name, until
/// `delete_below` removes it.
pub struct EtcdKeyedV2 {
    members: Arc<Members>,
    prefix: Prefix,
    parallel: usize,
    copies: u32,
    acks: Acks,
}

type Outcome = (usize, std::result::Result<Answer, NoAnswer>);

impl EtcdKeyedV2 {
    /// Connects. Of the options, only `parallel` (requests of one call in flight) and `timeout`
    /// mean something here.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if no member answers, and [`Error::Spec`] if the options or the
    /// address ask for what this client does not speak, or the server does not have version 2.
    pub async fn connect(address: &Address, options: &EtcdOptions) -> Result<Self> {
        const ACTION: &str = "ask for version 2";
        let members = Members::new(address, options)?;
        let mut client = Self {
            members: Arc::new(members),
            prefix: Prefix::new(address.place()),
            parallel: options.parallel.max(1),
            copies: 1,
            acks: Acks::default(),
        };
        let root = client.ask(ACTION, &Ask::get(format!("/v2/keys/?{READ}"))).await?;
        if root.status != StatusCode::OK {
            return Err(Error::Spec {
                spec: "etcd:".to_owned(),
                what: format!(
                    "{} does not speak version 2 (status {}); start it with --enable-v2=true",
                    client.members.name(),
                    root.status
                ),
            });
        }
        let answer = client
            .ask("ask for the members", &Ask::get("/v2/members".to_owned()))
            .await?;
        let members: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let voters = members["members"].as_array().map_or(1, Vec::len);
        client.copies = voters as u32 / 2 + 1;
        Ok(client)
    }

    fn path(&self, key: &Key, query: &str) -> String {
        format!("/v2/keys/{}{query}", self.prefix.of(key))
    }

    async fn ask(&self, action: &str, ask: &Ask) -> Result<Answer> {
        let answer = self.members.ask(ask).await;
        answer.map_err(|failure| self.error(action, ask.method != Method::GET, failure))
    }

    fn error(&self, action: &str, changes: bool, failure: NoAnswer) -> Error {
        let action = format!("{action} (etcd at {})", self.members.name());
        failure.error(action, changes)
    }

    /// The error for an answer that is not what the interface says.
    fn odd(&self, action: &str, why: String) -> Error {
        Error::Backend {
            action: format!("{action} (etcd at {})", self.members.name()),
            source: why.into(),
        }
    }

    /// Makes requests, several at a time. The outcomes are in no particular order.
    async fn perform(&self, requests: Vec<(usize, Ask)>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(requests.len());
        let mut waiting = requests.into_iter();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.parallel
                && let Some((index, ask)) = waiting.next()
            {
                let members = Arc::clone(&self.members);
                under_way.spawn(async move { (index, members.ask(&ask).await) });
            }
            match under_way.join_next().await {
                None => return outcomes,
                Some(Ok(outcome)) => outcomes.push(outcome),
                // The only possible error is a panic: pass it on.
                Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            }
        }
    }

    /// The answers of requests that change something.
    ///
    /// # Errors
    /// If the outcome of one is open; a server's own failure, such as a leader that is lost,
    /// leaves it open as well.
    fn settle(&self, action: &str, outcomes: Vec<Outcome>) -> Result<Vec<(usize, Answer)>> {
        let (mut answers, mut failure) = (Vec::with_capacity(outcomes.len()), None);
        let (count, mut unsent) = (outcomes.len(), 0);
        for (index, outcome) in outcomes {
            let outcome = outcome.and_then(|answer| {
                if answer.status.is_server_error() {
                    Err(NoAnswer::Lost(Failure::parse(&answer.body).text(answer.status)))
                } else {
                    Ok(answer)
                }
            });
            match outcome {
                Ok(answer) => answers.push((index, answer)),
                Err(error) => {
                    unsent += usize::from(matches!(error, NoAnswer::Unsent(_)));
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            None => Ok(answers),
            // Other requests may have been applied, so the whole was not unsent.
            Some(NoAnswer::Unsent(why)) if unsent < count => Err(self.error(action, true, NoAnswer::Lost(why))),
            Some(error) => Err(self.error(action, true, error)),
        }
    }

    /// A key or directory; `None` if it is not there.
    async fn node(&self, action: &str, path: String) -> Result<Option<Node>> {
        let answer = self.ask(action, &Ask::get(path)).await?;
        if answer.status == StatusCode::OK {
            let node = Node::parse(&answer.body);
            return node.map(Some).map_err(|error| self.odd(action, error.to_string()));
        }
        let failure = Failure::parse(&answer.body);
        // Below a key there is none.
        if [KEY_NOT_FOUND, NOT_A_DIRECTORY].contains(&failure.error_code) {
            return Ok(None);
        }
        Err(self.odd(action, failure.text(answer.status)))
    }
}

impl fmt::Debug for EtcdKeyedV2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdKeyedV2")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for EtcdKeyedV2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keyed-etcd-v2")
    }
}

impl KeyedClient for EtcdKeyedV2 {
    fn capabilities(&self) -> KeyedCapabilities {
        let mut capabilities = KeyedCapabilities::new(Durability::Synced);
        capabilities.copies = self.copies;
        capabilities.persistent = true;
        capabilities.late_expiry_ns = LATE_EXPIRY_NS;
        capabilities.directories = true;
        capabilities
    }

    async fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        const ACTION: &str = "write keys";
        self.acks.check_open()?;
        let request = |(index, put): (usize, &Put)| {
            let ttl = put
                .ttl_ns
                .map_or_else(String::new, |ttl_ns| format!("ttl={}&", whole_seconds(ttl_ns)));
            let ask = Ask {
                method: Method::PUT,
                path: self.path(&put.key, ""),
                form: format!("{ttl}value={}", form_encoded(&put.value)),
            };
            (index, ask)
        };
        let (sent, mut found) = to_send(puts);
        let requests = sent.into_iter().map(request).collect();
        let answers = self.settle(ACTION, self.perform(requests).await)?;
        for (index, answer) in answers.iter().filter(|(_, answer)| !answer.status.is_success()) {
            let failure = Failure::parse(&answer.body);
            if ![NOT_A_FILE, NOT_A_DIRECTORY].contains(&failure.error_code) {
                return Err(self.odd(ACTION, failure.text(answer.status)));
            }
            found.push((*index, Reason::Refused));
        }
        Ok(PutAck::refusing(puts.len(), found, refused, Durability::Synced))
    }

    async fn delete(&self, keys: &[Key]) -> Result<usize> {
        const ACTION: &str = "remove keys";
        self.acks.check_open()?;
        let request = |(index, key): (usize, &Key)| {
            let ask = Ask {
                method: Method::DELETE,
                path: self.path(key, ""),
                form: String::new(),
            };
            (index, ask)
        };
        let requests = distinct(keys).into_iter().enumerate().map(request).collect();
        let mut deleted = 0;
        for (_, answer) in self.settle(ACTION, self.perform(requests).await)? {
            let failure = Failure::parse(&answer.body);
            match failure.error_code {
                _ if answer.status.is_success() => deleted += 1,
                // Not there, or a directory, which is no key; or below a key, where none is.
                KEY_NOT_FOUND | NOT_A_FILE | NOT_A_DIRECTORY => {}
                _ => return Err(self.odd(ACTION, failure.text(answer.status))),
            }
        }
        Ok(deleted)
    }

    async fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        const ACTION: &str = "remove keys below a prefix";
        self.acks.check_open()?;
        let folder = self.prefix.folder(prefix);
        // A key is removed by such a request as well, and is not below itself.
        let is_folder = self
            .node(ACTION, format!("/v2/keys/{folder}?{READ}"))
            .await?
            .is_some_and(|node| node.dir);
        if !is_folder {
            return Ok(());
        }
        let ask = Ask {
            method: Method::DELETE,
            path: format!("/v2/keys/{folder}?recursive=true"),
            form: String::new(),
        };
        let outcome = self.members.ask(&ask).await;
        for (_, answer) in self.settle(ACTION, vec![(0, outcome)])? {
            let failure = Failure::parse(&answer.body);
            if !answer.status.is_success() && failure.error_code != KEY_NOT_FOUND {
                return Err(self.odd(ACTION, failure.text(answer.status)));
            }
        }
        Ok(())
    }

    async fn get(&self, key: &Key) -> Result<Option<String>> {
        self.acks.check_open()?;
        let node = self.node("read a key", self.path(key, &format!("?{READ}"))).await?;
        Ok(node.filter(|node| !node.dir).map(|node| node.value.unwrap_or_default()))
    }

    /// One page with everything: the interface has no pages.
    async fn page(&self, prefix: Option<&Key>, _after: Option<&Key>) -> Result<KeyPage> {
        const ACTION: &str = "list keys";
        self.acks.check_open()?;
        let folder = self.prefix.folder(prefix);
        let node = self
            .node(ACTION, format!("/v2/keys/{folder}?{READ}&recursive=true"))
            .await?;
        let found = node.filter(|node| node.dir).map(Node::entries).unwrap_or_default();
        let entry = |(key, value): (String, String)| {
            let key = self
                .prefix
                .key(key.as_bytes())
                .map_err(|error| self.odd(ACTION, error.to_string()))?;
            Ok((key, value))
        };
        Ok(KeyPage {
            entries: found.into_iter().map(entry).collect::<Result<_>>()?,
            more: false,
        })
    }

    async fn close(&self) -> Result<()> {
        self.acks.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
