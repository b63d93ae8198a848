//! Line protocol: good lines, and a table of bad ones.

use proptest::prelude::*;

use super::*;
use crate::trace::Limits;

fn read(text: &str) -> Trace {
    parse_influx(text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn samples(trace: &Trace) -> Vec<(String, i64, f64)> {
    let mut found = Vec::new();
    for (key, column) in trace.keys.iter().zip(&trace.columns) {
        for (at, value) in column.times().iter().zip(column.values()) {
            found.push((key.to_string(), at.0, *value));
        }
    }
    found
}

#[test]
fn good_lines_become_series() {
    let trace =
        read("# comment\n\ncpu,host=a,zone=b usage=1.5,count=3i 10\r\ncpu,zone=b,host=a usage=-2 20\nm v=7u 5\n");
    assert!(trace.problems.is_empty(), "{}", trace.problems);
    assert_eq!(
        samples(&trace),
        [
            ("cpu{_field=usage,host=a,zone=b}".to_owned(), 10, 1.5),
            ("cpu{_field=usage,host=a,zone=b}".to_owned(), 20, -2.0),
            ("cpu{_field=count,host=a,zone=b}".to_owned(), 10, 3.0),
            ("m{_field=v}".to_owned(), 5, 7.0),
        ]
    );
}

#[test]
fn escapes_are_undone() {
    let trace = read("my\\ cpu\\,x,ta\\=g=va\\ lue\\,1 fi\\=eld=1,s=\"a b, c=\\\" 5\",back\\slash=2 1\n");
    assert_eq!(
        samples(&trace),
        [
            ("my cpu,x{_field=fi=eld,ta=g=va lue,1}".to_owned(), 1, 1.0),
            ("my cpu,x{_field=back\\slash,ta=g=va lue,1}".to_owned(), 1, 2.0),
        ]
    );
    assert_eq!(trace.problems.kinds["a string, which is not a value"], 1);
}

#[test]
fn each_bad_row_is_counted_and_named() {
    let table = [
        (",t=v f=1 5", "no measurement"),
        ("m,t f=1 5", "a tag without a value"),
        ("m,t= f=1 5", "an empty tag"),
        ("m,=v f=1 5", "an empty tag"),
        ("m,_field=x f=1 5", "a tag of the reserved name _field"),
        ("m,t=a,t=b f=1 5", "a tag that occurs twice"),
        ("m", "no field"),
        ("m ", "no field"),
        ("m f 5", "no field"),
        ("m f=1, 5", "no field"),
        ("m f=1,f=2 5", "a field that occurs twice"),
        ("m f=1", "no timestamp"),
        ("m f=1 ", "no timestamp"),
        ("m f=1 x", "a timestamp that is not a plain number"),
        ("m f=1 1e9", "a timestamp that is not a plain number"),
        ("m f=1 5 6", "a timestamp that is not a plain number"),
        (
            "m f=1 9223372036854775808",
            "a timestamp outside the years 1677 to 2262",
        ),
        ("m f= 5", "a field that is neither number, string nor boolean"),
        ("m f=abc 5", "a field that is neither number, string nor boolean"),
        ("m f=NaN 5", "a field that is neither number, string nor boolean"),
        ("m f=+1 5", "a field that is neither number, string nor boolean"),
        ("m f=1.5i 5", "a field that is neither number, string nor boolean"),
        ("m f=-1u 5", "an unsigned integer with a sign"),
        ("m f=9007199254740993i 5", "an integer beyond 2^53"),
        ("m f=18446744073709551615u 5", "an integer beyond 2^53"),
        ("m f=1e999 5", "a number beyond the range of an f64"),
        ("m f=true 5", "a boolean, which is not a value"),
        ("m f=F 5", "a boolean, which is not a value"),
        ("m f=\"text\" 5", "a string, which is not a value"),
        ("m f=\"open 5", "a string that does not end on its line"),
    ];
    for (row, what) in table {
        let trace = read(&format!("ok f=1 1\n{row}\nok f=2 2\n"));
        assert_eq!(trace.problems.count, 1, "{row}: {}", trace.problems);
        assert_eq!(trace.problems.kinds[what], 1, "{row}");
        assert_eq!(trace.problems.named[0].place, Place::Line(2), "{row}");
        assert_eq!(trace.samples(), 2, "{row}");
    }
    let trace = parse_influx(&b"m\xff f=1 5\n"[..], &ReadOptions::default()).unwrap();
    assert_eq!(
        trace.problems.named[0].to_string(),
        "line 1: a name that is not UTF-8: m\\xff f=1 5"
    );
}

#[test]
fn the_unit_can_be_given() {
    let options = ReadOptions {
        unit: Some(TimeUnit::Millis),
        ..ReadOptions::default()
    };
    let trace = parse_influx(&b"m f=1 1700000000123\n"[..], &options).unwrap();
    assert_eq!(trace.columns[0].times(), [Timestamp(1_700_000_000_123_000_000)]);
}

#[test]
fn a_flood_of_names_is_stopped_and_counted() {
    let options = ReadOptions {
        limits: Limits {
            series: 10,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let rows: Vec<String> = (0..50).map(|n| format!("m{n} f=1 5\n")).collect();
    let text = rows.concat();
    let trace = parse_influx(text.as_bytes(), &options).unwrap();
    assert_eq!((trace.keys.len(), trace.problems.count), (10, 40));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_bytes_are_rows_or_problems(text in "[m,= \\\\\"ft15i.\n-]{0,60}") {
        let trace = read(&text);
        let rows = text.lines().filter(|line| !line.trim_ascii_start().is_empty()).count() as u64;
        prop_assert!(trace.samples() + trace.problems.count >= rows);
    }

    #[test]
    fn written_values_are_read_back(
        name in "[a-z ,=]{1,5}", tag in "[a-z ,=]{1,5}", value in any::<i32>(), at in any::<i64>(),
    ) {
        let escape = |text: &str| text.replace(' ', "\\ ").replace(',', "\\,").replace('=', "\\=");
        let line = format!("{},t={} f={value}i {at}\n", escape(&name), escape(&tag));
        let trace = read(&line);
        prop_assert!(trace.problems.is_empty(), "{}", trace.problems);
        prop_assert_eq!(trace.keys[0].name(), name);
        prop_assert_eq!(trace.keys[0].label("t"), Some(&tag[..]));
        prop_assert_eq!(trace.columns[0].values(), &[f64::from(value)]);
        prop_assert_eq!(trace.columns[0].times(), &[Timestamp(at)]);
    }
}
