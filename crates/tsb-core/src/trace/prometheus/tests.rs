//! Text exposition: good rows, and a table of bad ones.

use proptest::prelude::*;

use super::*;
use crate::trace::TimeUnit;

fn read_with(text: &str, options: &ReadOptions) -> Trace {
    parse_prometheus(text.as_bytes(), options).unwrap()
}

fn read(text: &str) -> Trace {
    read_with(text, &ReadOptions::default())
}

fn names(trace: &Trace) -> Vec<String> {
    trace.keys.iter().map(ToString::to_string).collect()
}

/// The example of the format's own reference, with timestamps where it has none.
const REFERENCE: &str = r#"# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"}    3 1395066363000

# Escaping in label values:
msdos_file_access_time_seconds{path="C:\\DIR\\FILE.TXT",error="Cannot find file:\n\"FILE.TXT\""} 1.458255915e9 1

# Minimalistic line:
metric_without_timestamp_and_labels 12.47

# A weird metric from before the epoch:
something_weird{problem="division by zero"} +Inf -3982045

# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le="0.05"} 24054 5
http_request_duration_seconds_bucket{le="+Inf"} 144320 5
http_request_duration_seconds_sum 53423 5
http_request_duration_seconds_count 144320 5

# TYPE rpc_duration_seconds summary
rpc_duration_seconds{quantile="0.01"} 3102 5
rpc_duration_seconds_sum 1.7560473e+07 5
"#;

#[test]
fn the_reference_example_is_read() {
    let trace = read(REFERENCE);
    assert_eq!(
        names(&trace),
        [
            "http_requests_total{code=200,method=post}",
            "http_requests_total{code=400,method=post}",
            "msdos_file_access_time_seconds{error=Cannot find file:\n\"FILE.TXT\",path=C:\\DIR\\FILE.TXT}",
            "something_weird{problem=division by zero}",
            "rpc_duration_seconds{quantile=0.01}",
            "rpc_duration_seconds_sum",
        ]
    );
    assert_eq!(trace.columns[0].times(), [Timestamp::from_millis(1395066363000)]);
    assert_eq!(trace.columns[3].times(), [Timestamp::from_millis(-3982045)]);
    assert_eq!(trace.columns[3].values(), [f64::INFINITY]);
    assert_eq!(trace.problems.kinds["a row of a histogram, which is not a value"], 4);
    assert_eq!(trace.problems.kinds["no timestamp"], 1);
    assert_eq!(trace.problems.count, 5);
}

#[test]
fn rows_of_histograms_are_kept_on_request() {
    let options = ReadOptions {
        histogram_rows: true,
        ..ReadOptions::default()
    };
    let trace = read_with(REFERENCE, &options);
    assert_eq!(trace.problems.count, 1);
    assert!(names(&trace).contains(&"http_request_duration_seconds_bucket{le=0.05}".to_owned()));
}

#[test]
fn scrapes_without_timestamps_get_the_times_that_are_given() {
    let options = ReadOptions {
        scrapes: Some(Scrapes {
            start: Timestamp::from_secs(100),
            interval_ns: 15_000_000_000,
        }),
        ..ReadOptions::default()
    };
    let trace = read_with("a 8 7\na 1\nb 2\na 3\nb 4\nc 9\n# EOF\nc 5\na 6 7.5\n", &options);
    assert!(trace.problems.is_empty());
    let seconds =
        |index: usize| -> Vec<i64> { trace.columns[index].times().iter().map(|time| time.as_secs()).collect() };
    assert_eq!(seconds(0), [7, 100, 115, 7], "a timestamp in the file holds");
    assert_eq!(seconds(1), [100, 115]);
    assert_eq!(seconds(2), [115, 130]);
}

#[test]
fn seconds_with_a_fraction_and_exemplars_are_open_metrics() {
    let trace = read("a_total{x=\"y\"} 1 1520879607.789 # {trace=\"1\"} 0.5\n# EOF\n");
    assert_eq!(trace.columns[0].times(), [Timestamp(1_520_879_607_789_000_000)]);
    assert_eq!(
        trace.problems.kinds["an exemplar, which is not a sample of its series"],
        1
    );
}

#[test]
fn quoted_names_and_empty_labels_follow_prometheus() {
    let trace = read("{\"my.metric\",\"a b\"=\"c\"} 1 5\nplain{x=\"\",} 2 5\nplain 3 6\n");
    assert!(trace.problems.is_empty(), "{}", trace.problems);
    assert_eq!(names(&trace), ["my.metric{a b=c}", "plain"]);
    assert_eq!(trace.columns[1].values(), [2.0, 3.0]);
}

