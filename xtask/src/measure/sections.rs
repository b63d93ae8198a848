//! The sections of docs/measurements.md: for each, the commands that print its tables, and what
//! they take.

/// A section of the page, by the name that `cargo xtask measure NAME` knows.
pub(super) struct Section {
    pub(super) name: &'static str,
    /// What it measures, in a few words.
    pub(super) what: &'static str,
    /// How long its commands take once they are built: an estimate, on two cores.
    pub(super) minutes: u32,
    /// Megabytes that its files take at most, below the target folder.
    pub(super) disk_mb: u32,
    /// The programs that it needs: a command that succeeds where they are, and the package.
    pub(super) needs: &'static [Requirement],
    pub(super) steps: &'static [Step],
}

/// A program or library that a section needs beyond the Rust toolchain.
pub(super) struct Requirement {
    pub(super) probe: &'static [&'static str],
    pub(super) package: &'static str,
}

const RRDCACHED: Requirement = Requirement {
    probe: &["sh", "-c", "command -v rrdcached"],
    package: "rrdcached",
};
const LIBRRD: Requirement = Requirement {
    probe: &[
        "sh",
        "-c",
        "pkg-config --exists librrd && ls /usr/lib/llvm-*/lib/libclang*.so*",
    ],
    package: "librrd-dev and libclang-dev",
};
const MONGOD: Requirement = Requirement {
    probe: &["python3", "-m", "ensurepip", "--version"],
    package: "python3-venv, by which mongod is installed",
};
const GO: Requirement = Requirement {
    probe: &["go", "version"],
    package: "a Go toolchain",
};
const TMUX: Requirement = Requirement {
    probe: &["tmux", "-V"],
    package: "tmux",
};
const CHROMIUM: Requirement = Requirement {
    probe: &["chromium", "--version"],
    package: "chromium",
};

/// One command of a section.
pub(super) struct Step {
    pub(super) program: Program,
    /// Its arguments; `@`, alone or behind a colon (`sqlite:@/a.db`), stands for a folder of the section's own.
    pub(super) arguments: &'static [&'static str],
    /// Its arguments for `--quick`; `None` leaves it out then.
    pub(super) quick: Option<&'static [&'static str]>,
    pub(super) excerpt: Excerpt,
}

/// What runs.
#[derive(Clone, Copy)]
pub(super) enum Program {
    /// An example of `benches/`, built with these features.
    Example(&'static str, &'static str),
    /// A bench of `benches/` that prints a table.
    Bench(&'static str),
    /// The program `tsb`, as fast as it goes over TCP.
    Tsb,
    /// `tsb run`, with nothing but its arguments.
    Run,
    /// Another job of this program.
    Job,
    /// The comparison of a run's costs with those of each store alone.
    Cost,
    /// The example for CI, many times.
    Regressions,
    /// Comparisons of equal sides.
    EqualSides,
    /// Comparisons of a store with itself when it is slower.
    SlowedStore,
}

/// What of its output goes on the page.
pub(super) enum Excerpt {
    All,
    /// The lines from the first that contains these words to the last.
    From(&'static str),
    /// As `From`, up to the next empty line.
    Paragraph(&'static str),
    /// The lines that contain one of these words.
    Lines(&'static [&'static str]),
}

const fn example(
    name: &'static str,
    arguments: &'static [&'static str],
    quick: Option<&'static [&'static str]>,
) -> Step {
    Step {
        program: Program::Example(name, ""),
        arguments,
        quick,
        excerpt: Excerpt::All,
    }
}

const fn beside_librrd(name: &'static str, arguments: &'static [&'static str]) -> Step {
    Step {
        program: Program::Example(name, "librrd"),
        arguments,
        quick: None,
        excerpt: Excerpt::All,
    }
}

const fn bench(name: &'static str) -> Step {
    Step {
        program: Program::Bench(name),
        arguments: &["table"],
        quick: None,
        excerpt: Excerpt::All,
    }
}

/// A program that makes its whole table itself.
const fn whole(program: Program) -> Step {
    Step {
        program,
        arguments: &[],
        quick: None,
        excerpt: Excerpt::All,
    }
}

const fn job(arguments: &'static [&'static str], excerpt: Excerpt) -> Step {
    Step {
        program: Program::Job,
        arguments,
        quick: None,
        excerpt,
    }
}

