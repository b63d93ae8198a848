//! `cargo xtask floods`: measures the memory that floods of names, bytes, peers, connections and
//! intervals take, and compares the peak of the real program with the bound that
//! `docs/limits.md` states.

mod payload;
mod program;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{cargo, run, target_folder};
use crate::table::Table;
use payload::Wire;
use program::{Limits, Listener, mib};

/// The names of a flood of short names, the bytes of one of long names, and the rest.
const NAMES: u64 = 300_000;
const LONG_BYTES: u64 = 96 << 20;
const RECORD_BYTES: u64 = 64 << 20;
const PEERS: u64 = 5_000;
const CONNECTIONS: usize = 600;

/// What listens, over what, and how samples are written for it.
const LISTENERS: [(&str, Wire); 17] = [
    ("graphite+tcp", Wire::Graphite),
    ("graphite+udp", Wire::Graphite),
    ("influx+tcp", Wire::Influx),
    ("influx+udp", Wire::Influx),
    ("influx+http", Wire::InfluxHttp),
    ("kairosdb+tcp", Wire::Put),
    ("kairosdb-json+http", Wire::KairosdbHttp),
    ("hawkular+http", Wire::HawkularHttp),
    ("opentsdb+tcp", Wire::Put),
    ("pickle+tcp", Wire::Pickle),
    ("statsd+tcp", Wire::Statsd),
    ("statsd+udp", Wire::Statsd),
    ("tsb+tcp", Wire::Tsb),
    ("tsb+udp", Wire::Tsb),
    ("dalmatiner-stream+tcp", Wire::DalmatinerStream),
    ("dalmatiner-july+udp", Wire::DalmatinerJuly),
    ("rrdcached+tcp", Wire::Rrdcached),
];

/// The kinds of flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flood {
    Names,
    LongNames,
    Bytes,
    Peers,
    Connections,
}

impl Flood {
    const ALL: [Self; 5] = [
        Self::Names,
        Self::LongNames,
        Self::Bytes,
        Self::Peers,
        Self::Connections,
    ];

    /// Whether a listener can be flooded so.
    fn reaches(self, wire: Wire, is_datagrams: bool) -> bool {
        match self {
            // Its names are files, which have to be there.
            Self::Names | Self::LongNames if wire == Wire::Rrdcached => false,
            // The emitter of tsb has the names of its fleet.
            Self::LongNames | Self::Peers if wire == Wire::Tsb => false,
            Self::Bytes | Self::Connections => !is_datagrams,
            Self::Peers => is_datagrams,
            Self::Names | Self::LongNames => true,
        }
    }

    fn what(self, wire: Wire) -> String {
        match self {
            Self::Names => format!("{NAMES} names"),
            Self::LongNames => format!("{} of names of {} bytes", mib(LONG_BYTES), wire.longest_name()),
            Self::Bytes => format!("{} without the end of a record", mib(RECORD_BYTES)),
            Self::Peers => format!("{PEERS} senders"),
            Self::Connections => format!("{CONNECTIONS} connections with half a record"),
        }
    }
}

/// What the job was asked for.
#[derive(Debug, Default)]
struct Options {
    program: Option<PathBuf>,
    out: Option<PathBuf>,
    only: Option<String>,
}

impl Options {
    fn read(arguments: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} needs a value"))?;
            match *word {
                "--program" => options.program = Some(PathBuf::from(value)),
                "--out" => options.out = Some(PathBuf::from(value)),
                "--only" => options.only = Some((*value).to_owned()),
                other => bail!("floods takes --program TSB, --only LISTENER and --out FILE, not {other}"),
            }
        }
        Ok(options)
    }
}

