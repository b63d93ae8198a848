//! Which stores of keys take part in an experiment.

use tsb_run::hm9000::{EtcdInterface, Layout};

use crate::failure::Failure;

/// The stores that were named, or else `usual`, and after them the clusters of etcd by each of its
/// interfaces. `repeats` is the flag that repeats every store.
///
/// # Errors
/// For a name that is no store of keys, and for a store that is named twice.
pub(super) fn layouts(
    named: &[String],
    usual: &[&str],
    etcd: &[String],
    repeats: &str,
) -> Result<Vec<Layout>, Failure> {
    let mut names: Vec<String> = if named.is_empty() {
        usual.iter().map(|&name| name.to_owned()).collect()
    } else {
        named.to_vec()
    };
    for hosts in etcd {
        names.extend(EtcdInterface::schemes().map(|scheme| format!("{scheme}:{hosts}")));
    }
    let mut layouts: Vec<Layout> = Vec::new();
    for name in &names {
        let layout: Layout = name.parse()?;
        if layouts.contains(&layout) {
            return Err(Failure::usage(format!("cannot use --store {name} twice"))
                .because_of("each store takes part once")
                .hint(format!("{repeats} N repeats every store")));
        }
        layouts.push(layout);
    }
    Ok(layouts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_those_named_or_the_usual_ones_and_each_cluster_has_three_interfaces() {
        let names = |named: &[&str], etcd: &[&str]| {
            let [named, etcd] = [named, etcd].map(|list| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
            let layouts = layouts(&named, &["memory:"], &etcd, "--rounds");
            layouts.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names(&[], &[]).unwrap(), "memory:");
        assert_eq!(
            names(&["sqlite:"], &["a:1", "b:1,c:1"]).unwrap(),
            "sqlite: etcd2:a:1 etcd3-single:a:1 etcd3:a:1 etcd2:b:1,c:1 etcd3-single:b:1,c:1 etcd3:b:1,c:1"
        );
        for (named, etcd, words) in [
            (&["memory:", "memory:"][..], &[][..], "twice"),
            (&["etcd3:a:1"], &["a:1"], "etcd3:a:1 twice"),
            (&["zookeeper:h:1"], &[], "zookeeper"),
        ] {
            let error = names(named, etcd).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
