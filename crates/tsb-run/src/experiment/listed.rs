//! The experiments that can be repeated.

/// An experiment as it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// The question that was published, by whom and when.
    pub question: &'static str,
    /// What it needs beside this program.
    pub needs: &'static str,
    /// How long it takes, whole and with `--quick`.
    pub takes: &'static str,
}

/// All experiments.
pub const EXPERIMENTS: [Listed; 5] = [
    Listed {
        name: "mohawk",
        question: "Which backend of Mohawk is fastest? (Mohawk, 2017)",
        needs: "nothing; with --mongo HOST:PORT a MongoDB takes part (cargo xtask servers up mongod starts one), with --mohawk HOST:PORT a Mohawk",
        takes: "seven minutes or longer, by the syncs of the disk; two minutes with --quick",
    },
    Listed {
        name: "rrdcached",
        question: "What does rrdcached buy? (kazeburo and sonots, 2012)",
        needs: "nothing; with rrdcached installed, the real daemon takes part, with the feature librrd its library; up to 13 GB of disk, 0.3 GB with --quick",
        takes: "an hour or two; two minutes with --quick, a minute with --simulate",
    },
    Listed {
        name: "hm9000",
        question: "How many apps can HM9000 keep fresh in etcd? (Pivotal, 2013)",
        needs: "nothing; with --etcd HOSTS a cluster of etcd takes part (cargo xtask servers up etcd starts one)",
        takes: "several hours, by stores and apps; two minutes with --quick",
    },
    Listed {
        name: "records",
        question: "How fast does a store of keys take records, by nodes, requests in flight and size? (Pivotal, 2013)",
        needs: "nothing; with --etcd HOSTS a cluster of etcd takes part, once for each number of nodes (cargo xtask servers up etcd etcd-three starts two)",
        takes: "minutes to hours, by the stores and the syncs of the disk; two minutes with --quick",
    },
    Listed {
        name: "dalmatiner",
        question: "What does a metric cost in DalmatinerDB, Graphite and KairosDB? (Heinz Gies, 2014)",
        needs: "nothing; with --store SPEC a server takes part, such as Graphite, InfluxDB or VictoriaMetrics (cargo xtask servers up NAME starts one), and DalmatinerDB itself; 1 GB of disk",
        takes: "an hour; two minutes with --quick",
    },
];