/// Runs the job.
pub(crate) fn command(arguments: &[&str]) -> Result<()> {
    let Options { program, out, only } = Options::read(arguments)?;
    let program = if let Some(program) = program {
        program
    } else {
        run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
        target_folder()?.join("release/tsb")
    };
    let limits = Limits::usual();
    let mut table = Table::new(&[
        "what listens",
        "flood",
        ">bound MiB",
        ">peak MiB",
        ">accepted",
        ">turned away or malformed",
        ">peers not kept",
        "balanced",
    ]);
    let mut failures = Vec::new();
    for (scheme, wire) in LISTENERS {
        let is_datagrams = scheme.ends_with("udp");
        let floods = Flood::ALL.into_iter().filter(|flood| flood.reaches(wire, is_datagrams));
        for flood in floods.filter(|_| only.as_deref().is_none_or(|only| scheme == only)) {
            let (row, what) = (one(&program, &limits, scheme, wire, flood)?, flood.what(wire));
            println!("{scheme}, {what}: {} of {} MiB", row.peak, row.bound);
            if row.peak > row.bound || !row.balanced {
                failures.push(format!("{scheme} under {what}"));
            }
            row.enter(&mut table, scheme, &what);
        }
    }
    for intervals in [100, 2_000].into_iter().filter(|_| only.is_none()) {
        let row = program::intervals(&program, intervals)?;
        row.enter(&mut table, "tsb run", &format!("{intervals} report intervals"));
    }
    print!("{}", table.render());
    println!("{limits}");
    if let Some(out) = out {
        let page = format!("{}\n{limits}\n\n{}", payload::PREFACE, table.markdown());
        std::fs::write(&out, page).with_context(|| format!("cannot write {}", out.display()))?;
    }
    if !failures.is_empty() {
        bail!("beyond the bound, or not balanced: {}", failures.join("; "));
    }
    Ok(())
}

/// What a flood came to; memory in MiB.
#[derive(Debug)]
struct Row {
    bound: u64,
    peak: u64,
    accepted: u64,
    turned_away: u64,
    not_kept: u64,
    balanced: bool,
}

impl Row {
    fn enter(&self, table: &mut Table, what: &str, flood: &str) {
        let number = |count: u64| count.to_string();
        let bound = if self.bound == u64::MAX {
            "-".to_owned()
        } else {
            number(self.bound)
        };
        table.row(&[
            what,
            flood,
            &bound,
            &number(self.peak),
            &number(self.accepted),
            &number(self.turned_away),
            &number(self.not_kept),
            if self.balanced { "yes" } else { "NO" },
        ]);
    }
}

/// One listener under one flood.
fn one(program: &std::path::Path, limits: &Limits, scheme: &str, wire: Wire, flood: Flood) -> Result<Row> {
    let listener = Listener::start(program, limits, scheme)?;
    match flood {
        Flood::Names if wire == Wire::Tsb => listener.emit(scheme, NAMES)?,
        Flood::Names => listener.names(wire, NAMES, payload::SHORT_NAME)?,
        Flood::LongNames => {
            let length = wire.longest_name();
            listener.names(wire, LONG_BYTES / length as u64, length)?;
        }
        Flood::Bytes => listener.endless(wire, RECORD_BYTES)?,
        Flood::Peers => listener.peers(wire, PEERS)?,
        Flood::Connections => listener.connections(wire, CONNECTIONS)?,
    }
    let (peak, result) = listener.stop()?;
    let sum = |name: &str| {
        let listeners = result["listeners"].as_array().into_iter().flatten();
        listeners.filter_map(|stats| stats[name].as_u64()).sum::<u64>()
    };
    let ledger = |name: &str| result["ledger"][name].as_u64().unwrap_or_default();
    Ok(Row {
        bound: limits.bound(scheme),
        peak,
        accepted: ledger("accepted"),
        turned_away: ledger("rejected") + ledger("malformed"),
        not_kept: [
            "refused_connections",
            "idle_closes",
            "forgotten_senders",
            "fatal_closes",
            "overlong_closes",
        ]
        .map(sum)
        .iter()
        .sum(),
        balanced: result["ledger"]["balanced"] == Value::Bool(true),
    })
}
