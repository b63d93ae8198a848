//! What is measured: each server that `cargo xtask servers` starts, and each of our stores behind a
//! wire. A new one is one line.

/// A row of the page.
#[derive(Debug)]
pub(super) struct Target {
    /// As the page, its file and `--only` call it; of a server, also as `cargo xtask servers` does.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Of a server, what is added to the spec that the runner gives; of a store of ours, the whole spec, with
    /// `@` for a folder.
    pub(super) spec: &'static str,
    /// Why no queries are asked beside the writes; empty where they are.
    pub(super) no_queries: &'static str,
    /// Why the probes of the search for the capacity are not read back; empty where they are.
    pub(super) unread_probes: &'static str,
    /// Seconds that it may take until it answers again after a kill.
    pub(super) restart_s: u64,
}

/// Whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A server: its program is of this package of Debian, or of the version that the runner pins.
    Server { package: &'static str },
    /// A store of ours, in the process of `tsb`.
    Ours,
}

/// Why a store that states a visibility delay is not asked while it is written.
const DELAYED: &str = "what it accepted may stay invisible for its stated delay, so no answer could be called wrong";
/// The same of one that keeps a sample per slot.
const SLOTS: &str = "it keeps one sample per slot, and which one that is changes while it is read";
/// The same of one that consolidates.
const CONSOLIDATED: &str = "only consolidated rows come back, and the newest of them change while they are read";

/// Why probes are not read back: the search has a minute, and a probe of it five seconds.
const TOO_LONG: &str = "its probes were not read back, because that takes longer than a probe; that nothing is lost is \
                        shown by the runs below";

/// A program of C, C++ or Go.
const SOON_S: u64 = 5;
/// A program of Java, or several that have to find each other.
const LATE_S: u64 = 30;

/// All of them, in the order in which they are measured.
pub(super) const TARGETS: &[Target] = &[
    ours("memory", "memory:", ""),
    ours("ring", "ring:?slot=1s&retention=5m", SLOTS),
    ours("sqlite", "sqlite:@/tsb.db", ""),
    ours("sqlite-1s", "sqlite:@/tsb.db?commit=1s", ""),
    ours("mstore", "mstore:@/tsb", ""),
    ours("rrd", "rrd:@/tsb?step=1s&heartbeat=10s", CONSOLIDATED),
    ours(
        "write-cache-rrd",
        "write-cache+rrd:@/tsb?step=1s&heartbeat=10s&write-cache.journal=@/journal",
        CONSOLIDATED,
    ),
    server("prometheus", "prometheus", "drop=1", "", SOON_S).with_read_probes(),
    // Each series of the fleet would be a measurement of its own, of which it makes about 1,600 per second.
    server("influxdb", "influxdb", "measurement=all&drop=1", "", SOON_S),
    server("victoriametrics", "victoria-metrics", "drop=1", DELAYED, SOON_S),
    server("carbon", "graphite-carbon", "drop=1", SLOTS, SOON_S),
    server("carbon-relay", "graphite-carbon", "drop=1", SLOTS, SOON_S),
    server("go-carbon", "", "drop=1", SLOTS, SOON_S),
    server("clickhouse", "clickhouse-server", "drop=1", "", SOON_S).with_read_probes(),
    server("questdb", "", "drop=1", DELAYED, LATE_S),
    server("cassandra", "", "drop=1", "", LATE_S),
    server("cassandra-three", "", "drop=1", "", LATE_S),
    server("kairosdb", "", "drop=1", DELAYED, LATE_S),
    server("kairosdb-on-cassandra", "", "drop=1", DELAYED, LATE_S),
    server("postgres", "postgresql-15", "drop=1", "", SOON_S).with_read_probes(),
    server("mongod", "", "drop=1", "", SOON_S),
    server("mongod-set", "", "drop=1", "", LATE_S),
    server("etcd", "etcd-server", "drop=1", "", SOON_S),
    server("etcd-three", "etcd-server", "drop=1", "", SOON_S),
    // A sample a second: no step is shorter. It drops nothing, and each run has a server of its own.
    server("rrdcached", "rrdcached", "step=1s&heartbeat=10s", CONSOLIDATED, SOON_S),
];

const fn ours(name: &'static str, spec: &'static str, no_queries: &'static str) -> Target {
    Target {
        name,
        kind: Kind::Ours,
        spec,
        no_queries,
        unread_probes: "",
        restart_s: 0,
    }
}

const fn server(
    name: &'static str,
    package: &'static str,
    spec: &'static str,
    no_queries: &'static str,
    restart_s: u64,
) -> Target {
    Target {
        name,
        kind: Kind::Server { package },
        spec,
        no_queries,
        unread_probes: TOO_LONG,
        restart_s,
    }
}

impl Target {
    /// The same, whose probes are read back: that takes it a few seconds.
    const fn with_read_probes(mut self) -> Self {
        self.unread_probes = "";
        self
    }

    /// The spec with which `tsb` opens it, of a server from the one that the runner gives, and of a store of
    /// ours from a folder.
    pub(super) fn store(&self, whereabouts: &str) -> String {
        match self.kind {
            Kind::Ours => self.spec.replace('@', whereabouts),
            Kind::Server { .. } if whereabouts.contains('?') => format!("{whereabouts}&{}", self.spec),
            Kind::Server { .. } => format!("{whereabouts}?{}", self.spec),
        }
    }

    pub(super) fn is_server(&self) -> bool {
        self.kind != Kind::Ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers;

    #[test]
    fn every_target_has_a_name_of_its_own_and_every_server_is_known() {
        for (place, target) in TARGETS.iter().enumerate() {
            let before = &TARGETS[..place];
            assert!(before.iter().all(|other| other.name != target.name), "{}", target.name);
            let Kind::Server { package } = target.kind else {
                continue;
            };
            assert!(servers::folder_of(target.name).is_ok());
            assert_eq!(
                servers::pinned_version(target.name).is_none(),
                !package.is_empty(),
                "{}",
                target.name
            );
        }
    }

    #[test]
    fn a_spec_is_completed() {
        let of = |name: &str| TARGETS.iter().find(|target| target.name == name).expect("it is listed");
        assert_eq!(of("sqlite").store("F"), "sqlite:F/tsb.db");
        assert_eq!(of("etcd").store("etcd://h/p"), "etcd://h/p?drop=1");
        assert_eq!(of("mongod-set").store("mongo://h/p?a=b"), "mongo://h/p?a=b&drop=1");
    }
}
