//! What an answer says: rows of a query, and what became of the lines of a write.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tsb_stores::store::Reason;

/// A part of an answer to queries.
#[derive(Debug, Deserialize)]
#[serde(bound = "V: DeserializeOwned")]
pub(super) struct Reply<V> {
    #[serde(default = "Vec::new")]
    pub(super) results: Vec<StatementResult<V>>,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// Rows of one statement.
#[derive(Debug, Deserialize)]
#[serde(bound = "V: DeserializeOwned")]
pub(super) struct StatementResult<V> {
    #[serde(default)]
    pub(super) statement_id: usize,
    #[serde(default = "Vec::new")]
    pub(super) series: Vec<Rows<V>>,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// Rows of one series.
#[derive(Debug, Deserialize)]
#[serde(bound = "V: DeserializeOwned")]
pub(super) struct Rows<V> {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) tags: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) columns: Vec<String>,
    #[serde(default = "Vec::new")]
    pub(super) values: Vec<V>,
}

impl<V> Reply<V> {
    /// The first error in it.
    pub(super) fn failure(&self) -> Option<&str> {
        let of_statements = self.results.iter().find_map(|result| result.error.as_deref());
        self.error.as_deref().or(of_statements)
    }
}

/// What became of the lines of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// All are in the write-ahead log.
    Taken,
    /// None was taken.
    Refused(Reason),
    /// Some were taken, and some were not.
    Partly(Reason),
    /// The answer leaves it open.
    Open,
}

/// What an answer to a write says, with the error of its body.
pub(super) fn fate(status: u16, body: &[u8], lines: usize) -> Fate {
    let said: Option<Reply<()>> = serde_json::from_slice(body).ok();
    let text = said.and_then(|reply| reply.error).unwrap_or_default();
    match status {
        204 => Fate::Taken,
        400 if text.starts_with("partial write") => {
            let dropped = text
                .rsplit_once("dropped=")
                .and_then(|(_, count)| count.trim().parse().ok());
            let reason = reason_of(&text);
            if dropped == Some(lines) || lines == 1 {
                Fate::Refused(reason)
            } else {
                Fate::Partly(reason)
            }
        }
        // 400: no line can be read; 413: it is too long; 429 and 503: the server has no room.
        400 | 413 => Fate::Refused(reason_of(&text)),
        429 | 503 => Fate::Refused(Reason::Refused),
        500 if text.contains("cache-max-memory-size exceeded") => Fate::Refused(Reason::Full),
        _ => Fate::Open,
    }
}

/// The reason for a refusal, from the server's words.
fn reason_of(text: &str) -> Reason {
    let words = [
        ("beyond retention policy", Reason::Expired),
        ("max-series-per-database limit exceeded", Reason::Full),
        ("max-values-per-tag limit exceeded", Reason::Full),
        ("unable to parse", Reason::Unrepresentable),
    ];
    let found = words.iter().find(|(words, _)| text.contains(words));
    found.map_or(Reason::Refused, |(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_to_a_write_has_its_meaning() {
        let error = |text: &str| serde_json::json!({ "error": text }).to_string();
        let partial = |why: &str, dropped: usize| error(&format!("partial write: {why} dropped={dropped}"));
        for (status, body, expected) in [
            (204, String::new(), Fate::Taken),
            (
                400,
                partial("points beyond retention policy", 3),
                Fate::Refused(Reason::Expired),
            ),
            (
                400,
                partial("points beyond retention policy", 2),
                Fate::Partly(Reason::Expired),
            ),
            (
                400,
                partial("max-series-per-database limit exceeded: (9)", 1),
                Fate::Partly(Reason::Full),
            ),
            (
                400,
                partial("unable to parse 'a': invalid number", 0),
                Fate::Partly(Reason::Unrepresentable),
            ),
            (
                400,
                partial("field type conflict: a \"b\"", 3),
                Fate::Refused(Reason::Refused),
            ),
            (
                400,
                error("unable to parse 'a': missing fields"),
                Fate::Refused(Reason::Unrepresentable),
            ),
            (413, error("Request Entity Too Large"), Fate::Refused(Reason::Refused)),
            (503, "busy".to_owned(), Fate::Refused(Reason::Refused)),
            (
                500,
                error("engine: cache-max-memory-size exceeded: (9/8)"),
                Fate::Refused(Reason::Full),
            ),
            (500, error("timeout"), Fate::Open),
            (200, "garbage".to_owned(), Fate::Open),
        ] {
            assert_eq!(fate(status, body.as_bytes(), 3), expected, "{status} {body}");
        }
        let one = partial("unable to parse 'a': invalid number", 0);
        assert_eq!(fate(400, one.as_bytes(), 1), Fate::Refused(Reason::Unrepresentable));
    }

    #[test]
    fn rows_and_errors_are_read() {
        let text = r#"{"results":[{"statement_id":1,"series":[{"name":"a","tags":{"b":""},"columns":["time","value"],"values":[[-7,-0],[8,1e300]],"partial":true}],"partial":true}]}"#;
        let reply: Reply<(i64, f64)> = serde_json::from_str(text).unwrap();
        let result = &reply.results[0];
        assert_eq!((result.statement_id, reply.failure()), (1, None));
        assert_eq!(result.series[0].values, [(-7, 0.0), (8, 1e300)]);
        assert!(result.series[0].values[0].1.is_sign_negative());
        let failed: Reply<(i64, f64)> =
            serde_json::from_str(r#"{"results":[{"error":"database not found: x"}]}"#).unwrap();
        assert_eq!(failed.failure(), Some("database not found: x"));
    }
}
