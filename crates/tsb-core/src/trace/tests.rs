//! The file format as a whole: round trips, cuts, flipped bits, limits.

use proptest::prelude::*;

use super::*;
use crate::bytes::varint;
use crate::series::{SeriesId, SeriesKey};
use crate::time::Timestamp;

fn small_file() -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), &[("source", "test")]).unwrap();
    let first = writer.define(&SeriesKey::with_labels("cpu", [("host", "a")])).unwrap();
    let second = writer.define(&SeriesKey::with_labels("cpu", [("host", "b")])).unwrap();
    for tick in 0..20 {
        writer
            .push(first, Timestamp(tick * 1_000_000_007), (tick * tick) as f64)
            .unwrap();
        writer
            .push(second, Timestamp(tick * 1_000_000_007), tick as f64 / 8.0)
            .unwrap();
        if tick == 9 {
            writer.flush().unwrap();
            let late = writer.define(&SeriesKey::new("late")).unwrap();
            assert_eq!(late, SeriesId(2));
            writer.push(late, Timestamp(5), f64::NAN).unwrap();
        }
    }
    writer.finish().unwrap().0
}

fn read(bytes: &[u8]) -> Result<Trace, TraceDefect> {
    Trace::read(bytes, Limits::default())
}

#[test]
fn written_values_are_read_back() {
    let trace = read(&small_file()).unwrap();
    assert!(trace.problems.is_empty());
    assert_eq!(trace.notes["source"], "test");
    let names: Vec<String> = trace.keys.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["cpu{host=a}", "cpu{host=b}", "late"]);
    assert_eq!(trace.samples(), 41);
    assert_eq!(trace.columns[0].values()[19], 361.0);
    assert_eq!(trace.columns[1].times()[19], Timestamp(19 * 1_000_000_007));
    assert!(trace.columns[2].values()[0].is_nan());
    assert_eq!(trace.span(), Some((Timestamp(0), Timestamp(19 * 1_000_000_007))));
}

#[test]
fn a_file_cut_anywhere_is_read_to_its_last_whole_block() {
    let bytes = small_file();
    let mut seen = std::collections::BTreeSet::new();
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Ok(trace) => {
                assert_eq!(trace.problems.count, 1, "cut at {length} and not noticed");
                assert!([0, 20, 41].contains(&trace.samples()));
                seen.insert(trace.samples());
            }
            Err(defect) => assert!(length < 16, "cut at {length}: {defect}"),
        }
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = small_file();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&flipped).is_err(), "bit {bit} flipped and not noticed");
    }
}

/// A limit of its own for each kind of thing, and each is kept.
#[test]
fn limits_bound_what_a_file_can_make_of_itself() {
    let bytes = small_file();
    let check = |limits: Limits, expected: &str| {
        let error = Trace::read(&bytes[..], limits).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let limits = Limits::default();
    check(Limits { series: 1, ..limits }, "more than 1 series");
    check(Limits { samples: 30, ..limits }, "more than 30 samples");
    check(
        Limits {
            key_bytes: 12,
            ..limits
        },
        "more than 12 bytes of names",
    );
}

fn keys() -> impl Strategy<Value = SeriesKey> {
    let label = ("[a-c]{1,2}", "[x-z\u{e4}\u{20ac}]{0,4}");
    ("[a-d]{1,3}", proptest::collection::vec(label, 0..3))
        .prop_map(|(name, labels)| SeriesKey::with_labels(name, labels))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn any_samples_come_back_in_order(
        rows in proptest::collection::vec((keys(), any::<i64>(), any::<u64>(), any::<bool>()), 0..80),
    ) {
        let mut expected = std::collections::BTreeMap::<SeriesKey, Vec<(Timestamp, u64)>>::new();
        let mut writer = TraceWriter::new(Vec::new(), &[]).unwrap();
        for (key, at, bits, flush) in rows {
            let id = writer.define(&key).unwrap();
            writer.push(id, Timestamp(at), f64::from_bits(bits)).unwrap();
            expected.entry(key).or_default().push((Timestamp(at), bits));
            if flush {
                writer.flush().unwrap();
            }
        }
        let (bytes, totals) = writer.finish().unwrap();
        prop_assert_eq!(totals.bytes, bytes.len() as u64);
        let trace = read(&bytes).unwrap();
        prop_assert_eq!(totals.samples, trace.samples());
        prop_assert_eq!(trace.keys.len(), expected.len());
        for (key, column) in trace.keys.iter().zip(&trace.columns) {
            let bits = column.values().iter().map(|value| value.to_bits());
            let found: Vec<_> = column.times().iter().copied().zip(bits).collect();
            prop_assert_eq!(&found, &expected[key]);
        }
    }

    #[test]
    fn any_bytes_are_a_trace_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read(&bytes).is_err());
    }
}

fn fixture(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/traces")
        .join(name)
}

