//! CSV: good rows, headers, units, and a table of bad rows.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Trace {
    parse_csv(text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn names(trace: &Trace) -> Vec<String> {
    trace.keys.iter().map(ToString::to_string).collect()
}

#[test]
fn three_columns_need_no_header() {
    let trace = read("1700000000,cpu,1.5\r\n1700000001,\"cpu{host=a,zone=\"\"b,c\"\"}\",-2\n\n1700000000.5,cpu,NaN");
    assert!(trace.problems.is_empty(), "{}", trace.problems);
    assert_eq!(names(&trace), ["cpu", "cpu{host=a,zone=b,c}"]);
    assert_eq!(
        trace.columns[0].times(),
        [
            Timestamp(1_700_000_000_000_000_000),
            Timestamp(1_700_000_000_500_000_000)
        ]
    );
    assert!(trace.columns[0].values()[1].is_nan());
    assert_eq!(trace.columns[1].values(), [-2.0]);
}

#[test]
fn a_header_names_columns_unit_and_labels() {
    let trace = read("\u{feff}Value,host,Name,time_ms\n1,a,cpu,5\n2,,cpu,6\n");
    assert!(trace.problems.is_empty(), "{}", trace.problems);
    assert_eq!(names(&trace), ["cpu{host=a}", "cpu"]);
    assert_eq!(trace.columns[1].times(), [Timestamp::from_millis(6)]);
}

#[test]
fn a_header_that_does_not_help_is_refused() {
    for (text, what) in [
        ("when,what,value\n1,a,2\n", "does not name the three columns"),
        ("time,series,value,ts\n1,a,2,3\n", "twice"),
    ] {
        let error = parse_csv(text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, TraceDefect::Foreign { .. }));
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn the_unit_is_that_of_the_first_row_or_given() {
    let expected = [Timestamp(1_700_000_000_123_000_000)];
    for text in [
        "1700000000.123,a,1",
        "1700000000123,a,1",
        "1700000000123000,a,1",
        "1700000000123000000,a,1",
    ] {
        assert_eq!(read(text).columns[0].times(), expected, "{text}");
    }
    let trace = read("1700000000123,a,1\n1700000000,a,2\n");
    assert_eq!(trace.samples(), 1);
    assert!(trace.problems.named[0].what.starts_with("a timestamp of another unit"));
    let options = ReadOptions {
        unit: Some(TimeUnit::Millis),
        ..ReadOptions::default()
    };
    let trace = parse_csv(&b"5,a,1\n1700000000123,a,2\n"[..], &options).unwrap();
    assert_eq!((trace.samples(), trace.problems.count), (2, 0));
}

#[test]
fn another_separator_can_be_given() {
    let options = ReadOptions {
        separator: b';',
        ..ReadOptions::default()
    };
    let trace = parse_csv(&b"5;a{x=1,y=2};1\n"[..], &options).unwrap();
    assert_eq!(names(&trace), ["a{x=1,y=2}"]);
}

#[test]
fn each_bad_row_is_counted_and_named() {
    let table = [
        ("5", "too few fields"),
        ("5,a", "too few fields"),
        ("5,a,1,2", "too many fields"),
        ("5,a{x=1,y=2},1", "too many fields"),
        ("5,a,", "no value"),
        ("5,a,text", "a value that is no number"),
        ("5,a,true", "a value that is no number"),
        ("5,a,\"1,5\"", "a value that is no number"),
        ("5,a,9007199254740993", "an integer beyond 2^53"),
        ("5,a,1e999", "a number beyond the range of an f64"),
        (",a,1", "no timestamp"),
        ("x,a,1", "a timestamp that is no plain number"),
        ("2024-01-01T00:00:00Z,a,1", "a timestamp that is no plain number"),
        ("5,,1", "no series"),
        ("5,{x=1},1", "no series"),
        ("5,a{x=1},1,", "too many fields"),
        ("5,a{x=1,1", "a series that is neither name nor name{label=value,...}"),
        ("5,a{x,1", "a series that is neither name nor name{label=value,...}"),
        ("5,a{},1", "a series that is neither name nor name{label=value,...}"),
        ("5,a{=1},1", "a series that is neither name nor name{label=value,...}"),
        ("5,\"a{x=1,x=2}\",1", "a label that occurs twice"),
        ("5,\"a,1", "a quoted field that does not end on its line"),
        ("5,\"a\"b,1", "text behind a quoted field"),
        ("0.0000000001,a,1", "a timestamp finer than a nanosecond"),
    ];
    for (row, what) in table {
        let trace = read(&format!("1,ok,1\n{row}\n2,ok,2\n"));
        assert_eq!(trace.problems.count, 1, "{row}: {}", trace.problems);
        assert_eq!(trace.problems.kinds.get(what), Some(&1), "{row}: {}", trace.problems);
        assert_eq!(trace.problems.named[0].place, Place::Line(2), "{row}");
        assert_eq!(trace.samples(), 2, "{row}");
    }
    let trace = parse_csv(&b"5,\xff,1\n"[..], &ReadOptions::default()).unwrap();
    assert_eq!(
        trace.problems.named[0].to_string(),
        "line 1: a name that is not UTF-8: 5,\\xff,1"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_bytes_are_rows_or_problems(text in "[0-9][a1,\"{}=. \n-]{0,60}") {
        let trace = read(&text);
        let rows = text.lines().filter(|line| !line.trim().is_empty()).count() as u64;
        prop_assert_eq!(trace.samples() + trace.problems.count, rows);
    }

    #[test]
    fn what_is_written_is_read(value in -1e300_f64..1e300, name in "[a-z\",{]{1,6}", at in 0_i64..9_000_000_000) {
        prop_assume!(!name.contains('{'));
        let quoted = name.replace('"', "\"\"");
        let trace = read(&format!("{at},\"{quoted}\",{value:e}\n"));
        prop_assert!(trace.problems.is_empty(), "{}", trace.problems);
        prop_assert_eq!(trace.keys[0].name(), name);
        prop_assert_eq!(trace.columns[0].values(), &[value]);
        prop_assert_eq!(trace.columns[0].times(), &[Timestamp::from_secs(at)]);
    }
}
