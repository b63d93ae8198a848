//! Results as JSON, in the form of Go's encoder, up to the maximum length of an answer.

use std::fmt::Write;

use super::behaviour::Problem;
use super::buckets::Bucket;
use super::data::Item;
use super::metrics::Metric;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 25_000_000;

/// Text that grows up to the maximum length.
#[derive(Debug, Default)]
pub(super) struct Json(String);

impl Json {
    pub(super) fn finish(self) -> String {
        self.0
    }

    pub(super) fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// A string, quoted.
    pub(super) fn string(&mut self, text: &str) {
        let _ = write!(self.0, "{}", serde_json::Value::from(text));
    }

    /// Elements with commas between them.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.raw(",");
            }
            write(self, item)?;
            if self.0.len() > MAX_ANSWER {
                return Err(Problem::TooLarge(
                    "an answer is longer than 25,000,000 bytes: ask for a shorter range or fewer metrics",
                ));
            }
        }
        Ok(())
    }

    pub(super) fn items(&mut self, items: &[Item]) -> Result<(), Problem> {
        self.raw("[");
        self.list(items, |json, item| {
            json.item(*item);
            Ok(())
        })?;
        self.raw("]");
        Ok(())
    }

    fn item(&mut self, (at, value): Item) {
        let _ = write!(self.0, "{{\"timestamp\":{at},\"value\":");
        self.number(value);
        self.raw("}");
    }

    /// A number as Go writes it; what JSON does not have is a string, as in Java's Jackson.
    fn number(&mut self, value: f64) {
        let size = value.abs();
        let _ = if value.is_nan() {
            write!(self.0, "\"NaN\"")
        } else if value.is_infinite() {
            write!(self.0, "\"{}Infinity\"", if value < 0.0 { "-" } else { "" })
        } else if size >= 1e21 {
            write!(self.0, "{}", format!("{value:e}").replace('e', "e+"))
        } else if size > 0.0 && size < 1e-6 {
            write!(self.0, "{value:e}")
        } else {
            write!(self.0, "{value}")
        };
    }

    pub(super) fn buckets(&mut self, buckets: &[Bucket]) -> Result<(), Problem> {
        self.raw("[");
        self.list(buckets, |json, bucket| {
            json.bucket(bucket);
            Ok(())
        })?;
        self.raw("]");
        Ok(())
    }

    fn bucket(&mut self, bucket: &Bucket) {
        let Bucket {
            start, end, is_empty, ..
        } = bucket;
        let _ = write!(self.0, "{{\"start\":{start},\"end\":{end},\"empty\":{is_empty}");
        if bucket.samples > 0 {
            let _ = write!(self.0, ",\"samples\":{}", bucket.samples);
        }
        let statistics = [
            ("min", bucket.min),
            ("max", bucket.max),
            ("first", bucket.first),
            ("last", bucket.last),
            ("avg", bucket.avg),
            ("median", bucket.median),
            ("std", bucket.std),
            ("sum", bucket.sum),
        ];
        for (name, value) in statistics {
            if value != 0.0 {
                let _ = write!(self.0, ",\"{name}\":");
                self.number(value);
            }
        }
        self.raw("}");
    }

    pub(super) fn metrics(&mut self, metrics: &[Metric]) -> Result<(), Problem> {
        self.raw("[");
        self.list(metrics, |json, metric| {
            json.raw("{\"id\":");
            json.string(&metric.id);
            json.raw(",\"type\":\"gauge\",\"tags\":{");
            json.list(&metric.tags, |json, (name, value)| {
                json.string(name);
                json.raw(":");
                json.string(value);
                Ok(())
            })?;
            json.raw("}");
            if let Some(last) = metric.last {
                json.raw(",\"data\":[");
                json.item(last);
                json.raw("]");
            }
            json.raw("}");
            Ok(())
        })?;
        self.raw("]");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let text = |value| {
            let mut json = Json::default();
            json.number(value);
            json.finish()
        };
        for (value, expected) in [
            (53.0, "53"),
            (53.27, "53.27"),
            (-0.5, "-0.5"),
            (0.0, "0"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-2.5e22, "-2.5e+22"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (f64::NAN, "\"NaN\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn an_answer_has_a_maximum_length() {
        let items = vec![(1_498_595_805_000, 0.123_456_789); 600_000];
        let problem = Json::default().items(&items).unwrap_err();
        assert!(matches!(problem, Problem::TooLarge(_)));
    }
}
