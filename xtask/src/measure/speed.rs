//! Checks whether anything got slower since an earlier commit, by running the tables of both
//! commits in turn.
//!
//! The tables are those of `benches/`, built from each commit with the same profile. The order
//! within a round is old, new, new, old, so that changes of the machine favour neither. Rows are
//! matched by name; a row that only one commit has is left out and reported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::folder;
use crate::bench;
use crate::shell::{capture, cargo, root, run, target_folder};
use crate::table::Table;
use crate::turns;

const ROUNDS: usize = 2;

/// A table of `benches/`, and where its figures stand.
struct Probe {
    /// What it measures.
    name: &'static str,
    /// The program below `target/release`: an example, or a bench.
    program: Program,
    arguments: &'static [&'static str],
    /// What the names of its rows hold; a program may print other tables, too.
    rows: &'static str,
    /// Columns that name a row.
    key: usize,
    /// Names hold single spaces; otherwise any space divides columns.
    has_phrases: bool,
    /// The program takes names of rows, and measures only those.
    takes_rows: bool,
    /// The columns that are compared: their headings, their places, whether more is better.
    figures: &'static [(&'static str, usize, bool)],
}

enum Program {
    Example(&'static str),
    Bench(&'static str),
}

/// `@` in an argument stands for a folder of its table's own: probes of one table share it.
const PROBES: &[Probe] = &[
    Probe {
        name: "memory",
        program: Program::Bench("store_write"),
        arguments: &["--bench", "table"],
        rows: "",
        key: 1,
        has_phrases: false,
        takes_rows: false,
        figures: &[("write, CPU-ns", 2, false)],
    },
    Probe {
        name: "wires",
        program: Program::Example("wire_table"),
        arguments: &[],
        rows: "",
        key: 2,
        has_phrases: false,
        takes_rows: true,
        figures: &[("encode, CPU-ns", 4, false), ("decode, CPU-ns", 6, false)],
    },
    Probe {
        name: "end to end",
        program: Program::Example("loopback_table"),
        arguments: &[],
        rows: "",
        key: 3,
        has_phrases: false,
        takes_rows: false,
        figures: &[("M samples/s", 3, true)],
    },
    Probe {
        name: "sqlite",
        program: Program::Example("sqlite_table"),
        arguments: &["write", "@"],
        rows: "",
        key: 1,
        has_phrases: true,
        takes_rows: false,
        figures: &[("write, CPU-ns", 1, false)],
    },
    Probe {
        name: "emitter",
        program: Program::Bench("emit_ceiling"),
        arguments: &["--bench", "table"],
        rows: "/",
        key: 1,
        has_phrases: false,
        takes_rows: false,
        figures: &[("operation, CPU-ns", 1, false)],
    },
    Probe {
        name: "histogram",
        program: Program::Bench("latency_record"),
        arguments: &["--bench", "table"],
        rows: "",
        key: 1,
        has_phrases: false,
        takes_rows: false,
        figures: &[("record, CPU-ns", 1, false)],
    },
    Probe {
        name: "datagrams",
        program: Program::Example("udp_table"),
        arguments: &["costs", "1"],
        rows: " o",
        key: 4,
        has_phrases: false,
        takes_rows: false,
        figures: &[("send, CPU-ns", 6, false), ("receive, CPU-ns", 8, false)],
    },
    Probe {
        name: "write cache, no journal",
        program: Program::Example("cache_table"),
        arguments: &[],
        rows: "batches of",
        key: 2,
        has_phrases: true,
        takes_rows: false,
        figures: &[("accept, CPU-ns", 2, false)],
    },
    Probe {
        name: "write cache, journal",
        program: Program::Example("cache_table"),
        arguments: &[],
        rows: "of an ack",
        key: 2,
        has_phrases: true,
        takes_rows: false,
        figures: &[
            ("M updates/s", 2, true),
            ("accept, CPU-ns", 3, false),
            ("ack p50, us", 4, false),
        ],
    },
    Probe {
        name: "rrd, files made",
        program: Program::Example("rrd_table"),
        arguments: &["prepare", "@", "3000"],
        rows: "",
        key: 1,
        has_phrases: true,
        takes_rows: false,
        figures: &[],
    },
    Probe {
        name: "rrd",
        program: Program::Example("rrd_table"),
        arguments: &["run", "@", "3000", "1"],
        rows: "",
        key: 1,
        has_phrases: true,
        takes_rows: false,
        figures: &[("synced, CPU-us", 2, false), ("not synced, CPU-us", 8, false)],
    },
];

/// What the runs of one commit printed: the figures of each row and column.
type Figures = BTreeMap<(String, &'static str), Vec<f64>>;

/// What was asked for: the number of rounds, where the page goes, and the tables that are wanted.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    rounds: usize,
    out: Option<PathBuf>,
    only: Vec<String>,
    /// The rows that are wanted, of the tables whose programs take their names; each, where none is named.
    rows: Vec<String>,
}

impl Options {
    fn parse(arguments: &[&str], rounds: usize) -> Result<Self> {
        let mut options = Self {
            rounds,
            out: None,
            only: Vec::new(),
            rows: Vec::new(),
        };
        for pair in arguments.chunks(2) {
            match pair {
                ["--rounds", number] => {
                    options.rounds = match number.parse() {
                        Ok(number) if number > 0 => number,
                        _ => bail!("--rounds needs a number above 0, not {number}"),
                    };
                }
                ["--only", name] => options.only.push((*name).to_owned()),
                ["--row", name] => options.rows.push((*name).to_owned()),
                ["--out", file] => options.out = Some(PathBuf::from(*file)),
                other => bail!("measure: no such argument: {}", other.join(" ")),
            }
        }
        Ok(options)
    }

    /// Whether a table is wanted: each, where none was named; of those that are, only the ones that can
    /// be measured row by row, where rows were named.
    fn wants(&self, probe: &Probe) -> bool {
        let is_named = self.only.is_empty() || self.only.iter().any(|only| only == probe.table());
        is_named && (self.rows.is_empty() || probe.takes_rows)
    }

    /// Writes the page, where one was asked for.
    fn save(&self, page: &str) -> Result<()> {
        let Some(path) = &self.out else { return Ok(()) };
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A page of Markdown: its title, the command that makes it, where it ran, and the rest.
fn page(title: &str, command: &str, rest: &str) -> Result<String> {
    let machine = bench::record()?;
    Ok(format!(
        "# {title}\n\nMade by `{command}` on:\n\n```text\n{machine}```\n\n{rest}"
    ))
}

/// Builds both commits, runs their tables, and prints the ratios.
pub(super) fn measure(old: &str, arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments, ROUNDS)?;
    let tables = PROBES.iter().map(Probe::table);
    if let Some(only) = options
        .only
        .iter()
        .find(|&only| tables.clone().all(|name| name != only))
    {
        let mut known: Vec<&str> = tables.collect();
        known.dedup();
        bail!("no table is called '{only}'; there are {}", known.join(", "));
    }
    println!(
        "Builds the tables of both commits in release mode (about ten minutes each the first time), then runs \
         {} rounds of about a quarter of an hour for all tables; RRD files take up to 2 GB of disk.",
        options.rounds
    );
    let data = folder("speed-data")?;
    let sides = [
        build_commit(old)?,
        build(&root(), &target_folder()?.join("measure/new"))?,
    ];
    let mut table = Table::new(&["table", "row", "figure", ">old", ">new", ">ratio", ">spread"]);
    let mut missing = Vec::new();
    for probe in PROBES.iter().filter(|probe| options.wants(probe)) {
        let data = data.join(probe.table());
        std::fs::create_dir_all(&data)?;
        let mut seen = [Figures::new(), Figures::new()];
        // What only makes files is run once, by the older program.
        let turns: Vec<usize> = match probe.figures {
            [] => vec![0],
            _ => turns::ROUND.repeat(options.rounds),
        };
        for side in turns {
            println!("{}: {}", probe.name, ["old", "new"][side]);
            read(probe, &probe.run(&sides[side], &data, &options.rows)?, &mut seen[side]);
        }
        if !options.rows.is_empty() && seen.iter().all(Figures::is_empty) {
            bail!("{} has no row of {}", probe.name, options.rows.join(", "));
        }
        compare(probe.name, &seen, &mut table, &mut missing);
    }
    println!("\n{}", table.render());
    for row in &missing {
        println!("only one of the two commits has {row}");
    }
    let named = |flag: &'static str, names: &[String]| -> String {
        let words = names.iter().flat_map(|name| [" ", flag, " '", name, "'"]);
        words.collect()
    };
    let only = named("--only", &options.only) + &named("--row", &options.rows);
    let command = format!("cargo xtask measure speed {old} --rounds {}{only}", options.rounds);
    let note = "\nMedians; `ratio` is above 1 where the new commit is faster.\n\
                `spread` is the highest figure of one commit over its lowest, of the commit whose runs differed \
                more: a ratio closer to 1 than that is no evidence of a difference.\n";
    let rest = format!("{}{note}", table.markdown());
    options.save(&page("Before and after", &command, &rest)?)
}

impl Probe {
    /// The name that `--only` knows; several probes may read one table.
    fn table(&self) -> &'static str {
        self.name.split(',').next().unwrap_or(self.name)
    }

    /// The columns of a line: the names first, then the figures, which always stand apart.
    fn columns<'a>(&self, line: &'a str) -> Vec<&'a str> {
        if !self.has_phrases {
            return line.split_whitespace().collect();
        }
        let parts = line.split("  ").map(str::trim).filter(|part| !part.is_empty());
        let (mut names, mut figures) = (Vec::new(), Vec::new());
        for part in parts {
            if names.len() < self.key && figures.is_empty() && part.parse::<f64>().is_err() {
                names.push(part);
            } else {
                figures.extend(part.split(' '));
            }
        }
        names.extend(figures);
        names
    }

    fn run(&self, side: &Path, data: &Path, rows: &[String]) -> Result<String> {
        let program = match self.program {
            Program::Example(name) => side.join("release/examples").join(name),
            Program::Bench(name) => newest(&side.join("release/deps"), name)?,
        };
        let mut command = Command::new(program);
        for argument in self.arguments {
            match *argument {
                "@" => command.arg(data),
                word => command.arg(word),
            };
        }
        if self.takes_rows {
            command.args(rows);
        }
        capture(&mut command)
    }
}

