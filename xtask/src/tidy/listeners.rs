//! Keeps listeners out of the benchmarks: what they time is the path of a run.

use super::source::Tree;
use super::{Finding, Rule};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "listeners",
    why: "a benchmark with a listener of its own times another path than a run; tsb_run::loopback and tsb_rrdcached::listen bind those of a run",
    check: listeners,
}];

/// What binds a socket, ours or the standard library's.
const SOCKETS: &[&str] = &[
    "Listener::bind",
    "TcpListener",
    "UdpSocket",
    "UnixDatagram",
    "UnixListener",
];

/// Files with a socket of the standard library as the opponent of ours, each with its reason. None
/// so far.
const OPPONENTS: &[(&str, &str)] = &[];

fn listeners(tree: &Tree, found: &mut Vec<Finding>) {
    let benches = tree.rust().filter(|file| file.path.starts_with("benches/"));
    for file in benches.filter(|file| OPPONENTS.iter().all(|(path, _)| file.path != *path)) {
        for (index, line) in file.lines.iter().enumerate() {
            for word in SOCKETS.iter().filter(|word| line.code.contains(**word)) {
                found.push(Finding::new(&file.path, index + 1, *word));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_benchmark_binds_no_listener() {
        let text =
            "use std::net::TcpListener;\nlet l = DatagramListener::bind(&a); // TcpListener\nlet t = \"UdpSocket\";\n";
        let found = |path| findings(RULES, "listeners", path, text);
        for path in ["benches/src/rrdcached_server.rs", "benches/examples/udp_table.rs"] {
            assert_eq!(found(path), ["1: TcpListener", "2: Listener::bind"]);
        }
        assert!(found("crates/tsb-run/src/run/route.rs").is_empty());
    }
}