/// The bytes of the example in docs/formats/trace.md.
#[test]
fn the_writer_writes_what_the_format_document_shows() {
    let mut writer = TraceWriter::new(Vec::new(), &[]).unwrap();
    let id = writer.define(&SeriesKey::with_labels("cpu", [("host", "a")])).unwrap();
    for (second, value) in [(0, 10.0), (1, 12.0), (2, 11.0)] {
        writer
            .push(id, Timestamp::from_secs(1_700_000_000 + second), value)
            .unwrap();
    }
    let (bytes, totals) = writer.finish().unwrap();
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = "89545342540d0a1a01000000ae7c576f01000000010000008def02d29fa2bccb0002000100100000\
        0099b35c4bc266c7f4010100036370750004686f7374000161030002001a000000ecd4dfa2399194\
        cd0100038080d0e2c6bfce972f80a8d6b90700000100000114040104000300020000000472cbc1a4\
        96bbcd0103";
    assert_eq!(hex.concat(), expected);
    assert_eq!(
        totals,
        TraceTotals {
            series: 1,
            samples: 3,
            bytes: 125
        }
    );
}

/// Made by hand after docs/formats/trace.md, with every form of column and axis and a
/// block of an unknown optional kind. Every later version must read it.
#[test]
fn a_file_of_version_1_stays_readable() {
    let trace = open(fixture("v1.tsbtrace")).unwrap();
    assert!(trace.problems.is_empty(), "{}", trace.problems);
    assert_eq!(trace.notes["source"], "hand");
    assert_eq!(trace.usual_interval_ns(), Some(1_000_000_000));
    let check = |index: usize, key: &str, times: &[i64], values: &[f64]| {
        assert_eq!(trace.keys[index].to_string(), key);
        let after = trace.columns[index]
            .times()
            .iter()
            .map(|time| time.0 - 1_700_000_000_000_000_000);
        assert_eq!(after.collect::<Vec<_>>(), times, "{key}");
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(trace.columns[index].values()), bits(values), "{key}");
    };
    let s = 1_000_000_000;
    let axis = [0, s, 2 * s + 7, 3 * s, 4 * s, 5 * s];
    let longer = [0, s, 2 * s + 7, 3 * s, 4 * s, 5 * s, 6 * s];
    check(0, "constant{host=a}", &axis, &[2.5; 6]);
    check(
        1,
        "counter{host=a}",
        &longer,
        &[100.0, 103.0, 103.0, 103.0, 90.0, 91.0, 95.0],
    );
    check(
        2,
        "slope{host=b}",
        &axis,
        &[0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5001.0],
    );
    check(3, "decimal", &axis[2..5], &[1.25, -0.01, 0.07]);
    check(4, "double", &[9 * s, 8 * s], &[-0.0, 1.0 / 3.0]);
    check(
        5,
        "late{host=\u{e4}}",
        &[6 * s],
        &[f64::from_bits(0x7ff8_0000_0000_0123)],
    );
}