/// Builds the tables of a commit in a folder that is named after it, and kept for the next time.
fn build_commit(name: &str) -> Result<PathBuf> {
    let git = |arguments: &[&str]| capture(Command::new("git").args(arguments).current_dir(root()));
    let commit = git(&["rev-parse", "--verify", &format!("{name}^{{commit}}")])
        .with_context(|| format!("{name} is no commit of this repository"))?;
    let commit = commit.trim();
    let place = target_folder()?.join("measure").join(commit);
    let sources = place.join("sources");
    std::fs::create_dir_all(&sources)?;
    let archive = place.join("sources.tar");
    git(&["archive", "--output", &archive.display().to_string(), commit])?;
    capture(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&sources))?;
    build(&sources, &place.join("target"))
}

/// Builds the tables of a source tree into `target`, and returns it.
fn build(sources: &Path, target: &Path) -> Result<PathBuf> {
    let here = |mut command: Command| run(command.current_dir(sources).env("CARGO_TARGET_DIR", target));
    here(cargo(&["build", "--release", "--package", "tsb-bench", "--examples"]))?;
    let mut benches = cargo(&["bench", "--package", "tsb-bench", "--no-run"]);
    for probe in PROBES {
        if let Program::Bench(name) = probe.program {
            benches.args(["--bench", name]);
        }
    }
    here(benches)?;
    Ok(target.to_owned())
}

