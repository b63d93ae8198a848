//! How long each step takes, and the arguments that each step passes to `tsb`.

use serde_json::Value;

use super::targets::Target;

/// What the two sizes of the fleet are called in the steps of a row.
pub(super) const SIZES: [&str; 2] = ["small", "large"];
/// The protocol between emitter and listener for the stores of ours: text, as most servers take it.
pub(super) const PROTOCOL: &str = "influx";
/// Streams of queries. The rates are low enough for one thread that asks a slow server.
pub(super) const QUERIES: &str = "q1@10/s,q2@10/s,last@20/s";
/// How stale the 99th percentile of all series may be beyond the delay that the store states.
pub(super) const SLO_STALENESS_MS: u64 = 2_000;
/// How long `tsb` waits for a call into a store that does not return before it reports without it.
const STORE_TIMEOUT: &str = "120s";
/// What reading a series back takes at most servers whose probes are not read back, in microseconds.
const READING_US: u64 = 350;
/// Between a kill and the restart, as a supervisor would wait.
pub(super) const PAUSE_S: &str = "1";

/// Seconds of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    /// Series of the fleets: a small one, and that of the published benchmark.
    pub(super) fleets: [u64; 2],
    /// The fixed runs of each fleet. The small one has 20 messages a second, so 1,000 of them, which a p99
    /// needs, take 50 s.
    pub(super) fixed_s: [u64; 2],
    /// The runs with queries: 100 of each kind support a p90.
    pub(super) queries_s: u64,
    /// Reading back, at the most. A server that takes longer is read in part.
    pub(super) read_back_s: u64,
    /// One probe of the search for the capacity.
    pub(super) probe_s: u64,
    /// The whole search.
    pub(super) capacity_s: u64,
    /// How wide the interval may be at which the search ends, in percent. A fifth is what this
    /// time suffices for.
    pub(super) tolerance_percent: u64,
    /// When the kill comes.
    pub(super) kill_after_s: u64,
    /// How long the run goes on after the restart.
    pub(super) after_restart_s: u64,
}

impl Lengths {
    /// The form whose figures go on the page.
    pub(super) const FULL: Self = Self {
        fleets: [1_000, 54_000],
        fixed_s: [55, 25],
        queries_s: 12,
        read_back_s: 400,
        probe_s: 5,
        capacity_s: 60,
        tolerance_percent: 20,
        kill_after_s: 8,
        after_restart_s: 6,
    };
    /// The shortest form that still does every step.
    pub(super) const QUICK: Self = Self {
        fleets: [1_000, 5_000],
        fixed_s: [3, 3],
        queries_s: 3,
        read_back_s: 100,
        probe_s: 2,
        capacity_s: 15,
        tolerance_percent: 100,
        kill_after_s: 2,
        after_restart_s: 2,
    };

    /// About how long a target takes, in seconds. Starting a server, calibrating and reading back take about as
    /// long as a third of what is measured, and longer where probes are not read back for it.
    pub(super) fn of(&self, target: &Target) -> u64 {
        let queries = if target.no_queries.is_empty() { 2 } else { 0 };
        let kill = self.kill_after_s + self.after_restart_s + target.restart_s;
        let measured = self.fixed_s.iter().sum::<u64>() + queries * self.queries_s + self.capacity_s + kill;
        let series = if target.unread_probes.is_empty() {
            0
        } else {
            self.fleets.iter().sum::<u64>()
        };
        measured + measured / 3 + series * READING_US / 1_000_000
    }
}

/// A run at a sample a second of each series.
pub(super) fn fixed(target: &Target, store: &str, series: u64, seconds: u64) -> Vec<String> {
    let mut words = run(store, series, seconds);
    words.extend(wire(target));
    words
}

/// The same without reading back.
pub(super) fn unread(target: &Target, store: &str, series: u64, seconds: u64) -> Vec<String> {
    let mut words = fixed(target, store, series, seconds);
    words.extend(strings(&["--no-calibrate", "--no-verify"]));
    words
}

/// The same with queries, whose answers are checked; the samples are read back in the runs without queries.
/// A server too stands behind a listener of ours, which writes to it in order: with many writes in flight,
/// nobody knows what an answer has to hold.
pub(super) fn queried(store: &str, series: u64, seconds: u64) -> Vec<String> {
    let mut words = run(store, series, seconds);
    words.extend(over_tcp());
    words.extend(strings(&["--queries", QUERIES, "--no-calibrate", "--no-verify"]));
    words
}

/// The run in which the server is killed.
pub(super) fn killed(target: &Target, store: &str, lengths: &Lengths) -> Vec<String> {
    let seconds = lengths.kill_after_s + target.restart_s + lengths.after_restart_s;
    let mut words = run(store, lengths.fleets[0], seconds);
    words.extend(wire(target));
    words.push("--no-calibrate".to_owned());
    words
}

