//! CSV: good rows, headers, units, and a table of bad rows.

use proptest::prelude::*;

use super::*;
use crate::trace::TimeUnit;

fn read(text: &str) -> Trace {
    parse_csv(text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn names(trace: &Trace) -> Vec<String> {
    trace.keys.iter().map(ToString::to_string).collect()
}

#[test]
fn three_columns_need_no_header() {
    let trace = read("1700000000,cpu,1.5\r\n1700000001,\"cpu{host=a,zone=\"\"b,c\"\"}\",-2\n\n1700000000.5,cpu,Inf");
    assert!(trace.problems.is_empty(), "{}", trace.problems);
    assert_eq!(names(&trace), ["cpu", "cpu{host=a,zone=b,c}"]);
    assert_eq!(
        trace.columns[0].times(),
        [
            Timestamp(1_700_000_000_000_000_000),
            Timestamp(1_700_000_000_500_000_000)
        ]
    );
    assert_eq!(trace.columns[0].values(), [1.5, f64::INFINITY]);
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
        (
            "when,what,value\n1,a,2\n",
            "no column is called timestamp, time or date",
        ),
        ("time,series,value,ts\n1,a,2,3\n", "two columns are called timestamp"),
        ("time,series,value,value\n1,a,2,3\n", "or two value"),
        ("time,cpu,cpu\n1,2,3\n", "two columns have one name"),
        ("time,host\n1,a\n", "no column holds numbers"),
        ("1,2,3,4\n", "there is no header, and a row has 4 fields"),
        ("1\n", "there is no header, and a row has 1 fields"),
    ] {
        let error = parse_csv(text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, TraceDefect::Header { line: 1, .. }));
        let shown = error.to_string();
        assert!(shown.starts_with("line 1: ") && shown.contains(what), "{shown}");
        assert!(shown.contains(text.lines().next().unwrap()), "what was found: {shown}");
        assert!(
            shown.contains("a header is timestamp,series,value"),
            "the hint: {shown}"
        );
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
        separator: Some(b';'),
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
        ("5,a,", MISSING),
        ("5,a,NULL", MISSING),
        ("5,a,nan", MISSING),
        ("5,a,text", "a value that is not a number"),
        ("5,a,true", "a value that is not a number"),
        ("5,a,\"1,5,5\"", "a value that is not a number"),
        (
            "5,a,\"1,5\"",
            "a number with a comma; if that is its decimal point, give decimal=comma",
        ),
        ("5,a,9007199254740993", "an integer beyond 2^53"),
        ("5,a,1e999", "a number beyond the range of an f64"),
        (",a,1", "no timestamp"),
        ("x,a,1", "a timestamp that is not a plain number"),
        ("2024-01-01T00:00:00Z,a,1", "a timestamp that is not a plain number"),
        ("5,,1", "no series"),
        ("5,{x=1},1", "no series"),
        ("5,a{x=1},1,", "too many fields"),
        ("5,a{x=1,1", "a series that is neither name nor name{label=value,...}"),
        ("5,a{x,1", "a series that is neither name nor name{label=value,...}"),
        ("5,a{},1", "a series that is neither name nor name{label=value,...}"),
        ("5,a{=1},1", "a series that is neither name nor name{label=value,...}"),
        ("5,\"a{x=1,x=2}\",1", "a label that occurs twice"),
        ("5,\"a,1", UNFINISHED_QUOTES),
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
    fn any_bytes_are_rows_or_problems(text in "[0-9][a1,{}=. \n-]{0,60}") {
        let Ok(trace) = parse_csv(text.as_bytes(), &ReadOptions::default()) else {
            let width = text.lines().next().map_or(0, |line| line.split(',').count());
            prop_assert!(!(2..=3).contains(&width), "{text}");
            return Ok(());
        };
        let rows = text.lines().filter(|line| !line.trim().is_empty()).count() as u64;
        prop_assert_eq!(trace.samples() + trace.problems.count, rows);
    }

    #[test]
    fn any_quotes_are_read_to_the_end(text in "[0-9],[a1,;\"\r\n]{0,80}") {
        let whole = format!("1,2\n{text}\n\"\n7,8\n");
        let trace = read(&whole);
        // The quote in the line before the last is open or closed, and never takes it along.
        prop_assert!(trace.samples() + trace.problems.count >= 2, "{}", trace.problems);
        prop_assert_eq!(trace.columns[0].values()[0], 2.0);
    }

    #[test]
    fn written_values_are_read_back(value in -1e300_f64..1e300, name in "[a-z\",{]{1,6}", at in 0_i64..9_000_000_000) {
        prop_assume!(!name.contains('{'));
        let quoted = name.replace('"', "\"\"");
        let trace = read(&format!("{at},\"{quoted}\",{value:e}\n"));
        prop_assert!(trace.problems.is_empty(), "{}", trace.problems);
        prop_assert_eq!(trace.keys[0].name(), name);
        prop_assert_eq!(trace.columns[0].values(), &[value]);
        prop_assert_eq!(trace.columns[0].times(), &[Timestamp::from_secs(at)]);
    }
}

/// The samples of each series, in order: whole seconds and value.
fn samples(trace: &Trace) -> Vec<(String, Vec<(i64, f64)>)> {
    let columns = trace.keys.iter().zip(&trace.columns);
    let pairs = |column: &crate::trace::Column| {
        let times = column.times().iter().map(|at| at.as_secs());
        times.zip(column.values().iter().copied()).collect()
    };
    columns.map(|(key, column)| (key.to_string(), pairs(column))).collect()
}

/// 2014-04-01 00:00:00 UTC.
const APRIL: i64 = 1_396_310_400;

#[test]
fn two_columns_are_a_series_that_is_called_as_the_file() {
    let naming = Naming {
        series: "ec2_cpu".to_owned(),
        file: None,
    };
    let text = "timestamp,value\r\n2014-04-01 00:00:00,1.5\r\n2014-04-01 00:05:00,2\r\n";
    let trace = parse_csv_named(text.as_bytes(), &ReadOptions::default(), &naming).unwrap();
    assert_eq!(
        samples(&trace),
        [("ec2_cpu".to_owned(), vec![(APRIL, 1.5), (APRIL + 300, 2.0)])]
    );
    assert_eq!(
        trace.decisions,
        [
            "times are dates without a zone, taken as UTC",
            "the series is called as the file"
        ]
    );
    let bare = "2014-04-01T00:00:00Z,1.5\n2014-04-01T02:05:00+02:00,2\n";
    let trace = parse_csv_named(bare.as_bytes(), &ReadOptions::default(), &naming).unwrap();
    assert_eq!(
        samples(&trace),
        [("ec2_cpu".to_owned(), vec![(APRIL, 1.5), (APRIL + 300, 2.0)])]
    );
    assert_eq!(trace.decisions[0], "times are dates with their zone");
}

#[test]
fn a_wide_file_has_a_series_for_each_column_and_counts_empty_cells() {
    let trace = read("\u{feff}\"Date\";\"load\";\"mem used\"\n2014-04-01;1;2\n2014-04-02;;NaN\n2014-04-03;3;n/a\n");
    assert_eq!(
        samples(&trace),
        [
            ("load".to_owned(), vec![(APRIL, 1.0), (APRIL + 172_800, 3.0)]),
            ("mem used".to_owned(), vec![(APRIL, 2.0)]),
        ]
    );
    assert_eq!(trace.problems.kinds, [(MISSING, 3)].into());
    assert_eq!(trace.problems.named[0].to_string(), format!("line 3: {MISSING}: load="));
    assert_eq!(trace.decisions[1], "each column of numbers is a series");
}

#[test]
fn columns_of_text_are_labels_and_a_column_called_value_is_the_file() {
    let trace = read("date,Name,open,high\n2014-04-01,AAL,1,2\n2014-04-01,AAP,3,4\n2014-04-02,AAL,5,6\n");
    let names = names(&trace);
    assert_eq!(
        names,
        ["open{Name=AAL}", "high{Name=AAL}", "open{Name=AAP}", "high{Name=AAP}"]
    );
    assert_eq!(trace.columns[0].values(), [1.0, 5.0]);
    assert_eq!(
        trace.decisions[1],
        "each column of numbers is a series; columns taken as labels: Name"
    );
    let trace = read("ts,host,value\n5,a,1\n5,b,2\n");
    assert_eq!(super::tests::names(&trace), ["value{host=a}", "value{host=b}"]);
    let naming = Naming {
        series: "x".to_owned(),
        file: Some("dir.x".to_owned()),
    };
    let trace = parse_csv_named(&b"ts,cpu,value\n5,1,2\n"[..], &ReadOptions::default(), &naming).unwrap();
    assert_eq!(super::tests::names(&trace), ["cpu{file=dir.x}", "x"]);
}

#[test]
fn dates_and_times_of_day_may_stand_in_two_columns() {
    let options = ReadOptions {
        dates: DateOrder::Dmy,
        decimal_comma: true,
        ..ReadOptions::default()
    };
    let text = "Date;Time;Power\n1/4/2014;00:00:00;4,216\n1/4/2014;00:01:00;?\n1/4/2014;00:02:00;-5\n";
    let trace = parse_csv(text.as_bytes(), &options).unwrap();
    assert_eq!(
        samples(&trace),
        [("Power".to_owned(), vec![(APRIL, 4.216), (APRIL + 120, -5.0)])]
    );
    assert_eq!(trace.problems.kinds, [(MISSING, 1)].into());
    let trace = read("Date,Time,Power\n1/4/2014,00:00:00,1\n");
    assert_eq!(
        (trace.samples(), trace.problems.count),
        (0, 1),
        "the order is not guessed"
    );
    assert!(trace.problems.named[0].what.contains("dates=dmy"));
}

#[test]
fn times_are_found_and_what_they_were_taken_for_is_said() {
    for (text, decision) in [
        (
            "time_ms,value\n5,1\n",
            "times are numbers, taken as milliseconds since 1970 as the header says",
        ),
        (
            "Time (us),value\n5,1\n",
            "times are numbers, taken as microseconds since 1970 as the header says",
        ),
        (
            "epoch,value\n1396310400,1\n",
            "times are numbers, taken as seconds since 1970 by their magnitude",
        ),
        (
            "day,value\n20140401,1\n",
            "times are dates without a zone, taken as UTC",
        ),
        (
            "id,when,value\n7,2014-04-01,1\n",
            "times are dates without a zone, taken as UTC",
        ),
        (
            ",timestamp,value\n0,2014-04-01T00:00:00Z,1\n",
            "times are dates with their zone",
        ),
    ] {
        let trace = read(text);
        assert_eq!(trace.decisions[0], decision, "{text}");
        assert!(trace.problems.is_empty(), "{text}: {}", trace.problems);
    }
    let trace = read("timestamp,value\n2014-04-01,1\n1396310400,2\n2014-04-03,3\n");
    assert_eq!(
        trace.problems.kinds,
        [("a number where other rows have a date", 1)].into()
    );
}

#[test]
fn files_of_spreadsheets_are_read() {
    let trace = read("sep=;\r\ntime;a;b\r\n5;1;2\r\n");
    assert_eq!(names(&trace), ["a", "b"]);
    let trace = read("time\ta, total\tb\n5\t1\t2\n");
    assert_eq!(names(&trace), ["a, total", "b"]);
    let trace = read("time,note,a\n5,\"two\nlines\",1\n6,\"\",2\n");
    assert_eq!(names(&trace), ["a{note=two\nlines}", "a"]);
    let error = parse_csv(&b"\xff\xfet\0i\0"[..], &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("UTF-16"), "{error}");
}
