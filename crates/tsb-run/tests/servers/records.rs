//! The experiment of records on clusters of etcd: every value comes back, by all three interfaces.

use std::sync::Arc;

use tsb_core::report::experiment::records::RecordsPlan;
use tsb_run::hm9000::{EtcdInterface, Layout};
use tsb_run::records::{APPS_IN_FLIGHT, Request, measure};
use tsb_stores::conformance::libtest_mimic::{Completion, Failed, Trial};

use crate::places::ETCD;

/// A cluster: the name of its test, the variable that holds its spec, its number of nodes, and on how
/// many of them a key is acknowledged.
const CLUSTERS: [(&str, &str, usize, u32); 2] = [
    ("one_node", "TSB_TEST_ETCD", 1, 1),
    ("three_nodes", "TSB_TEST_ETCD_THREE", 3, 2),
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(name, variable, nodes, copies): (&str, &'static str, usize, u32)| {
        Trial::ignorable_test(format!("etcd-records::{name}"), move || match ETCD.missing(variable) {
            Some(why) => Ok(Completion::ignored_with(why)),
            None => come_back(&std::env::var(variable)?, nodes, copies).map(|()| Completion::Completed),
        })
    };
    CLUSTERS.into_iter().map(trial).collect()
}

/// A small experiment on the cluster of a spec, `etcd://HOSTS/PREFIX`.
fn come_back(spec: &str, nodes: usize, copies: u32) -> Result<(), Failed> {
    let (_, address) = spec.split_once("://").ok_or("the spec has no address")?;
    let hosts = address.split(['/', '?']).next().unwrap_or_default();
    let stores: Vec<String> = EtcdInterface::schemes()
        .map(|scheme| format!("{scheme}:{hosts}"))
        .collect();
    let layouts = stores.iter().map(|store| store.parse::<Layout>());
    let folder = tempfile::tempdir()?;
    let request = Request {
        layouts: layouts.collect::<Result<_, _>>()?,
        plan: RecordsPlan {
            seed: 1,
            stores: stores.clone(),
            in_flight: vec![1, 10],
            sizes: vec![128, 4_096],
            // More than one transaction; the instances are more than one page of a list.
            records: 200,
            apps: vec![600],
            apps_in_flight: APPS_IN_FLIGHT,
            samples: 1,
            budget_seconds: None,
        },
        folder: folder.path(),
        stop: Arc::default(),
    };
    let details = measure(&request, &mut |_| {});
    let wrong: Vec<String> = details.wrong().chain(details.failures.iter().cloned()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!((details.samples.len(), details.app_samples.len()), (3 * 4, 3));
    assert!(details.samples.iter().all(|sample| sample.read.found == 200));
    assert!(details.app_samples.iter().all(|sample| sample.read.found == 1_200));
    for (tested, name) in details.stores.iter().zip(&stores) {
        assert_eq!((&tested.store, tested.nodes, tested.copies), (name, nodes, copies));
        assert_eq!(tested.durability, "synced");
    }
    // Its places are empty again: the next experiment of this process opens the same ones.
    let again = measure(&request, &mut |_| {});
    assert_eq!(again.failures, Vec::<String>::new());
    Ok(())
}
