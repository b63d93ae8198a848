//! Bodies of requests: samples, queries and tags.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::behaviour::{HawkularOptions, Problem};

/// Maximum number of objects in a body of samples: each takes more memory than text.
const MAX_OBJECTS: usize = 1_000_000;

/// Maximum length of a body that is a query or has tags, in bytes.
const MAX_QUERY: usize = 1 << 20;

const NOT_JSON: &str = "a body is not JSON of the expected form";

/// The samples of one metric.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    pub(super) id: Option<String>,
    pub(super) data: Option<Vec<Point>>,
}

/// One sample.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Point {
    #[serde(default)]
    pub(super) timestamp: Scalar,
    #[serde(default)]
    pub(super) value: Scalar,
}

/// A number in JSON, or in a string of JSON as Go's `json.Number` accepts it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Scalar {
    Integer(i64),
    Float(f64),
    /// No number, of which Mohawk makes a 0.
    #[default]
    None,
    /// No number and no string.
    Other,
}

impl Scalar {
    /// As milliseconds: only integers are.
    pub(super) fn millis(self) -> Option<i64> {
        match self {
            Self::Integer(millis) => Some(millis),
            _ => None,
        }
    }

    pub(super) fn value(self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    fn read(text: &str) -> Self {
        let integer = text.parse().map(Self::Integer);
        let float = || text.parse::<f64>().ok().filter(|value| value.is_finite());
        integer.unwrap_or_else(|_| float().map_or(Self::None, Self::Float))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(i64::try_from(value).map_or(Scalar::Float(value as f64), Scalar::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::read(text))
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Scalar, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Scalar, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

/// A query for several metrics. Times may be numbers, or text with a unit.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DataQuery {
    pub(super) ids: Option<Vec<String>>,
    pub(super) tags: Option<String>,
    pub(super) start: Option<Word>,
    pub(super) end: Option<Word>,
    pub(super) limit: Option<Word>,
    pub(super) order: Option<String>,
    pub(super) bucket_duration: Option<Word>,
}

/// A number or a string, as text.
#[derive(Debug)]
pub(super) struct Word(pub(super) String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl Visitor<'_> for Words {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a string")
            }

            fn visit_i64<E>(self, value: i64) -> Result<Word, E> {
                Ok(Word(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Word, E> {
                Ok(Word(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Word, E> {
                Ok(Word(value.to_string()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Word, E> {
                Ok(Word(text.to_owned()))
            }
        }

        deserializer.deserialize_any(Words)
    }
}

/// The tags of one metric.
pub(super) type Tags = BTreeMap<String, String>;

/// The tags of one metric of a list.
#[derive(Debug, Deserialize)]
pub(super) struct TaggedItem {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) tags: Tags,
}

/// Parses samples. What Mohawk makes of numbers that are none is not decided here.
pub(super) fn samples(bytes: &[u8], options: HawkularOptions) -> Result<Vec<Item>, Problem> {
    if memchr::memchr_iter(b'{', bytes).nth(MAX_OBJECTS).is_some() {
        return Err(Problem::TooLarge("a body has more than 1,000,000 objects"));
    }
    Ok(parse::<Option<Vec<Item>>>(bytes, options)?.unwrap_or_default())
}

/// Parses a query or tags.
pub(super) fn small<T: DeserializeOwned>(bytes: &[u8], options: HawkularOptions) -> Result<T, Problem> {
    if bytes.len() > MAX_QUERY {
        return Err(Problem::TooLarge("a body that is no samples is longer than 1 MiB"));
    }
    parse(bytes, options)
}

/// As in Go's decoder, what follows the value is not read; the corrected server refuses it.
fn parse<T: DeserializeOwned>(bytes: &[u8], options: HawkularOptions) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = T::deserialize(&mut json).and_then(|value| {
        if options.is_corrected() {
            json.end()?;
        }
        Ok(value)
    });
    parsed.map_err(|error| Problem::unreadable(NOT_JSON, &error.to_string()))
}
