//! Short names of stores of keys, for tables and charts: an address of a cluster is as long as the
//! cluster is large, and stands in the table of stores.

use std::collections::HashMap;

use tsb_core::report::experiment::records::TestedStore;

/// Short names by the names of the plan.
#[derive(Debug)]
pub struct KeyedNames<'a>(HashMap<&'a str, String>);

impl<'a> KeyedNames<'a> {
    /// Of these stores; two that would have one name keep their own.
    pub fn new(stores: &'a [TestedStore]) -> Self {
        let shorts: Vec<String> = stores.iter().map(short).collect();
        let is_alone = |name: &String| shorts.iter().filter(|other| *other == name).count() == 1;
        let named = stores.iter().zip(&shorts).filter(|(_, short)| is_alone(short));
        Self(
            named
                .map(|(store, short)| (store.store.as_str(), short.clone()))
                .collect(),
        )
    }

    /// The name to show for one of the plan.
    pub fn of<'n>(&'n self, store: &'n str) -> &'n str {
        self.0.get(store).map_or(store, String::as_str)
    }
}

fn short(store: &TestedStore) -> String {
    let s = if store.nodes == 1 { "" } else { "s" };
    match store.store.split_once(':') {
        Some((scheme, hosts)) if scheme.starts_with("etcd") && !hosts.is_empty() => {
            format!("{scheme}, {} node{s}", store.nodes)
        }
        _ => store.store.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_named_by_its_number_of_nodes_unless_there_are_two_of_them() {
        let store = |name: &str, nodes| TestedStore {
            store: name.to_owned(),
            nodes,
            ..TestedStore::default()
        };
        let stores = [
            store("memory:", 1),
            store("series+sqlite:x.db", 1),
            store("etcd2:a:1", 1),
            store("etcd2:a:1,b:1,c:1", 3),
            store("etcd3:a:1", 1),
            store("etcd3:b:1", 1),
        ];
        let names = KeyedNames::new(&stores);
        let shown: Vec<&str> = stores.iter().map(|store| names.of(&store.store)).collect();
        assert_eq!(
            shown,
            [
                "memory:",
                "series+sqlite:x.db",
                "etcd2, 1 node",
                "etcd2, 3 nodes",
                "etcd3:a:1",
                "etcd3:b:1"
            ]
        );
        assert_eq!(names.of("etcd3-single:a:1"), "etcd3-single:a:1");
    }
}