#[test]
fn each_bad_row_is_counted_and_named() {
    let table = [
        ("1name 1 5", "no name, or one that needs quotes"),
        ("{a=\"b\"} 1 5", "no name, or one that needs quotes"),
        ("m", "no value"),
        ("m{} ", "no value"),
        ("m x 5", "a value that is not a number"),
        ("m \"text\" 5", "a value that is not a number"),
        ("m true 5", "a value that is not a number"),
        ("m 0x10 5", "a value that is not a number"),
        ("m{} {count:1,sum:2} 5", "a composite value, which is not a value"),
        ("m 9007199254740993 5", "an integer beyond 2^53"),
        ("m 1e999 5", "a number beyond the range of an f64"),
        ("m 1", "no timestamp"),
        ("m 1 x", "a timestamp that is not a plain number"),
        ("m 1 99999999999999999", "a timestamp outside the years 1677 to 2262"),
        ("m 1 5 6", "more than a value and a timestamp"),
        ("m{a} 1 5", "a label without a value"),
        ("m{a=b} 1 5", "a label whose value is not in quotes"),
        ("m{=\"b\"} 1 5", "a label without a name"),
        ("m{a:b=\"c\"} 1 5", "a label without a value"),
        ("m{a=\"b\" 1 5", "labels that do not end on their line"),
        ("m{a=\"b 1 5", "a quoted text that does not end on its line"),
        ("m{a=\"b\\x\"} 1 5", "an escape that is none"),
        ("m{a=\"b\",a=\"c\"} 1 5", "a label that occurs twice"),
        ("m{__name__=\"b\"} 1 5", "a label of a reserved or empty name"),
        ("m{\"n\"} 1 5", "a label without a value"),
    ];
    for (row, what) in table {
        let trace = read(&format!("ok 1 1\n{row}\nok 2 2\n"));
        assert_eq!(trace.problems.count, 1, "{row}: {}", trace.problems);
        assert_eq!(trace.problems.kinds.get(what), Some(&1), "{row}: {}", trace.problems);
        assert_eq!(trace.problems.named[0].place, Place::Line(2), "{row}");
        assert_eq!(trace.samples(), 2, "{row}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_bytes_are_rows_or_problems(text in "[am{}=\",# \\\\n15.\n-]{0,60}") {
        let trace = read(&text);
        let rows = text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#')).count();
        prop_assert!(trace.samples() + trace.problems.count >= rows as u64);
    }

    #[test]
    fn written_values_are_read_back(value in any::<f64>(), text in "[a-z\\\\\"\n,}]{1,6}", at in -1_000_000_i64..1_000_000) {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let written = if value.fract() == 0.0 { format!("{value:e}") } else { value.to_string() };
        let trace = read(&format!("m{{l=\"{escaped}\"}} {written} {at}\n"));
        prop_assert!(trace.problems.is_empty(), "{}", trace.problems);
        prop_assert_eq!(trace.keys[0].label("l"), Some(&text[..]));
        let found = trace.columns[0].values()[0];
        prop_assert!(found.to_bits() == value.to_bits() || (found.is_nan() && value.is_nan()));
    }
}

/// What shows that a file is OpenMetrics may come late: what was read before is put right.
#[test]
fn open_metrics_in_seconds_is_not_read_as_milliseconds() {
    const AT: i64 = 1_520_879_607_000_000_000;
    for (text, sign) in [
        ("m 1 1520879607\n# EOF\n", "# EOF"),
        ("# UNIT m seconds\nm 1 1520879607\n", "# UNIT"),
        ("m 1 1520879607\nm 2 1520879607.5\n", "a timestamp with a fraction"),
        ("m 1 1520879607\n# TYPE x unknown\n", "a type that only it has"),
        ("m 1 1520879607 # {} 1\n", "an exemplar"),
    ] {
        let trace = read(text);
        assert_eq!(trace.columns[0].times()[0], Timestamp(AT), "{text}");
        assert_eq!(trace.decisions, [format!("OpenMetrics, by {sign}: times are seconds")]);
    }
    let trace = read("m 1 1520879607000\n# TYPE m untyped\n");
    assert_eq!(trace.columns[0].times(), [Timestamp(AT)]);
    assert_eq!(trace.decisions, ["Prometheus text: times are milliseconds"]);
}

#[test]
fn an_ambiguous_time_is_refused_without_its_unit() {
    let refused = |text: &str, what: &str| {
        let error = parse_prometheus(text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, TraceDefect::Ambiguous { .. }));
        assert!(error.to_string().contains(what), "{error}");
    };
    refused(
        "m 1 1520879607\nm 2 1520879608\n",
        "seconds of this century, or milliseconds of 1970",
    );
    refused("m 1 1520879607000\n# EOF\n", "beyond the year 5138");
    refused("# UNIT m s\nm 1 1520879607000\n", "beyond the year 5138");
    refused("m 1 1520879607000\nm 1 9.5\n", "beyond the year 5138");
    for (unit, text, at) in [
        (TimeUnit::Seconds, "m 1 1520879607\n", 1_520_879_607_000_000_000),
        (TimeUnit::Millis, "m 1 1520879607\n", 1_520_879_607_000_000),
        (
            TimeUnit::Millis,
            "m 1 1520879607000\n# EOF\n",
            1_520_879_607_000_000_000,
        ),
    ] {
        let options = ReadOptions {
            unit: Some(unit),
            ..ReadOptions::default()
        };
        assert_eq!(read_with(text, &options).columns[0].times(), [Timestamp(at)], "{text}");
    }
}