const fn end_to_end(arguments: &'static [&'static str], quick: &'static [&'static str]) -> Step {
    Step {
        program: Program::Tsb,
        arguments,
        quick: Some(quick),
        excerpt: Excerpt::Lines(&["  held ", "verified "]),
    }
}

/// Writes, queries, or both: a day of 5,400 series at 10 s is there first.
const fn mixed(arguments: &'static [&'static str], quick: Option<&'static [&'static str]>) -> Step {
    Step {
        program: Program::Run,
        arguments,
        quick,
        excerpt: Excerpt::Lines(&[
            "  asked",
            "  held ",
            "p50",
            "  response ",
            "  q1 ",
            "  q2 ",
            "  last ",
            "  range ",
        ]),
    }
}

/// The arguments of a step of `mixed`: a store, a rate of writes, and further ones.
macro_rules! beside_a_day {
    ($store:literal, $rate:literal $(, $more:literal)*) => {
        &[
            "--store", $store, "--transport", "inproc", "--series", "5400", "--interval", "10s", "--preload", "1d",
            "--duration", "30s", "--quiet", "--rate", $rate $(, $more)*
        ]
    };
}

/// In the order of the page.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        name: "wires",
        what: "encoding and decoding a sample in each protocol",
        minutes: 3,
        disk_mb: 0,
        needs: &[],
        steps: &[example("wire_table", &[], Some(&["tsb"]))],
    },
    Section {
        name: "generate",
        what: "generating a sample of each fleet",
        minutes: 1,
        disk_mb: 0,
        needs: &[],
        steps: &[bench("workload_generate")],
    },
    Section {
        name: "pacing",
        what: "how late the emitter starts an operation, beside other timers",
        minutes: 1,
        disk_mb: 0,
        needs: &[],
        steps: &[example("pacing", &["5"], Some(&["1"]))],
    },
    Section {
        name: "memory",
        what: "writing into the memory store, its bytes per sample, and queries",
        minutes: 2,
        disk_mb: 1_000,
        needs: &[],
        steps: &[
            bench("store_write"),
            example("size_table", &[], None),
            bench("store_query"),
        ],
    },
    Section {
        name: "sqlite",
        what: "writing into the SQLite store, its worst commit, its size, and queries",
        minutes: 3,
        disk_mb: 2_000,
        needs: &[],
        steps: &[
            example("sqlite_table", &["write", "@"], Some(&["@"])),
            example("sqlite_table", &["hour", "@"], None),
            example("sqlite_table", &["size", "@"], None),
            example("sqlite_table", &["query", "@"], None),
            example("sqlite_table", &["shapes", "@"], None),
        ],
    },
    Section {
        name: "cost",
        what: "the parts of a sample's cost that a run reports, beside each store alone",
        minutes: 16,
        disk_mb: 1_000,
        needs: &[MONGOD],
        steps: &[Step {
            program: Program::Cost,
            arguments: &[],
            quick: None,
            excerpt: Excerpt::All,
        }],
    },
    Section {
        name: "udp",
        what: "sending and receiving datagrams, and the highest rate without a loss",
        minutes: 8,
        disk_mb: 0,
        needs: &[],
        steps: &[
            example("udp_table", &["costs", "3"], Some(&["quick"])),
            example("udp_table", &["rates", "all"], None),
        ],
    },
    Section {
        name: "rrd",
        what: "updating RRD files, warm and cold, beside librrd",
        minutes: 4,
        disk_mb: 11_000,
        needs: &[LIBRRD, RRDCACHED],
        steps: &[
            beside_librrd("rrd_table", &["prepare", "@", "10000"]),
            beside_librrd("rrd_table", &["run", "@", "10000", "1"]),
            beside_librrd("rrd_table", &["cold", "@", "10000"]),
        ],
    },
    Section {
        name: "write-cache",
        what: "the write cache in process and behind a socket, beside rrdcached",
        minutes: 5,
        disk_mb: 9_000,
        needs: &[LIBRRD, RRDCACHED],
        steps: &[
            beside_librrd("rrdcached_table", &["prepare", "@", "10000"]),
            beside_librrd("rrdcached_table", &["drain", "@", "10000", "60"]),
            beside_librrd("rrdcached_table", &["cold", "@", "10000", "60"]),
            beside_librrd("rrdcached_table", &["acks", "@", "1000"]),
            beside_librrd("rrdcached_table", &["kills", "@", "100"]),
            beside_librrd("cache_table", &["@", "300"]),
        ],
    },
    Section {
        name: "peers",
        what: "generating text, beside tsbs_generate_data",
        minutes: 2,
        disk_mb: 500,
        needs: &[GO],
        steps: &[job(&["peers"], Excerpt::Paragraph("measured in this run"))],
    },
    Section {
        name: "loaders",
        what: "sending over HTTP, beside tsbs_load_influx",
        minutes: 2,
        disk_mb: 1_000,
        needs: &[GO],
        steps: &[job(&["peers", "load"], Excerpt::From("into one listener"))],
    },
    Section {
        name: "end-to-end",
        what: "emitter, wire, decoder, store and audit in one process",
        minutes: 1,
        disk_mb: 0,
        needs: &[],
        steps: &[
            end_to_end(
                &["--protocol", "graphite", "--fleet-time", "10m"],
                &["--protocol", "graphite", "--fleet-time", "5s"],
            ),
            end_to_end(
                &["--protocol", "tsb", "--fleet-time", "40m"],
                &["--protocol", "tsb", "--fleet-time", "5s"],
            ),
        ],
    },
    Section {
        name: "mixed",
        what: "writes alone, queries almost alone, and both together",
        minutes: 11,
        disk_mb: 1_000,
        needs: &[],
        steps: &[
            mixed(
                beside_a_day!("memory:", "54000"),
                Some(&["--preload", "10s", "--duration", "1s", "--quiet"]),
            ),
            mixed(
                beside_a_day!("memory:", "54", "--queries", "q1@10/s,q2@1/s,last@100/s,range@10/s"),
                None,
            ),
            mixed(
                beside_a_day!("memory:", "54000", "--queries", "q1@10/s,q2@1/s,last@100/s,range@10/s"),
                Some(&[
                    "--preload",
                    "10s",
                    "--duration",
                    "1s",
                    "--quiet",
                    "--queries",
                    "q1@10/s",
                ]),
            ),
            mixed(beside_a_day!("sqlite:@/a.db", "54000"), None),
            mixed(
                beside_a_day!(
                    "sqlite:@/b.db",
                    "54",
                    "--queries",
                    "q1@10/s,q2@1/s,last@100/s,range@10/s"
                ),
                None,
            ),
            mixed(
                beside_a_day!(
                    "sqlite:@/c.db",
                    "54000",
                    "--queries",
                    "q1@10/s,q2@1/s,last@100/s,range@10/s"
                ),
                None,
            ),
        ],
    },
    Section {
        name: "equal-sides",
        what: "what tsb compare says of two sides that are equal",
        minutes: 16,
        disk_mb: 500,
        needs: &[],
        steps: &[whole(Program::EqualSides)],
    },
    Section {
        name: "slowed-store",
        what: "what tsb compare says of a store that is slowed by a known share",
        minutes: 8,
        disk_mb: 0,
        needs: &[],
        steps: &[whole(Program::SlowedStore)],
    },
    Section {
        name: "regressions",
        what: "what the example for CI says of a store as it was, and of one a tenth slower",
        minutes: 20,
        disk_mb: 0,
        needs: &[],
        steps: &[whole(Program::Regressions)],
    },
    Section {
        name: "view",
        what: "what the live view costs",
        minutes: 4,
        disk_mb: 0,
        needs: &[TMUX],
        steps: &[job(&["view-cost"], Excerpt::From("response p50"))],
    },
    Section {
        name: "page",
        what: "how long a browser takes for the page of an hour's run",
        minutes: 1,
        disk_mb: 500,
        needs: &[CHROMIUM, TMUX],
        steps: &[job(&["ci", "--only", "page"], Excerpt::Lines(&["intervals,"]))],
    },
];
