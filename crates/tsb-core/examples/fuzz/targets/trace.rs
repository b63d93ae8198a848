//! Fuzzes the parsers of traces: the file format, and the text formats of others.

use tsb_core::trace::{Limits, ReadOptions, Trace, TraceFormat, parse};

/// Limits of a parsed trace, small so that excessive memory is noticed.
const LIMITS: Limits = Limits {
    series: 1_000,
    samples: 100_000,
    key_bytes: 1 << 20,
};

/// Asserts the limits, and that every problem is counted.
fn check_trace(trace: &Trace) {
    assert!(trace.keys.len() <= LIMITS.series && trace.samples() <= LIMITS.samples);
    assert_eq!(trace.keys.len(), trace.columns.len());
    assert!(trace.problems.named.len() as u64 <= trace.problems.count);
    assert!(!trace.problems.to_string().is_empty() || trace.problems.is_empty());
}

fn options() -> ReadOptions {
    ReadOptions {
        limits: LIMITS,
        ..ReadOptions::default()
    }
}

/// The file format: a trace that was read can be written, and reads back with the same number of
/// samples.
pub(super) fn file(bytes: &[u8]) {
    let Ok(trace) = Trace::read(bytes, LIMITS) else { return };
    check_trace(&trace);
    let mut again = Vec::new();
    if trace.write(&mut again).is_ok() {
        let second = Trace::read(again.as_slice(), LIMITS).map(|trace| trace.samples());
        assert_eq!(second.ok(), Some(trace.samples()));
    }
}

/// Line protocol.
pub(super) fn influx(bytes: &[u8]) {
    if let Ok(trace) = parse(bytes, TraceFormat::Influx, &options()) {
        check_trace(&trace);
    }
}

/// Prometheus text.
pub(super) fn prometheus(bytes: &[u8]) {
    if let Ok(trace) = parse(bytes, TraceFormat::Prometheus, &options()) {
        check_trace(&trace);
    }
}

/// CSV.
pub(super) fn csv(bytes: &[u8]) {
    if let Ok(trace) = parse(bytes, TraceFormat::Csv, &options()) {
        check_trace(&trace);
    }
}
