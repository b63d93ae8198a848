//! What of the original does not take part, and why.

use crate::hm9000::Layout;
use crate::records::requests::nodes;

/// The numbers of nodes of the original's clusters.
const NODES: [usize; 4] = [1, 3, 5, 7];

/// Sentences about the stores and clusters of the original that are not among the given ones.
pub(super) fn absent(layouts: &[Layout]) -> Vec<String> {
    let clusters = layouts.iter().filter(|layout| matches!(layout, Layout::Etcd { .. }));
    let given: Vec<usize> = clusters.map(nodes).collect();
    let missing: Vec<String> = NODES
        .iter()
        .filter(|count| !given.contains(count))
        .map(ToString::to_string)
        .collect();
    let mut absent = vec![
        "ZooKeeper, with which the original compares etcd: tsb has no client of it".to_owned(),
        "Cassandra, into which the last version of old/phdaws writes: it is no store of keys here (tsb run --store \
         cassandra: measures it with samples)"
            .to_owned(),
    ];
    if !missing.is_empty() {
        absent.push(format!(
            "etcd, number of nodes {}: no such cluster was given (--etcd HOST:PORT,HOST:PORT; cargo xtask servers up \
             etcd etcd-three starts one and three nodes)",
            missing.join(", ")
        ));
    }
    absent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zookeeper_is_named_and_so_are_the_clusters_that_were_not_given() {
        let of = |texts: &[&str]| -> Vec<String> {
            let layouts: Vec<Layout> = texts.iter().map(|text| text.parse().unwrap()).collect();
            absent(&layouts)
        };
        let without = of(&["memory:"]);
        assert_eq!(without.len(), 3);
        assert!(without[0].starts_with("ZooKeeper") && without[1].starts_with("Cassandra"));
        assert!(without[2].contains("number of nodes 1, 3, 5, 7"), "{without:?}");
        let with = of(&["etcd3:a:1", "etcd2:a:1,b:1,c:1", "memory:"]);
        assert!(with[2].contains("number of nodes 5, 7"), "{with:?}");
    }
}
