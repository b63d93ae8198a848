//! A written plan reads back as the same plan, whatever the flags were.

use proptest::prelude::*;

use super::*;
use crate::args::RunOptions;

fn args(flags: &[String]) -> RunArgs {
    file::read(flags).unwrap()
}

fn flags(words: &[&str]) -> RunArgs {
    args(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
}

fn parsed(text: &str) -> file::RunFile {
    file::parse(Path::new("run.toml"), text).unwrap_or_else(|failure| panic!("{failure}\n{text}"))
}

/// None of the flags, or one of these sets of them.
fn one_of(sets: &[&[&str]]) -> impl Strategy<Value = Vec<String>> + use<> {
    let mut all = vec![Vec::new()];
    all.extend(sets.iter().map(|set| set.iter().map(|&flag| flag.to_owned()).collect()));
    prop::sample::select(all)
}

fn flag<T: Display + std::fmt::Debug>(
    name: &'static str,
    values: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<String>> {
    let given = values.prop_map(move |value| vec![format!("--{name}={value}")]);
    prop_oneof![Just(Vec::new()), given]
}

fn target() -> impl Strategy<Value = Vec<Vec<String>>> {
    let wire: &[&[&str]] = &[
        &["--transport=inproc"],
        &["--transport=tcp", "--protocol=graphite"],
        &["--transport=unix"],
        &["--transport=http", "--protocol=influx"],
        &[
            "--transport=http",
            "--protocol=influx",
            "--in-flight=4096",
            "--connections=8",
        ],
        &[
            "--queries=q1@10/s,slow=range(span=10m)@0.5/s,high-cpu(series=3,above=50.5)@max",
            "--query-workers=2",
            "--preload=1d",
        ],
        &["--transport=udp", "--sockets=30", "--gso=off", "--receive-buffer=8MiB"],
        &["--transport=udp", "--gro=off", "--datagram=512", "--protocol=influx"],
        &["--transport=unixgram", "--sockets=3"],
    ];
    let result: &[&[&str]] = &[
        &["--no-verify", "--label=a \"quoted\" name", "--out=a\\b.json", "--quiet"],
        &[
            "--no-calibrate=true",
            "--format=csv",
            "--html=x.html",
            "--store-timeout=5s",
        ],
        &[
            "--progress=lines",
            "--expose=127.0.0.1:9465",
            "--hdr-log=x.hlog",
            "--journal=j",
        ],
    ];
    let stores: &[&[&str]] = &[
        &["--store=ring:"],
        &[
            "--store=memory:?retention=7d",
            "--store=throttle+memory:?throttle.rate=1000",
        ],
    ];
    (
        one_of(stores),
        one_of(wire),
        flag("max-series", any::<u64>()),
        one_of(result),
        flag(
            "report-interval",
            (1..1_u64 << 40).prop_map(|ns| format!("{}ns", ns + 1_000_000)),
        ),
    )
        .prop_map(|all| vec![all.0, all.1, all.2, all.3, all.4])
}

fn fleet() -> impl Strategy<Value = Vec<Vec<String>>> {
    let times: &[&[&str]] = &[
        &["--interval=10s", "--jitter=3s"],
        &["--mixed-intervals"],
        &["--mixed-intervals=false", "--interval=1m"],
    ];
    let churns: &[&[&str]] = &[
        &["--churn=none"],
        &["--churn=steady:10m"],
        &["--churn=gradual:2.5x/10m"],
        &["--churn=double-halve:90s"],
        &["--churn=spike:10x/10m/30s"],
    ];
    let share = || 0.0..0.25;
    let shape = (
        one_of(&[
            &["--workload=mix"],
            &["--workload=heartbeat"],
            &["--workload=shape:gauge-walk"],
        ]),
        flag("series", 1..100_000_u64),
        one_of(times),
        flag("seed", any::<u64>()),
        one_of(&[&["--phase=aligned"]]),
        one_of(&[&["--batch=host"], &["--batch=tick"], &["--batch=7"]]),
        one_of(churns),
    );
    let disorder = (
        flag("late", share()),
        flag("missing", share()),
        flag("duplicate", share()),
        flag("out-of-order", share()),
    );
    (shape, disorder).prop_map(|(shape, disorder)| {
        vec![
            shape.0, shape.1, shape.2, shape.3, shape.4, shape.5, shape.6, disorder.0, disorder.1, disorder.2,
            disorder.3,
        ]
    })
}

fn pace() -> impl Strategy<Value = Vec<Vec<String>>> {
    let rates: &[&[&str]] = &[
        &["--rate=54k"],
        &["--rate=max"],
        &["--schedule=poisson:54000"],
        &["--schedule=steps:1000*10s,1000..3000*500ms"],
        &["--schedule=recorded:0s,1ms/2ms"],
    ];
    let ns = || (1..3_600_000_000_000_u64).prop_map(|ns| format!("{ns}ns"));
    (
        one_of(rates),
        flag("duration", ns()),
        flag("fleet-time", ns()),
        flag("workers", 1..=1024),
    )
        .prop_map(|all| vec![all.0, all.1, all.2, all.3])
}

proptest! {
    #[test]
    fn every_plan_of_flags_is_written_and_read_back((target, fleet, pace) in (target(), fleet(), pace())) {
        let all: Vec<String> = [target, fleet, pace].concat().concat();
        let args = args(&all);
        let planned = load::load(&args);
        // A trace of churn over hours of milliseconds has too many lives.
        prop_assume!(planned.is_ok());
        let plan = planned.unwrap();
        let text = run_file(&plan, &args).unwrap_or_else(|failure| panic!("{all:?}: {failure}"));
        let file = parsed(&text);
        prop_assert_eq!(load::of_file(&file).unwrap(), plan, "{}", text);
        prop_assert_eq!(&file.args.output.out, &args.output.out);
        prop_assert_eq!(&file.args.output.html, &args.output.html);
        prop_assert_eq!(&file.args.output.hdr_log, &args.output.hdr_log);
        prop_assert_eq!(file.args.output.format, args.output.format);
        prop_assert_eq!(file.args.output.quiet, args.output.quiet);
        prop_assert_eq!(&file.args.label, &args.label);
        prop_assert_eq!(&file.args.journal, &args.journal);
        prop_assert_eq!(&file.args.store_timeout, &args.store_timeout);
        prop_assert_eq!(file.args.progress, args.progress);
        prop_assert_eq!(file.args.expose, args.expose);
    }
}

#[test]
fn the_plan_of_no_flags_has_every_key_that_has_an_effect() {
    let plan = load::load(&RunArgs::default()).unwrap();
    let text = run_file(&plan, &RunArgs::default()).unwrap();
    let expected = "\
# tsb run --plan FILE runs it; docs/formats/plan.md explains the keys.
store = \"memory:\"
transport = \"tcp\"
protocol = \"tsb\"
max-series = 10000000

workload = \"kstat\"
series = 54000
seed = 1
phase = \"seeded\"
batch = \"message\"

rate = \"natural\"
duration = \"10s\"
workers = 1

no-verify = false
no-calibrate = false
report-interval = \"1s\"
";
    assert_eq!(text, expected);
}

const SPIKE: &str = "\
store = \"memory:\"
series = 540

[[phases]]
name = \"load\"
duration = \"2s\"
rate = \"2k\"

[[phases]]
name = \"rise\"
duration = \"500ms\"
rate = \"2k..6k\"

[[phases]]
name = \"spike\"
duration = \"2s\"
rate = 6_000
faults = { stall = \"500ms\", stall-every = \"1s\", rate = \"5k\", error-one-in = 1000 }
";

#[test]
fn phases_are_written_and_read_back() {
    let file = parsed(SPIKE);
    let names: Vec<&str> = file.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["load", "rise", "spike"]);
    let plan = load::of_file(&file).unwrap();
    assert_eq!(plan.phases[1].to_per_second, Some(6_000));
    assert_eq!(plan.phases[2].faults.stall_every_ns, Some(SECOND_NS));
    let text = run_file(&plan, &RunArgs::default()).unwrap();
    assert!(text.contains("rate = \"2000..6000\""), "{text}");
    assert_eq!(load::of_file(&parsed(&text)).unwrap(), plan);
}

#[test]
fn queries_are_written_and_read_back() {
    let text = "query-workers = 3\npreload = \"1h\"\n\
        [[queries]]\nname = \"hot hosts\"\nkind = \"high-cpu\"\nrate = \"2/s\"\nseries = 10\nspan = \"30m\"\nabove = 75.5\n\
        [[queries]]\nkind = \"q2\"\nrate = \"max\"\nby = \"min\"\n\
        [[phases]]\nname = \"load\"\nduration = \"2s\"\nrate = 1000\n\
        [[phases]]\nname = \"spike\"\nduration = \"2s\"\nrate = 1000\nqueries = \"last@100/s,a=stats(span=1m)@5/s\"\n";
    let plan = load::of_file(&parsed(text)).unwrap();
    let streams = plan.timed_streams();
    let shown = |index: usize| {
        let timed = &streams[index];
        (
            timed.stream.to_string(),
            timed.from_ns / SECOND_NS,
            timed.length_ns.unwrap() / SECOND_NS,
        )
    };
    let hot = "hot hosts=high-cpu(series=10,span=30m,above=75.5)@2/s".to_owned();
    assert_eq!(shown(0), (hot, 0, 4));
    assert_eq!(shown(1), ("q2(by=min)@max".to_owned(), 0, 4));
    assert_eq!(shown(2), ("spike/last=last@100/s".to_owned(), 2, 2));
    assert_eq!(shown(3), ("spike/a=stats(span=1m)@5/s".to_owned(), 2, 2));
    let written = run_file(&plan, &RunArgs::default()).unwrap();
    assert!(
        written.contains("name = \"hot hosts\"\nkind = \"high-cpu\""),
        "{written}"
    );
    assert_eq!(load::of_file(&parsed(&written)).unwrap(), plan);
    // A flag takes the place of the tables, and --set that of a phase's own.
    let none = load::of_file(&parsed("queries = \"none\"")).unwrap();
    assert!(none.timed_streams().is_empty());
}

#[test]
fn a_plan_beyond_the_keys_is_named_and_nothing_is_written() {
    let mut plan = load::load(&RunArgs::default()).unwrap();
    plan.workload.disorder.late = 0.1;
    plan.workload.disorder.late_ticks = 7;
    let refused = run_file(&plan, &RunArgs::default()).unwrap_err().to_string();
    assert!(refused.contains("workload.disorder.late_ticks"), "{refused}");
}

#[test]
fn texts_and_times_keep_every_character_and_every_nanosecond() {
    assert_eq!(quoted("a \"b\" \\ \n"), r#""a \"b\" \\ \u000a""#);
    for (ns, text) in [
        (0, "0ns"),
        (1, "1ns"),
        (1_500_000, "1500us"),
        (90 * SECOND_NS, "90s"),
        (7_200 * SECOND_NS, "2h"),
    ] {
        assert_eq!(duration(ns), text);
        assert_eq!(tsb_run::units::parse_duration(text), Ok(ns));
    }
    assert_eq!(
        flags(&["--seed=7"]).options,
        RunOptions {
            seed: Some(7),
            ..RunOptions::default()
        }
    );
}
