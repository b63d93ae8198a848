//! Data sources and archives as `rrdtool create` takes them.

use crate::error::{Error, Result};
use crate::layout::{Archive, Cf, DataSource, DsKind, FORECASTS, Layout, UNKNOWN, VALUE};
use crate::number::number;

/// The layout that `DS:...` and `RRA:...` words define, with a step of `step_s` seconds.
///
/// Lengths of time may have a unit, as `5m` or `10d`.
///
/// # Errors
/// [`Error::Definition`] for words that define nothing, [`Error::Unsupported`] for data
/// sources and archives that this engine does not handle, [`Error::Layout`] for what no file
/// can be.
pub fn define<T: AsRef<str>>(step_s: u64, words: &[T]) -> Result<Layout> {
    let (mut sources, mut archives) = (Vec::new(), Vec::new());
    for word in words {
        let word = word.as_ref();
        let parts: Vec<&str> = word.split(':').collect();
        match parts.as_slice() {
            ["DS", name, kind, rest @ ..] => sources.push(source(name, kind, rest)?),
            ["RRA", cf, rest @ ..] => archives.push(archive(cf, rest, step_s)?),
            _ => return Err(wrong(format!("can't parse argument '{word}'"))),
        }
    }
    if archives.is_empty() {
        return Err(wrong("you must define at least one Round Robin Archive".to_owned()));
    }
    if sources.is_empty() {
        return Err(wrong("you must define at least one Data Source".to_owned()));
    }
    Layout::new(step_s, sources, archives)
}

/// At least as many bytes as a file of these definitions has in its archives, those included
/// that this engine does not handle, with `more_sources` data sources besides those defined.
/// What cannot be read counts as nothing: such a definition is refused elsewhere.
pub fn file_len_max<T: AsRef<str>>(step_s: u64, words: &[T], more_sources: u64) -> u64 {
    /// An archive of Holt-Winters forecasting brings four others.
    const KIN: u64 = 5;
    let words = words.iter().map(AsRef::as_ref);
    let sources = words.clone().filter(|word| word.starts_with("DS:")).count() as u64;
    let rows = words.filter_map(|word| {
        let mut parts = word.strip_prefix("RRA:")?.split(':');
        let cf = parts.next()?;
        if Cf::from_name(cf).is_none() {
            let counts = parts.filter_map(|part| count(part, step_s));
            return Some(counts.max()?.saturating_mul(KIN));
        }
        let steps = count(parts.nth(1)?, step_s)?;
        count(parts.next()?, step_s.saturating_mul(steps))
    });
    let rows = rows.fold(0, u64::saturating_add);
    let row_len = sources.saturating_add(more_sources).saturating_mul(VALUE as u64);
    rows.saturating_mul(row_len)
}

/// Seconds, as a number or with a unit: `s`, `m`, `h`, `d`, `w`, `M` (31 days) or `y` (366 days).
pub fn seconds(text: &str) -> Option<u64> {
    let (digits, unit) = split(text)?;
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        "M" => 2_678_400,
        "y" => 31_622_400,
        _ => return None,
    };
    digits.checked_mul(factor)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// How many of `each_s` seconds: a number of them, or a length of time.
fn count(text: &str, each_s: u64) -> Option<u64> {
    match split(text)? {
        (count, "") => Some(count),
        _ => seconds(text)
            .filter(|span| each_s > 0 && span % each_s == 0)
            .map(|span| span / each_s),
    }
}

fn source(name: &str, kind: &str, rest: &[&str]) -> Result<DataSource> {
    if kind == "COMPUTE" {
        return Err(Error::Unsupported("a COMPUTE data source".to_owned()));
    }
    let kind = DsKind::from_name(kind).ok_or_else(|| wrong(format!("invalid DS type specified ({kind})")))?;
    let [heartbeat, min, max] = rest else {
        return Err(wrong(format!(
            "failed to parse data source {name}: it has a heartbeat, a least and a largest"
        )));
    };
    let bad = |what: &str, text: &str| wrong(format!("failed to parse data source {name}: {what} '{text}'"));
    let limit = |text: &str| match text {
        "U" => Some(UNKNOWN),
        text => number(text.as_bytes()),
    };
    Ok(DataSource {
        name: name.to_owned(),
        kind,
        heartbeat_s: seconds(heartbeat).ok_or_else(|| bad("invalid heartbeat", heartbeat))?,
        min: limit(min).ok_or_else(|| bad("invalid minimum", min))?,
        max: limit(max).ok_or_else(|| bad("invalid maximum", max))?,
    })
}