#[test]
fn a_later_version_and_foreign_files_are_refused_by_name() {
    let check = |bytes: &[u8], expected: &str| {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let mut newer = small_file();
    newer[8..10].copy_from_slice(&2_u16.to_le_bytes());
    let checksum = crc32fast::hash(&newer[..12]);
    newer[12..16].copy_from_slice(&checksum.to_le_bytes());
    check(&newer, "format version 2 is newer than 1");
    check(b"", "not a tsb trace");
    check(b"timestamp,series,value\n", "not a tsb trace");
    check(&MAGIC, "the file ends within its header");
    let mut more = small_file();
    more.push(0);
    check(&more, "bytes after the end block");
}

#[test]
fn a_block_that_is_missing_doubled_or_unknown_is_noticed() {
    let block = |kind, number, payload: &[u8]| {
        let mut block = format::block_header(kind, number, payload).to_vec();
        block.extend_from_slice(payload);
        block
    };
    let file = |blocks: &[Vec<u8>]| [format::file_header().to_vec(), blocks.concat()].concat();
    let note = block(format::BlockKind::Note, 0, &[0]);
    let end = block(format::BlockKind::End, 1, &[0, 0]);
    assert!(read(&file(&[note.clone(), end.clone()])).unwrap().problems.is_empty());
    let check = |blocks: &[Vec<u8>], expected: &str| {
        let error = read(&file(blocks)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        &[note.clone(), note.clone()],
        "at byte 33: a block is missing, doubled or out of order",
    );
    check(std::slice::from_ref(&end), "a block is missing");
    check(
        &[note.clone(), block(format::BlockKind::End, 1, &[0, 1])],
        "the totals at the end do not agree",
    );
    check(
        &[note.clone(), block(format::BlockKind::End, 1, &[0, 0, 0])],
        "bytes left over",
    );
    let series = |payload: &[u8]| [note.clone(), block(format::BlockKind::Series, 1, payload)];
    check(
        &series(&[2, 0, 0, 1, b'a', 0, 1, 0]),
        "a series that is announced twice",
    );
    check(&series(&[1, 0, 5, 1, b'a']), "shares more than the one before has");
    check(&series(&[1, 0, 0, 1, 0xff]), "a name that is not UTF-8");
    check(
        &series(&[1, 2, 0, 1, b'a', 0, 1, b'l', 0, 0, 0, 1, b'l', 0, 0]),
        "two labels of one name",
    );
    let mut unknown = block(format::BlockKind::End, 1, &[]);
    unknown[0] = 77;
    let checksum = crc32fast::hash(&unknown[..12]);
    unknown[12..].copy_from_slice(&checksum.to_le_bytes());
    check(&[note, unknown], "a block of unknown kind");
}

/// A few bytes must not swell to more than the limits.
#[test]
fn a_small_hostile_file_stays_small() {
    let mut payload = vec![1, 0];
    varint::put(&mut payload, 4_000_000);
    payload.extend_from_slice(&[0, 0]);
    varint::put(&mut payload, 4_000_000 - 2);
    payload.extend_from_slice(&[1, 0, 0, 0]);
    payload.extend_from_slice(&[0; 8]);
    let mut bytes = format::file_header().to_vec();
    let blocks = [
        (format::BlockKind::Note, vec![0]),
        (format::BlockKind::Series, vec![1, 0, 0, 1, b'a']),
    ];
    let more = (0..100).map(|_| (format::BlockKind::Samples, payload.clone()));
    for (number, (kind, payload)) in blocks.into_iter().chain(more).enumerate() {
        bytes.extend_from_slice(&format::block_header(kind, number as u64, &payload));
        bytes.extend_from_slice(&payload);
    }
    assert!(bytes.len() < 6000);
    let limits = Limits {
        samples: 10_000_000,
        ..Limits::default()
    };
    let error = Trace::read(&bytes[..], limits).unwrap_err().to_string();
    assert!(error.contains("more than 10000000 samples"), "{error}");
}

#[test]
fn a_format_is_known_by_its_first_bytes_or_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    assert_eq!(open(put("a.csv", &small_file())).unwrap().samples(), 41);
    assert_eq!(open(put("a.CSV", b"5,a,1\n")).unwrap().samples(), 1);
    assert_eq!(open(put("a.lp", b"m f=1 5\n")).unwrap().samples(), 1);
    assert_eq!(open(put("a.influx", b"m f=1 5\n")).unwrap().samples(), 1);
    assert_eq!(open(put("a.prom", b"m 1 5\n")).unwrap().samples(), 1);
    assert_eq!(
        open(put("a.om", b"m 1 5\n")).unwrap().span(),
        Some((Timestamp::from_secs(5), Timestamp::from_secs(5)))
    );
    assert_eq!(open(put("a.tsv", b"5\ta\t1\n")).unwrap().samples(), 1);
    let check = |path: std::path::PathBuf, expected: &str| {
        let error = open(&path).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot read trace {}: ", path.display())),
            "{error}"
        );
        assert!(error.ends_with(expected), "{error}");
    };
    check(put("a.txt", b"5,a,1\n"), "say which format it has");
    check(put("a.tsbtrace", b"5,a,1\n"), "it does not begin with the magic bytes");
    check(
        put("b.csv", b"5,a\n5\n"),
        "2 rows were left out, the first at line 1: a value that is not a number: value=a",
    );
    check(put("c.csv", b""), "there is no sample in it");
    check(directory.path().join("absent.csv"), "cannot open");
    let options = ReadOptions::default();
    let given = open_with(put("b.txt", b"5,a,1\n"), "csv".parse().ok(), &options);
    assert_eq!(given.unwrap().samples(), 1);
    for (format, name, _) in TraceFormat::ALL {
        assert_eq!(name.parse::<TraceFormat>().unwrap(), format);
        assert_eq!(format.to_string(), name);
    }
    assert!("xml".parse::<TraceFormat>().is_err());
}

/// The recording that comes with the project: see fixtures/traces/README.md.
#[test]
fn the_recorded_build_holds_what_its_readme_says() {
    let path = fixture("busy-build.tsbtrace");
    let trace = open(&path).unwrap();
    assert!(trace.problems.is_empty(), "{}", trace.problems);
    assert_eq!((trace.keys.len(), trace.samples()), (5493, 885_096));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 489_548);
    assert_eq!(trace.checksum(), 0x830d_c5eb);
    let (start, end) = trace.span().unwrap();
    assert_eq!((end - start) / 1_000_000_000, 759);
    let grid = trace.grid(trace.usual_interval_ns().unwrap()).unwrap();
    assert_eq!((grid.ticks(), grid.counts().superseded), (760, 0));
    let whole = trace.columns.iter().filter(|column| column.len() == 760).count();
    assert_eq!(whole, 942);
    // What is written from memory holds the same, though its blocks are cut elsewhere.
    let mut again = Vec::new();
    trace.write(&mut again).unwrap();
    assert_eq!(read(&again).unwrap(), trace);
    let readme = std::fs::read_to_string(fixture("README.md")).unwrap();
    for figure in ["5,493 series", "885,096 samples", "489,548 bytes", "760 ticks"] {
        assert!(readme.contains(figure), "{figure}");
    }
}
