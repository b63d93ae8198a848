//! What a store makes of a batch, and what a result has to say about the store.

use tsb_core::report::experiment::records::TestedStore;
use tsb_core::resource::Listening;
use tsb_stores::keyed::KeyedCapabilities;

use super::batch::KeptBy;
use crate::hm9000::{EtcdInterface, Layout};

/// Who keeps the requests of a batch in flight.
pub(super) const fn kept_by(layout: &Layout) -> KeptBy {
    match layout {
        Layout::Etcd { .. } => KeptBy::Client,
        Layout::Memory | Layout::Sqlite | Layout::Series(_) => KeptBy::Threads,
    }
}

/// Number of nodes: the hosts of its address.
pub(super) fn nodes(layout: &Layout) -> usize {
    match layout {
        Layout::Etcd { hosts, .. } => hosts.split(',').filter(|host| !host.is_empty()).count(),
        Layout::Memory | Layout::Sqlite | Layout::Series(_) => 1,
    }
}

/// What is known of an open store.
pub(super) fn tested(layout: &Layout, capabilities: &KeyedCapabilities) -> TestedStore {
    TestedStore {
        store: layout.to_string(),
        nodes: nodes(layout),
        durability: capabilities.acknowledges.to_string(),
        copies: capabilities.copies,
        is_local: is_local(layout),
        requests: requests(layout).to_owned(),
    }
}

/// Whether the store is in this process, or a node is reached by a loopback address.
fn is_local(layout: &Layout) -> bool {
    match layout {
        Layout::Etcd { hosts, .. } => hosts.split(',').any(|host| Listening::of_local(host).is_some()),
        Layout::Memory | Layout::Sqlite | Layout::Series(_) => true,
    }
}

const fn requests(layout: &Layout) -> &'static str {
    match layout {
        Layout::Memory => "one call per key, by as many threads as requests in flight",
        Layout::Sqlite => {
            "one call per key, by as many threads as requests in flight; each call is a synced transaction, and one \
             runs at a time"
        }
        Layout::Series(_) => {
            "one call per key, by as many threads as requests in flight; the store of samples gets one number per key, \
             and the text stays in a table in memory, so that sizes and MiB/s say nothing of it"
        }
        Layout::Etcd { interface, .. } => match interface {
            EtcdInterface::V2 => "version 2 over HTTP, one request per key, as the original's client",
            EtcdInterface::V3Single => "version 3 over gRPC, one request per key",
            EtcdInterface::V3 => {
                "version 3 over gRPC, one request per transaction of up to 128 keys: 512 records are four requests, \
                 so that more than four in flight change nothing"
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::Durability;

    use super::*;

    #[test]
    fn hosts_are_nodes_and_only_clients_keep_requests_in_flight() {
        for (text, count, by) in [
            ("memory:", 1, KeptBy::Threads),
            ("sqlite:", 1, KeptBy::Threads),
            ("series+memory:", 1, KeptBy::Threads),
            ("etcd2:192.0.2.1:2379", 1, KeptBy::Client),
            ("etcd3:192.0.2.1:2379,192.0.2.2:2379,192.0.2.3:2379", 3, KeptBy::Client),
        ] {
            let layout: Layout = text.parse().unwrap();
            assert_eq!((nodes(&layout), kept_by(&layout)), (count, by), "{text}");
        }
        let memory = tested(&Layout::Memory, &KeyedCapabilities::new(Durability::Volatile));
        assert_eq!(
            (memory.store.as_str(), memory.durability.as_str(), memory.copies),
            ("memory:", "volatile", 1)
        );
        assert!(memory.is_local && memory.requests.contains("one call per key"));
        for (text, here) in [("etcd3-single:192.0.2.1:2379", false), ("etcd2:127.0.0.1:4001", true)] {
            let layout: Layout = text.parse().unwrap();
            assert_eq!(
                tested(&layout, &KeyedCapabilities::new(Durability::Synced)).is_local,
                here
            );
        }
    }
}
