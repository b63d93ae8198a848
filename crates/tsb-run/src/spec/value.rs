//! Option values: durations, sizes and counts, with their forms and ranges.

use std::borrow::Cow;
#[cfg(any(feature = "etcd", feature = "http", feature = "mongo", feature = "postgres"))]
use std::path::PathBuf;
#[cfg(any(feature = "client", feature = "dalmatiner", feature = "exec"))]
use std::time::Duration;

use super::StoreInfo;
use tsb_stores::error::{Error, Result};
use tsb_stores::secret::Credentials;

/// The form of an option's value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A length of time: `30s`, `7d`, `1h30m`, in [1 ns, 292 years].
    Duration,
    /// A size: `4GiB`, `500MB`, `4096`, in [0, 2^64) bytes.
    Bytes,
    /// A whole number, 1 or more: `1000000`, `1_000_000`, `54k`, `1M`.
    Count,
    /// A whole number, 0 included.
    Number,
    /// An interval: `each`, or a length of time.
    Interval,
    /// One of some words.
    Word(&'static [&'static str]),
    /// Text with a check by the store, and a description of its form.
    Checked(&'static str, fn(&str) -> bool),
}

impl Kind {
    /// The form of the value, for tables and errors.
    pub fn form(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Word(words) => return format!("one of {}", words.join(", ")).into(),
            Self::Interval => "each, or a duration such as 100ms, 1s",
            Self::Duration => "a duration such as 30s, 7d, 1h30m",
            Self::Bytes => "a size such as 4GiB, 500MB, 4096",
            Self::Count => "a whole number from 1, such as 1000000, 54k, 1M",
            Self::Number => "a whole number from 0",
            Self::Checked(form, _) => form,
        })
    }

    /// Checks that `text` has this form; the error says what is wrong.
    pub(super) fn check(self, text: &str) -> std::result::Result<(), String> {
        let is_valid = match self {
            Self::Duration => parse_duration_ns(text).is_some(),
            Self::Bytes => parse_bytes(text).is_some(),
            Self::Count => parse_count(text).is_some_and(|count| count > 0),
            Self::Number => parse_count(text).is_some(),
            Self::Interval => parse_interval_ns(text).is_some(),
            Self::Word(words) => words.contains(&text),
            Self::Checked(_, is_known) => is_known(text),
        };
        if is_valid {
            Ok(())
        } else {
            Err(format!("{text:?} is not {}", self.form()))
        }
    }
}

/// Nanoseconds of `30s`, `7d`, `1h30m`, `250ms`; the units are ns, us, ms, s, m, h, d, w. `None`
/// for any other text, the empty text, and values beyond `i64`.
pub fn parse_duration_ns(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
        ("w", 604_800_000_000_000),
    ];
    let mut total = 0_i64;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let (_, unit_ns) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(*unit_ns)?)?;
        rest = after;
    }
    Some(total).filter(|&total| total > 0)
}

/// Nanoseconds of an interval; 0 for `each`.
fn parse_interval_ns(text: &str) -> Option<i64> {
    if text == "each" {
        Some(0)
    } else {
        parse_duration_ns(text)
    }
}

/// Bytes of `4GiB`, `500MB`, `4096`, `64k`: B, kB/KB/MB/GB/TB by 1000, KiB/MiB/GiB/TiB by 1024.
pub fn parse_bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 11] = [
        ("", 1),
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ];
    scaled(text, &UNITS)
}

/// A whole number: `1000`, `1_000`, `54k`, `1M`, `2G`.
pub fn parse_count(text: &str) -> Option<u64> {
    scaled(text, &[("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)])
}

/// Parses digits, with underscores between them, followed by a unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.replace('_', "").parse::<u64>().ok()?.checked_mul(*factor)
}

/// The option values of one layer, with the defaults of the table.
pub(crate) struct Values<'a> {
    given: &'a [(String, String)],
    info: &'static StoreInfo,
    #[cfg_attr(
        not(feature = "client"),
        expect(dead_code, reason = "only clients of servers take them")
    )]
    credentials: Option<&'a Credentials>,
}

impl<'a> Values<'a> {
    pub(super) fn new(given: &'a [(String, String)], info: &'static StoreInfo) -> Self {
        Self {
            given,
            info,
            credentials: None,
        }
    }

    /// The same values with the credentials of the address.
    pub(super) fn with_credentials(self, credentials: Option<&'a Credentials>) -> Self {
        Self { credentials, ..self }
    }

