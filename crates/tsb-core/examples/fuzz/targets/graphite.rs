//! Fuzzes the Graphite decoder against a naive one that follows carbon line by line.

use tsb_core::wire::Protocol;
use tsb_core::wire::graphite::{MAX_LINE, series_key};

use super::codec::{check_pieces, check_twice, clock};

/// Asserts that the fast and the naive decoder agree for any bytes.
pub(super) fn check(bytes: &[u8]) {
    let found = check_pieces(Protocol::Graphite, bytes);
    let naive = naive(bytes);
    assert_eq!(
        found.malformed.len(),
        naive.malformed,
        "malformed lines: {:?}",
        found.malformed
    );
    assert_eq!(found.fatal.is_some(), naive.fatal, "whether the connection lives");
    // The sink admits only the first names; samples are in wire order.
    let mut fast = found.samples.iter();
    let mut refused = 0;
    let mut next = fast.next();
    for sample in &naive.samples {
        if next == Some(sample) {
            next = fast.next();
        } else {
            refused += 1;
        }
    }
    assert_eq!(
        (next, found.refused),
        (None, refused),
        "samples differ from {:?}",
        naive.samples
    );
    check_twice(&mut *Protocol::Graphite.decoder(clock()), bytes);
}

struct Naive {
    samples: Vec<(String, i64, u64)>,
    malformed: usize,
    fatal: bool,
}

fn naive(bytes: &[u8]) -> Naive {
    let mut naive = Naive {
        samples: Vec::new(),
        malformed: 0,
        fatal: false,
    };
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let rest = lines.pop().unwrap_or_default();
    for line in lines {
        match read(line) {
            Ok(sample) => naive.samples.push(sample),
            Err(is_fatal) => {
                naive.malformed += 1;
                if is_fatal {
                    naive.fatal = true;
                    return naive;
                }
            }
        }
    }
    naive.fatal = rest.len() > MAX_LINE;
    naive.malformed += usize::from(!rest.is_empty());
    naive
}

/// A sample, or whether the error is fatal.
fn read(line: &[u8]) -> Result<(String, i64, u64), bool> {
    if line.len() > MAX_LINE {
        return Err(true);
    }
    let text = std::str::from_utf8(line).map_err(|_| true)?;
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c))
        .filter(|word| !word.is_empty())
        .collect();
    let &[name, value, at] = words.as_slice() else {
        return Err(false);
    };
    let at = float(at).ok_or(false)?;
    let value = float(value).filter(|value| !value.is_nan()).ok_or(false)?;
    if !at.is_finite() {
        return Err(true);
    }
    let seconds = at.trunc();
    if seconds.abs() > 9_223_372_036.0 {
        return Err(false);
    }
    let seconds = if seconds == -1.0 { 1_000 } else { seconds as i64 };
    Ok((series_key(name).to_string(), seconds * 1_000_000_000, value.to_bits()))
}

/// Python's `float()`, without non-ASCII digits.
fn float(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    for (index, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_') {
        let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
        if !digit(index.checked_sub(1)) || !digit(Some(index + 1)) {
            return None;
        }
    }
    text.replace('_', "").parse().ok()
}