fn archive(cf: &str, rest: &[&str], step_s: u64) -> Result<Archive> {
    if FORECASTS.contains(&cf) {
        return Err(Error::Unsupported(format!("a {cf} archive")));
    }
    let cf = Cf::from_name(cf).ok_or_else(|| wrong(format!("Unrecognized consolidation function {cf}")))?;
    let [xff, steps, rows] = rest else {
        return Err(wrong("an archive has an xff, steps and rows".to_owned()));
    };
    let bad = |what: &str, text: &str| wrong(format!("Invalid {what} '{text}' of an archive"));
    let xff_value = number(xff.as_bytes()).ok_or_else(|| bad("xff", xff))?;
    let steps = count(steps, step_s).ok_or_else(|| bad("number of steps", steps))?;
    let row_s = step_s.saturating_mul(steps);
    let rows = count(rows, row_s).ok_or_else(|| bad("number of rows", rows))?;
    Ok(Archive::new(cf, xff_value, steps, rows))
}

fn wrong(what: String) -> Error {
    Error::Definition(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_file_is_bounded_before_it_is_made() {
        let check = |words: &[&str], more, expected| assert_eq!(file_len_max(300, words, more), expected, "{words:?}");
        check(&[], 3, 0);
        check(&["DS:a:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:1440"], 0, 1440 * 8);
        check(
            &["DS:a:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:1d", "RRA:MAX:0.5:12:10"],
            1,
            (288 + 10) * 16,
        );
        check(
            &["DS:a:GAUGE:600:U:U", "RRA:HWPREDICT:1440:0.1:0.0035:288"],
            0,
            5 * 1440 * 8,
        );
        check(&["RRA:AVERAGE:0.5:1:18446744073709551615"], 2, u64::MAX);
        check(&["RRA:AVERAGE:x", "RRA", "DS"], 2, 0);
        let words = [
            "DS:a:GAUGE:600:U:U",
            "DS:b:GAUGE:600:U:U",
            "RRA:AVERAGE:0.5:1:1440",
            "RRA:MIN:0.5:6:1008",
        ];
        let layout = define(300, &words).unwrap();
        let header = layout.header_len() as u64;
        assert_eq!(file_len_max(300, &words, 0) + header, layout.file_len());
    }

    #[test]
    fn definitions_are_those_of_rrdtool() {
        let words = [
            "DS:a:GAUGE:600:U:U",
            "DS:b:COUNTER:10m:0:1e9",
            "RRA:AVERAGE:0.5:1:1440",
            "RRA:MAX:0.25:30m:21d",
        ];
        let layout = define(300, &words).unwrap();
        assert_eq!((layout.step_s(), layout.sources()[1].heartbeat_s), (300, 600));
        assert_eq!((layout.sources()[1].min, layout.sources()[1].max), (0.0, 1e9));
        assert!(layout.sources()[0].min.is_nan());
        assert_eq!(layout.archives()[1], Archive::new(Cf::Max, 0.25, 6, 1008));
    }

    #[test]
    fn what_defines_nothing_is_named() {
        let check = |words: &[&str], expected: &str| {
            assert_eq!(define(10, words).unwrap_err().to_string(), expected);
        };
        check(&[], "you must define at least one Round Robin Archive");
        check(&["RRA:AVERAGE:0.5:1:10"], "you must define at least one Data Source");
        check(&["DS:a:GAUG:20:U:U"], "invalid DS type specified (GAUG)");
        check(&["RRA:AVERAG:0.5:1:10"], "Unrecognized consolidation function AVERAG");
        check(
            &["RRA:HWPREDICT:1440:0.1:0.0035:288"],
            "not handled: a HWPREDICT archive",
        );
        check(&["DS:a:COMPUTE:b,8,*"], "not handled: a COMPUTE data source");
        check(&["FOO"], "can't parse argument 'FOO'");
        check(
            &["DS:a:GAUGE:20:U:U", "RRA:MAX:0.5:15s:10"],
            "Invalid number of steps '15s' of an archive",
        );
        assert!(define(10, &["DS:a:GAUGE:20:U:U", "RRA:MAX:0.5:1:99999999999999999999"]).is_err());
    }
}
