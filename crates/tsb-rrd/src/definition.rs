//! Parses definitions of data sources and archives, as `rrdtool create` takes them.

use crate::error::{Error, Result};
use crate::layout::{Archive, Cf, DataSource, DsKind, FORECASTS, Layout, UNKNOWN, VALUE, is_name};
use crate::number::number;

/// The layout defined by `DS:...` and `RRA:...` words, with a step of `step_s` seconds.
///
/// Durations may have a unit, as in `5m` or `10d`.
///
/// # Errors
/// [`Error::Definition`] for invalid words, [`Error::Unsupported`] for data sources and archives
/// that this crate does not support, [`Error::Layout`] for a layout that no file can have.
pub fn define<T: AsRef<str>>(step_s: u64, words: &[T]) -> Result<Layout> {
    let (mut sources, mut archives) = (Vec::new(), Vec::new());
    for word in words {
        let word = word.as_ref();
        let parts: Vec<&str> = word.split(':').collect();
        match parts.as_slice() {
            ["DS", name, kind, rest @ ..] => {
                let source = source(name, kind, rest)?;
                if sources.iter().any(|other: &DataSource| other.name == source.name) {
                    return Err(wrong(format!("Duplicate DS name: {name}")));
                }
                sources.push(source);
            }
            ["DS", ..] => return Err(wrong("invalid DS format".to_owned())),
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

/// An upper bound of the archives' size in bytes for these definitions, including archives that
/// this crate does not support, with `more_sources` data sources besides those defined. Invalid
/// words count as 0: such a definition is refused elsewhere.
pub fn file_len_max<T: AsRef<str>>(step_s: u64, words: &[T], more_sources: u64) -> u64 {
    /// An archive of Holt-Winters forecasting adds four others.
    const KIN: u64 = 5;
    let words = words.iter().map(AsRef::as_ref);
    let sources = words.clone().filter(|word| word.starts_with("DS:")).count() as u64;
    let rows = words.filter_map(|word| {
        let mut parts = word.strip_prefix("RRA:")?.split(':');
        let cf = parts.next()?;
        if Cf::from_name(cf).is_none() {
            let counts = parts.filter_map(|part| count(part, step_s).ok());
            return Some(counts.max()?.saturating_mul(KIN));
        }
        let steps = count(parts.nth(1)?, step_s).ok()?;
        count(parts.next()?, step_s.saturating_mul(steps)).ok()
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

/// Number of periods of `each_s` seconds, given as a number or as a duration with a unit.
///
/// # Errors
/// librrd's message for what is wrong.
fn count(text: &str, each_s: u64) -> std::result::Result<u64, &'static str> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if digits == 0 {
        return Err("value must be (suffixed) positive number");
    }
    let value = match text[digits..].chars().next() {
        None => text.parse().ok(),
        Some(_) => seconds(text),
    };
    let value = value.ok_or("value has trailing garbage")?;
    match (value, digits == text.len()) {
        (0, _) => Err("value must be positive"),
        (value, true) => Ok(value),
        (value, false) if each_s > 0 && value % each_s == 0 => Ok(value / each_s),
        _ => Err("value would truncate when scaled"),
    }
}

fn source(name: &str, kind: &str, rest: &[&str]) -> Result<DataSource> {
    if kind == "COMPUTE" {
        return Err(Error::Unsupported("a COMPUTE data source".to_owned()));
    }
    if !is_name(name) {
        return Err(wrong("invalid DS format".to_owned()));
    }
    let kind = DsKind::from_name(kind).ok_or_else(|| wrong(format!("invalid DS type specified ({kind})")))?;
    let bad = |what: &str| wrong(format!("failed to parse data source {}: {what}", rest.join(":")));
    let (heartbeat, limits) = match rest {
        [_] | [] => return Err(bad("missing separator")),
        [heartbeat, limits @ ..] => (heartbeat, limits),
    };
    let heartbeat_s = count(heartbeat, 1).map_err(bad)?;
    let [min, max] = limits else {
        return Err(bad("failed to extract min:max"));
    };
    let limit = |text: &str, which: &str| match text {
        "U" => Ok(UNKNOWN),
        text => number(text.as_bytes()).ok_or_else(|| wrong(format!("Cannot convert '{text}' to float: {which}"))),
    };
    let (min, max) = (limit(min, "parsing min val")?, limit(max, "parsing max val")?);
    if min >= max {
        return Err(bad("min must be less than max in DS definition"));
    }
    Ok(DataSource {
        name: name.to_owned(),
        kind,
        heartbeat_s,
        min,
        max,
    })
}

fn archive(cf: &str, rest: &[&str], step_s: u64) -> Result<Archive> {
    if FORECASTS.contains(&cf) {
        return Err(Error::Unsupported(format!("a {cf} archive")));
    }
    let cf = Cf::from_name(cf).ok_or_else(|| wrong(format!("Unrecognized consolidation function {cf}")))?;
    let (xff, steps, rows) = match rest {
        [xff, steps, rows] => (xff, steps, rows),
        [_, _, _, ..] => {
            return Err(wrong(
                "an archive has an xff, steps and rows, and nothing more".to_owned(),
            ));
        }
        few => {
            return Err(wrong(format!(
                "Expected at least 4 arguments for RRA but got {}",
                few.len() + 1
            )));
        }
    };
    let xff = number(xff.as_bytes()).filter(|xff| (0.0..1.0).contains(xff));
    let xff = xff.ok_or_else(|| wrong("Invalid xff: must be between 0 and 1".to_owned()))?;
    let bad = |what: &str, text: &str, why: &str| wrong(format!("Invalid {what} {text}: {why}"));
    let per_row = count(steps, step_s).map_err(|why| bad("step", steps, why))?;
    let row_s = step_s.saturating_mul(per_row);
    let rows = count(rows, row_s).map_err(|why| bad("row count", rows, why))?;
    Ok(Archive::new(cf, xff, per_row, rows))
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
    fn invalid_definitions_are_named_in_the_error() {
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
            "Invalid step 15s: value would truncate when scaled",
        );
        assert!(define(10, &["DS:a:GAUGE:20:U:U", "RRA:MAX:0.5:1:99999999999999999999"]).is_err());
    }
}