    /// The credentials of the address, or otherwise those in the file that the option
    /// `credentials` names.
    #[cfg(feature = "client")]
    pub(crate) fn credentials(&self) -> Result<Option<Credentials>> {
        match (self.credentials, self.word("credentials")?) {
            (Some(_), Some(_)) => Err(Error::Spec {
                spec: format!("{}:", self.info.scheme),
                what: "credentials stand in the address, and option credentials names others: leave one of them out"
                    .to_owned(),
            }),
            (Some(credentials), None) => Ok(Some(credentials.clone())),
            (None, Some(file)) => Credentials::read(&file).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Nanoseconds; `None` if the option has neither a value nor a default.
    pub(crate) fn duration_ns(&self, name: &str) -> Result<Option<i64>> {
        self.get(name, parse_duration_ns)
    }

    /// Bytes; `None` if the option has neither a value nor a default.
    pub(crate) fn bytes(&self, name: &str) -> Result<Option<u64>> {
        self.get(name, parse_bytes)
    }

    /// A count or number; `None` if the option has neither a value nor a default.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>> {
        self.get(name, parse_count)
    }

    /// A count of things in memory; `default` if the option has neither a value nor a default.
    pub(crate) fn usize_or(&self, name: &str, default: usize) -> Result<usize> {
        Ok(self.count(name)?.map_or(default, |count| count as usize))
    }

    /// A length of time; `default` if the option has neither a value nor a default.
    #[cfg(any(feature = "client", feature = "dalmatiner", feature = "exec"))]
    pub(crate) fn duration_or(&self, name: &str, default: Duration) -> Result<Duration> {
        let nanos = self.duration_ns(name)?;
        Ok(nanos.map_or(default, |nanos| Duration::from_nanos(nanos as u64)))
    }

    /// Whether an option of the values 0 and 1 is 1.
    #[cfg(feature = "client")]
    pub(crate) fn is_on(&self, name: &str) -> Result<bool> {
        Ok(self.word(name)?.as_deref() == Some("1"))
    }

    /// Whether the option `tls` is on, and the certificates of the option `tls_ca`, if there are any.
    ///
    /// # Errors
    /// [`Error::Spec`] for certificates to trust without TLS.
    #[cfg(any(feature = "etcd", feature = "http", feature = "mongo", feature = "postgres"))]
    pub(crate) fn tls(&self) -> Result<(bool, Option<PathBuf>)> {
        let (is_on, authority) = (self.is_on("tls")?, self.word("tls_ca")?);
        if authority.is_some() && !is_on {
            return Err(Error::Spec {
                spec: "tls_ca".to_owned(),
                what: "it has no effect without tls=1".to_owned(),
            });
        }
        Ok((is_on, authority.map(Into::into)))
    }

    /// The interval in nanoseconds, 0 for `each`; `None` if the option has neither a value nor a
    /// default.
    #[cfg(feature = "sqlite")]
    pub(crate) fn interval_ns(&self, name: &str) -> Result<Option<i64>> {
        self.get(name, parse_interval_ns)
    }

    /// A word; `None` if the option has neither a value nor a default.
    pub(crate) fn word(&self, name: &str) -> Result<Option<String>> {
        self.get(name, |text| Some(text.to_owned()))
    }

    fn get<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let given = self.given.iter().find(|(option, _)| option == name);
        let default = self.info.options.iter().find(|option| option.name == name);
        let text = given.map(|(_, value)| value.as_str());
        match text.or_else(|| default.and_then(|option| option.default)) {
            None => Ok(None),
            Some(text) => parse(text).map(Some).ok_or_else(|| Error::Spec {
                spec: format!("{}:", self.info.scheme),
                what: format!("option {name}: {text:?} cannot be read"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, expected) in [
            ("30s", Some(30_000_000_000)),
            ("7d", Some(604_800_000_000_000)),
            ("1w", Some(604_800_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("250ms", Some(250_000_000)),
            ("5us", Some(5_000)),
            ("1ns", Some(1)),
            ("0s", None),
            ("", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("1 s", None),
            ("1y", None),
            ("99999999999w", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(parse_duration_ns(text), expected, "{text:?}");
        }
    }

    #[test]
    fn sizes_and_counts_scale() {
        for (text, expected) in [
            ("4GiB", Some(4 << 30)),
            ("500MB", Some(500_000_000)),
            ("4096", Some(4096)),
            ("0", Some(0)),
            ("1KiB", Some(1024)),
            ("4gib", None),
            ("GiB", None),
            ("-1", None),
            ("17000000TiB", None),
        ] {
            assert_eq!(parse_bytes(text), expected, "{text:?}");
        }
        assert_eq!(parse_count("1_000_000"), Some(1_000_000));
        assert_eq!(parse_count("54k"), Some(54_000));
        assert_eq!(parse_count("_1"), None);
        assert_eq!(parse_count("1.5k"), None);
        assert!(Kind::Count.check("0").is_err() && Kind::Number.check("0").is_ok());
    }
}
