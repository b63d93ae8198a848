//! Finds the processes of the server that a run sends to, if it runs on this machine.

use crate::spec::Spec;
use tsb_core::resource::{Listening, listeners};

use crate::plan::Plan;

/// The processes that a plan names, those of the store itself, and those that listen at the
/// addresses of its stores.
pub(super) fn with_servers(plan: &Plan, of_store: &[u32]) -> Vec<u32> {
    let mut pids = plan.watch_pids.clone();
    pids.extend(of_store.iter().filter(|pid| !plan.watch_pids.contains(pid)));
    let places: Vec<Listening> = plan.stores.iter().flat_map(places).collect();
    let others = listeners(&places).into_iter().filter(|pid| *pid != std::process::id());
    let new: Vec<u32> = others.filter(|pid| !pids.contains(pid)).collect();
    pids.extend(new);
    pids
}

/// The local addresses of a store's server; empty if it is on another machine.
fn places(spec: &Spec) -> Vec<Listening> {
    if let Some(path) = spec.path().strip_prefix("unix:") {
        return vec![Listening::Path(path.to_owned())];
    }
    let Some(address) = spec.path().strip_prefix("//") else {
        return Vec::new();
    };
    let authority = address.rsplit_once('/').map_or(address, |(authority, _)| authority);
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    let others = ["render", "processes"].into_iter().filter_map(|name| spec.option(name));
    let ports = spec.default_ports();
    let own = hosts.split(',').flat_map(|host| places_of(host, ports));
    let others = others.flat_map(|hosts| hosts.split(','));
    own.chain(others.filter_map(Listening::of_local)).collect()
}

/// The places of one host; those of every default port if it names none.
fn places_of(host: &str, ports: &[u16]) -> Vec<Listening> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    if has_port {
        return Listening::of_local(host).into_iter().collect();
    }
    let named = ports.iter().map(|port| format!("{host}:{port}"));
    named.filter_map(|host| Listening::of_local(&host)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_this_machine_are_looked_for_and_no_others() {
        for (host, port) in [
            ("127.0.0.1:1", Some(1)),
            ("localhost:27017", Some(27_017)),
            ("[::1]:5", Some(5)),
            ("10.0.0.1:5", None),
            ("localhost", None),
            ("127.0.0.1:x", None),
        ] {
            assert_eq!(Listening::of_local(host), port.map(Listening::Port), "{host}");
        }
        let spec: Spec = "rrdcached:unix:/run/s.sock".parse().unwrap();
        assert_eq!(places(&spec), [Listening::Path("/run/s.sock".to_owned())]);
        let spec: Spec = "memory:".parse().unwrap();
        assert!(places(&spec).is_empty());
    }

    #[test]
    #[cfg(all(feature = "graphite", feature = "mongo"))]
    fn all_ports_of_a_spec_are_looked_for() {
        let spec = "graphite://127.0.0.1:1/p?render=localhost:2&processes=127.0.0.1:3,127.0.0.1:4";
        let ports = [1, 2, 3, 4].map(Listening::Port);
        assert_eq!(places(&spec.parse().unwrap()), ports);
        let spec: Spec = "graphite://localhost/p?render=localhost:80".parse().unwrap();
        let ports = [2003, 2004, 80].map(Listening::Port);
        assert_eq!(places(&spec), ports);
        let spec: Spec = "mongo://user:pw@127.0.0.1,10.0.0.1/db".parse().unwrap();
        assert_eq!(places(&spec), [Listening::Port(27_017)]);
    }
}
