//! collectd, with values that it is given over its own socket, and the plugins that write.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Error, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tsb_core::wire::rrdcached::last_update;

use crate::Daemon;
use crate::ingest::{Ingest, patiently};
use crate::server::{Client, Server};

/// When values begin, in seconds since the epoch; the end of a row.
const START_S: i64 = 1_700_000_000;
const INTERVAL_S: i64 = 10;
/// Values of a series that goes to rrdcached, fewer than its files have rows.
const ROUNDS: i64 = 10;
const SERIES: i64 = 40;

/// Series, second, and value in its shortest digits.
type Samples = BTreeSet<(String, i64, String)>;

/// A running collectd, and its socket.
struct Collectd {
    daemon: Daemon,
    socket: BufReader<UnixStream>,
}

impl Collectd {
    /// Starts it in a folder that it has for itself, with the plugins of `more`.
    fn start(home: &Path, more: &str) -> Self {
        let at = home.display();
        let configuration = format!(
            "Hostname \"h1\"\nFQDNLookup false\nBaseDir \"{at}\"\nPIDFile \"{at}/pid\"\nInterval {INTERVAL_S}\n\
             TypesDB \"/usr/share/collectd/types.db\"\nLoadPlugin unixsock\n\
             <Plugin unixsock>\n SocketFile \"{at}/sock\"\n</Plugin>\n{more}"
        );
        let file = home.join("collectd.conf");
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new("collectd");
        let daemon = Daemon::start(command.arg("-f").arg("-C").arg(&file));
        let socket = patiently(|| UnixStream::connect(home.join("sock")));
        Self {
            daemon,
            socket: BufReader::new(socket),
        }
    }

    /// Gives it lines, each of which it must answer with yes.
    fn tell(&mut self, lines: &str) {
        self.socket.get_mut().write_all(lines.as_bytes()).unwrap();
        for line in lines.lines() {
            let mut answer = String::new();
            self.socket.read_line(&mut answer).unwrap();
            assert!(answer.starts_with("0 "), "{line}: {answer}");
        }
    }
}

/// A folder for a collectd, which makes no folder below one whose name begins with a dot, as the
/// names of temporary ones do.
fn home() -> TempDir {
    tempfile::Builder::new().prefix("tsb-collectd-").tempdir().unwrap()
}

pub(crate) fn collectd_writes_to_graphite() {
    let ingest = Ingest::start("graphite+tcp");
    let folder = home();
    let csv = folder.path().join("csv");
    let (host, port) = ingest.address.rsplit_once(':').unwrap();
    let plugin = format!(
        "WriteThreads 1\nLoadPlugin csv\n<Plugin csv>\n DataDir \"{}\"\n</Plugin>\n\
         LoadPlugin write_graphite\n<Plugin write_graphite>\n <Node \"tsb\">\n  Host \"{host}\"\n  \
         Port \"{port}\"\n  Protocol \"tcp\"\n  Prefix \"c.\"\n </Node>\n</Plugin>\n",
        csv.display()
    );
    let mut collectd = Collectd::start(folder.path(), &plugin);
    let (mut lines, mut expected) = (String::new(), Vec::new());
    for index in 0..200_i64 {
        let (second, value) = (START_S + index * INTERVAL_S, index as f64 / 4.0);
        writeln!(lines, "PUTVAL h1/p-{}/gauge-x interval=10 {second}:{value}", index % 4).unwrap();
        expected.push((format!("c.h1.p-{}.gauge-x", index % 4), second * 1_000_000_000, value));
    }
    // Each is answered when it is in collectd's queue. What is in the queue when collectd ends is
    // lost, so all of it has to be out: its one thread gives each value to both plugins.
    collectd.tell(&lines);
    await_that(|| csv_rows(&csv).len(), |rows| *rows == expected.len());
    // What write_graphite holds back leaves at its end.
    collectd.daemon.stop();
    let stored = ingest.stop();
    assert_eq!((stored.accepted(), stored.count("malformed")), (200, 0));
    stored.assert_has(&expected);
}

fn value_of(series: i64, round: i64) -> f64 {
    (series * 31 + round * 7) as f64 / 4.0
}

fn name_of(series: i64) -> String {
    format!("h1/p-{series}/gauge-x")
}