/// The program that cargo built last under this name.
fn newest(folder: &Path, name: &str) -> Result<PathBuf> {
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_it = file.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        if is_it && path.extension().is_none() {
            programs.push((path.metadata()?.modified()?, path));
        }
    }
    let Some((_, path)) = programs.into_iter().max() else {
        bail!("cargo built no {name} in {}", folder.display());
    };
    Ok(path)
}

/// Adds the figures of every row of a table.
fn read(probe: &Probe, text: &str, seen: &mut Figures) {
    for line in text.lines() {
        let columns = probe.columns(line);
        for &(heading, at, _) in probe.figures {
            let Some(figure) = columns.get(at).and_then(|word| word.parse::<f64>().ok()) else {
                continue;
            };
            let key = columns[..probe.key].join(" ");
            if !key.contains(probe.rows) {
                continue;
            }
            seen.entry((key, heading)).or_default().push(figure);
        }
    }
}

fn compare(name: &str, seen: &[Figures; 2], table: &mut Table, missing: &mut Vec<String>) {
    let [old, new] = seen;
    for (row, figures) in old {
        let Some([old_lowest, before, old_highest]) = turns::spread(figures.clone()) else {
            continue;
        };
        let Some([new_lowest, after, new_highest]) = new.get(row).cloned().and_then(turns::spread) else {
            missing.push(format!("{name} {} {}", row.0, row.1));
            continue;
        };
        let more_is_better = PROBES.iter().any(|probe| {
            let figure = probe.figures.iter().find(|figure| figure.0 == row.1);
            probe.name == name && figure.is_some_and(|figure| figure.2)
        });
        let ratio = if more_is_better { after / before } else { before / after };
        let cells = [before, after].map(|figure| format!("{figure:.2}"));
        let spread = (old_highest / old_lowest).max(new_highest / new_lowest);
        let ratios = [ratio, spread].map(|ratio| format!("{ratio:.3}"));
        table.row(&[name, &row.0, row.1, &cells[0], &cells[1], &ratios[0], &ratios[1]]);
    }
    let only_new = new.keys().filter(|row| !old.contains_key(*row));
    missing.extend(only_new.map(|row| format!("{name} {} {}", row.0, row.1)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood_or_refused() {
        let all = ["--rounds", "5", "--out", "x.md", "--only", "wires"];
        let options = Options::parse(&all, 3).expect("all are known");
        assert!(options.wants(probe("wires")) && !options.wants(probe("memory")));
        let rows = Options::parse(&["--row", "opentsdb"], 3).expect("it is known");
        assert!(rows.wants(probe("wires")) && !rows.wants(probe("memory")));
        assert_eq!((options.rounds, options.out), (5, Some(PathBuf::from("x.md"))));
        for bad in [&["--rounds", "0"][..], &["--rounds"], &["--fast", "1"]] {
            assert!(Options::parse(bad, 3).is_err(), "{bad:?}");
        }
    }

    fn probe(name: &str) -> &'static Probe {
        PROBES.iter().find(|probe| probe.name == name).expect("it is listed")
    }

    fn figures(name: &str, line: &str) -> Vec<(String, f64)> {
        let mut seen = Figures::new();
        read(probe(name), line, &mut seen);
        seen.into_iter().map(|((row, _), figures)| (row, figures[0])).collect()
    }

    #[test]
    fn rows_are_found_by_name_and_figures_by_place() {
        let memory =
            "tick-54000                 3600     4.74   211.1      6.25       729  82101502     0.438    114.3";
        assert_eq!(figures("memory", memory), [("tick-54000".to_owned(), 4.74)]);
        let sqlite = "ticks commit=1s, tick of 54,000           24.8   40.2633            13.4..49.4   194400000";
        assert_eq!(
            figures("sqlite", sqlite),
            [("ticks commit=1s, tick of 54,000".to_owned(), 24.8)]
        );
        let wire = "statsd            host-54        37.76      47.0     21.26      52.0     19.24           54.0";
        let long = "dalmatiner-august host-54 48.81    19.2      4.61       1.0     94.40    54.0";
        assert_eq!(figures("wires", long)[0].0, "dalmatiner-august host-54");
        let row = "statsd host-54".to_owned();
        assert_eq!(figures("wires", wire), [(row.clone(), 19.24), (row, 21.26)]);
        let loopback =
            "tsb       tcp       host-54         124.2     9.1     4.96       3.73           201.8             1318";
        assert_eq!(figures("end to end", loopback), [("tsb tcp host-54".to_owned(), 124.2)]);
        let accept = "  1000 series, batches of     1     15.1     15.4";
        let row = "1000 series, batches of 1".to_owned();
        assert_eq!(figures("write cache, no journal", accept), [(row, 15.1)]);
        let journal = "interval 1s       1 of an ack     0.812    1200.1       1.1       3.2";
        let row = "interval 1s 1 of an ack".to_owned();
        let seen = [(row.clone(), 0.812), (row.clone(), 1200.1), (row, 1.1)];
        assert_eq!(figures("write cache, journal", journal), seen);
        assert_eq!(figures("write cache, journal", accept), []);
        let udp =
            "tsb               host-54     on   off    2.96             400.1     9.11    109.8       4.21    237.5";
        let row = "tsb host-54 on off".to_owned();
        assert_eq!(figures("datagrams", udp), [(row.clone(), 4.21), (row, 9.11)]);
        let heading =
            "memory, 54,000 series     ticks   CPU-ns     M/s  first ns  worst us  B sealed  B/sample heads MB";
        assert_eq!(figures("memory", heading), []);
    }

    #[test]
    fn a_ratio_above_one_is_faster_whatever_the_figure() {
        let seen = |heading, figures: &[f64]| Figures::from([(("row".to_owned(), heading), figures.to_vec())]);
        let ratios = |name, heading, before: &[f64], after: &[f64]| {
            let (mut table, mut missing) = (Table::new(&["a", "b", "c", "d", "e", "f", "g"]), Vec::new());
            let sides = [seen(heading, before), seen(heading, after)];
            compare(name, &sides, &mut table, &mut missing);
            assert_eq!(missing, Vec::<String>::new());
            let text = table.render();
            let cells = text.lines().last().expect("a row").split_whitespace();
            cells
                .skip_while(|cell| *cell != "2.00" && *cell != "4.00")
                .collect::<Vec<_>>()
                .join(" ")
        };
        let faster = ratios("memory", "write, CPU-ns", &[4.0], &[2.0]);
        assert_eq!(faster, "4.00 2.00 2.000 1.000");
        let slower = ratios("end to end", "M samples/s", &[3.0, 4.0, 5.0], &[1.0, 2.0, 3.0]);
        assert_eq!(slower, "4.00 2.00 0.500 3.000");
    }
}