/// The search for the largest number of series. Every probe is judged by the same objective beyond the delay
/// that the store states; the first has `first` series.
pub(super) fn capacity(target: &Target, store: &str, lengths: &Lengths, (delay_ms, first): (u64, u64)) -> Vec<String> {
    let mut words = strings(&[
        "capacity",
        "--find",
        "series",
        "--no-passes",
        "--series",
        &first.to_string(),
        "--slo",
        &slo(target, delay_ms),
    ]);
    words.extend(strings(&["--max-time", &format!("{}s", lengths.capacity_s)]));
    words.extend(strings(&["--tolerance", &format!("{}%", lengths.tolerance_percent)]));
    words.extend(strings(&[
        "--store",
        store,
        "--duration",
        &format!("{}s", lengths.probe_s),
    ]));
    words.extend(common());
    words.extend(wire(target));
    if !target.unread_probes.is_empty() {
        words.push("--no-verify".to_owned());
    }
    words
}

/// Whether a fixed run met the objective, beyond the delay that the store states.
pub(super) fn is_objective_met(figure: &Value, delay_ms: u64) -> bool {
    let is_fresh = |ms: f64| ms < (SLO_STALENESS_MS + delay_ms) as f64;
    figure["verdict"] != "STORE-LIMITED" && figure["staleness_p99_ms"].as_f64().is_some_and(is_fresh)
}

/// The objective, as `tsb capacity` takes it. What is lost can only be counted where it is read back.
pub(super) fn slo(target: &Target, delay_ms: u64) -> String {
    let staleness = format!("staleness.p99<{}ms", SLO_STALENESS_MS + delay_ms);
    if target.unread_probes.is_empty() {
        staleness + ",lost=0"
    } else {
        staleness
    }
}

fn run(store: &str, series: u64, seconds: u64) -> Vec<String> {
    let (series, duration) = (series.to_string(), format!("{seconds}s"));
    let mut words = strings(&["run", "--store", store, "--series", &series, "--duration", &duration]);
    words.extend(common());
    words
}

/// The arguments that put a TCP connection before a store of ours. For a server there are none: its client
/// writes to it over a connection anyway.
fn wire(target: &Target) -> Vec<String> {
    if target.is_server() { Vec::new() } else { over_tcp() }
}

/// The arguments for a TCP connection between the emitter and a listener of ours.
fn over_tcp() -> Vec<String> {
    strings(&["--transport", "tcp", "--protocol", PROTOCOL])
}

/// The arguments of every step: how long `tsb` waits for the store, and a report as JSON and nothing else.
fn common() -> Vec<String> {
    strings(&["--store-timeout", STORE_TIMEOUT, "--format", "json", "--quiet"])
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::targets::TARGETS;
    use super::*;

    #[test]
    fn a_server_is_written_to_directly_and_a_store_of_ours_over_a_wire() {
        let words = |target: &Target| fixed(target, "S", 1_000, 5).join(" ");
        let (ours, server): (Vec<_>, Vec<_>) = TARGETS.iter().partition(|target| !target.is_server());
        assert!(
            words(ours[0]).contains("--series 1000 --duration 5s"),
            "{}",
            words(ours[0])
        );
        assert!(words(ours[0]).ends_with("--transport tcp --protocol influx"));
        assert!(!words(server[0]).contains("--transport"));
        assert!(queried("S", 1, 1).join(" ").contains("--transport tcp"));
    }

    #[test]
    fn the_objective_is_beyond_the_stated_delay() {
        let of = |name: &str| TARGETS.iter().find(|target| target.name == name).expect("it is listed");
        assert_eq!(slo(of("memory"), 0), "staleness.p99<2000ms,lost=0");
        assert_eq!(slo(of("victoriametrics"), 15_000), "staleness.p99<17000ms");
    }

    #[test]
    fn a_run_meets_the_objective_if_it_kept_up_and_was_fresh() {
        let figure = |verdict: &str, ms: f64| serde_json::json!({ "verdict": verdict, "staleness_p99_ms": ms });
        assert!(is_objective_met(&figure("VALID", 1_999.0), 0));
        assert!(is_objective_met(&figure("UNVERIFIED", 6_999.0), 5_000));
        assert!(!is_objective_met(&figure("VALID", 2_000.0), 0));
        assert!(!is_objective_met(&figure("STORE-LIMITED", 900.0), 0));
        assert!(!is_objective_met(&serde_json::json!({}), 0));
    }

    #[test]
    fn a_target_takes_some_minutes_and_the_short_form_less_than_one() {
        for target in TARGETS {
            assert!((180..=600).contains(&Lengths::FULL.of(target)), "{}", target.name);
            assert!(Lengths::QUICK.of(target) < 120, "{}", target.name);
        }
    }
}
