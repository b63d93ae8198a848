//! Checks whether an update would be accepted, without applying it.

use crate::error::{Error, Result};
use crate::layout::{DsKind, Layout};
use crate::number::number;
use crate::parse::{Moment, moment, split_time};
use crate::update::{check_count, check_integer};

/// The time of an update, `time:value[:value...]`, if a file of this layout would accept it.
///
/// Does not check that the update is later than the file's last one. It is stricter than an update
/// in one respect: librrd does not parse a value that comes after the heartbeat.
///
/// # Errors
/// [`Error::InvalidUpdate`] for a wrong number of values, or a value that is not valid for its data
/// source; [`Error::Unsupported`] for times that need a clock.
pub fn check(layout: &Layout, text: &str) -> Result<Moment> {
    check_plain(layout, text).map_or_else(|| check_any(layout, text), Ok)
}

/// The same check for the common form: whole seconds, and values of digits with or without a
/// decimal point. `None` if the update has another form; it may still be valid.
pub fn check_plain(layout: &Layout, text: &str) -> Option<Moment> {
    check_bytes(layout, text.as_bytes())
}

fn check_any(layout: &Layout, text: &str) -> Result<Moment> {
    let (time, values) = split_time(text)?;
    check_count(layout, values, text)?;
    let at = moment(time)?;
    for (source, value) in layout.sources.iter().zip(values.split(':')) {
        check_value(source.kind, value)?;
    }
    Ok(at)
}

fn check_bytes(layout: &Layout, text: &[u8]) -> Option<Moment> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Numbers of up to 15 digits are exact as a float too.
    if !(1..=15).contains(&length) || text.get(length) != Some(&b':') {
        return None;
    }
    let (time, values) = (&text[..length], &text[length + 1..]);
    let mut values = values.split(|&byte| byte == b':');
    let mut sources = layout.sources.iter();
    let are_plain = sources.all(|source| values.next().is_some_and(|value| is_plain(source.kind, value)));
    let seconds = time.iter().fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0'));
    (are_plain && values.next().is_none()).then_some(Moment::from_secs(seconds))
}

fn is_plain(kind: DsKind, value: &[u8]) -> bool {
    // Short enough that the exponent stays far from librrd's lower bound.
    const LENGTH_MAX: usize = 100;
    let digits = value
        .strip_prefix(b"-")
        .filter(|_| kind != DsKind::Counter)
        .unwrap_or(value);
    let points = usize::from(!matches!(kind, DsKind::Counter | DsKind::Derive));
    let mut found = 0;
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {}
            b'.' => found += 1,
            _ => return value == b"U",
        }
    }
    found <= points && (found + 1..LENGTH_MAX).contains(&digits.len())
}

fn check_value(kind: DsKind, value: &str) -> Result<()> {
    if value.starts_with('U') {
        return Ok(());
    }
    match kind {
        DsKind::Counter | DsKind::Derive => check_integer(kind, value),
        _ if number(value.as_bytes()).is_some() => Ok(()),
        _ => Err(Error::InvalidUpdate {
            text: value.to_owned(),
            what: "not a number",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Archive, Cf, DataSource};

    #[test]
    fn an_update_is_checked_against_the_layout() {
        let sources = vec![
            DataSource::new("a", DsKind::Gauge, 20),
            DataSource::new("b", DsKind::Counter, 20),
        ];
        let layout = Layout::new(10, sources, vec![Archive::new(Cf::Average, 0.5, 1, 10)]).unwrap();
        let at = check(&layout, "1700000000.5:1.25:7").unwrap();
        assert_eq!((at.seconds, at.micros), (1_700_000_000, 500_000));
        assert!(check(&layout, "1700000000:U:U").is_ok());
        for bad in [
            "",
            "1700000000",
            "1700000000:1",
            "1700000000:1:2:3",
            "1700000000:x:2",
            "1700000000::2",
            "1700000000:1:2.5",
            "1700000000:1:-2",
            "N:1:2",
            "x:1:2",
            "-5:1:2",
        ] {
            assert!(check(&layout, bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_check_of_the_common_form_agrees_with_the_full_one(
            kinds in proptest::collection::vec(0_usize..6, 1..4),
            text in "[0-9]{0,16}(:[-U]?[0-9]{0,3}[.e]?[0-9]{0,3}){0,4}[.:@]?",
        ) {
            use DsKind::{Absolute, Counter, DCounter, DDerive, Derive, Gauge};
            let of = [Gauge, Counter, Derive, Absolute, DCounter, DDerive];
            let sources = kinds.iter().enumerate().map(|(index, &kind)| DataSource::new(format!("s{index}"), of[kind], 20));
            let layout = Layout::new(10, sources.collect(), vec![Archive::new(Cf::Average, 0.5, 1, 10)]).unwrap();
            if let Some(at) = check_bytes(&layout, text.as_bytes()) {
                proptest::prop_assert_eq!(check_any(&layout, &text).unwrap(), at);
            }
        }
    }
}