/// It creates the files itself, and has every value of theirs written by us. A second writer
/// of its own, which writes the same values as text, says which those were.
pub(crate) fn collectd_writes_to_rrdcached() {
    let folder = home();
    let home = folder.path().to_owned();
    let server = Server::start(folder, "");
    let (address, base, csv) = (server.address(), server.file(""), home.join("csv"));
    let plugins = format!(
        "WriteThreads 5\nLoadPlugin rrdcached\nLoadPlugin csv\n\
         <Plugin rrdcached>\n DaemonAddress \"{address}\"\n DataDir \"{}\"\n CreateFiles true\n \
         CollectStatistics true\n</Plugin>\n<Plugin csv>\n DataDir \"{}\"\n</Plugin>\n",
        base.display(),
        csv.display()
    );
    let mut collectd = Collectd::start(&home, &plugins);
    let mut client = Client::of(&server);
    for round in 0..ROUNDS {
        let second = START_S + round * INTERVAL_S;
        let lines = (0..SERIES).map(|series| {
            let (name, value) = (name_of(series), value_of(series, round));
            format!("PUTVAL {name} interval=10 {second}:{value}\n")
        });
        collectd.tell(&lines.collect::<String>());
        // Its threads may pass each other, and what waits in it when it ends is lost: no
        // value follows another of its series before that has arrived.
        for series in 0..SERIES {
            let (pending, newest) = (format!("PENDING {}.rrd", name_of(series)), format!("{second}."));
            // It says microseconds of every time.
            await_that(
                || client.lines(&pending),
                |lines| lines.last().is_some_and(|line| line.starts_with(&newest)),
            );
        }
    }
    await_that(|| csv_rows(&csv).len() as i64, |rows| *rows == SERIES * ROUNDS);
    // What it asks STATS for itself it writes, too.
    let statistics = "PENDING h1/rrdcached/queue_length.rrd";
    await_that(|| client.lines(statistics), |lines| !lines.is_empty());
    let expected = (0..SERIES * ROUNDS).map(|index| {
        let (series, round) = (index % SERIES, index / SERIES);
        (
            name_of(series),
            START_S + round * INTERVAL_S,
            value_of(series, round).to_string(),
        )
    });
    let mut expected: Samples = expected.collect();
    let arrived = all_of(&mut client, "PENDING", "", ':');
    assert_eq!(first_difference(&arrived, &expected), None);
    assert_eq!(first_difference(&csv_rows(&csv), &expected), None);
    // Its FLUSH is one of ours, and INFO reads the file.
    let end_s = START_S + (ROUNDS - 1) * INTERVAL_S;
    let written = |client: &mut Client| {
        let info = client.lines(&format!("INFO {}.rrd", name_of(7)));
        info.iter().find_map(|line| last_update(line)).unwrap() == end_s
    };
    assert!(!written(&mut client), "nothing is written before it is asked for");
    collectd.tell(&format!("FLUSH plugin=rrdcached identifier={}\n", name_of(7)));
    assert!(written(&mut client));
    let window = format!(" AVERAGE {} {end_s}", START_S - INTERVAL_S);
    let rows = all_of(&mut client, "FETCH", &window, ' ');
    // Its files begin a second before the first value, whose row is unknown for most of its time.
    expected.retain(|(_, at, _)| *at > START_S);
    assert_eq!(first_difference(&rows, &expected), None);
    collectd.daemon.stop();
    let result = server.stop();
    assert_eq!(result["cache"]["failed"], 0, "{result:#}");
}

/// What the server says of every series.
fn all_of(client: &mut Client, command: &str, arguments: &str, separator: char) -> Samples {
    let mut all = Samples::new();
    for series in 0..SERIES {
        let name = name_of(series);
        let lines = client.lines(&format!("{command} {name}.rrd{arguments}"));
        let known = lines.iter().filter_map(|line| line.trim().split_once(separator));
        all.extend(known.filter_map(sample).map(|(at, value)| (name.clone(), at, value)));
    }
    all
}

/// One that only either has.
fn first_difference<'a>(found: &'a Samples, expected: &'a Samples) -> Option<&'a (String, i64, String)> {
    found.symmetric_difference(expected).next()
}

/// Asks until the answer is as it has to be.
fn await_that<T: std::fmt::Debug>(mut ask: impl FnMut() -> T, is: impl Fn(&T) -> bool) {
    patiently(|| {
        let answer = ask();
        if is(&answer) {
            return Ok(());
        }
        Err(Error::other(format!("{answer:?}")))
    });
}

/// A second and a value, if both are numbers, in the shortest digits.
fn sample((at, value): (&str, &str)) -> Option<(i64, String)> {
    let (at, value) = (
        at.trim_end_matches(':').parse::<f64>().ok()?,
        value.parse::<f64>().ok()?,
    );
    (!value.is_nan()).then(|| (at as i64, value.to_string()))
}

/// What collectd has written as text of the series of this test: a file a series and day.
fn csv_rows(folder: &Path) -> Samples {
    let mut all = Samples::new();
    for series in 0..SERIES {
        let name = name_of(series);
        let Some(Ok(files)) = folder.join(&name).parent().map(fs::read_dir) else {
            continue;
        };
        for file in files {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let rows = text.lines().filter_map(|line| sample(line.split_once(',')?));
            all.extend(rows.map(|(at, value)| (name.clone(), at, value)));
        }
    }
    all
}
