//! The requests of Hawkular's Python client of 2017, byte for byte.
//!
//! Its `urllib2` opens a connection for each request and says so. A GET has a body, too: the four
//! bytes `null`. Where connections are kept, the line `Connection: close` is left out, and nothing
//! else differs.

use std::fmt::Write;

/// The path of the interface.
const PREFIX: &str = "/hawkular/metrics";
/// The body of a request without data.
const NO_DATA: &str = "null";

/// Whether the connection is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// It ends with the answer, as it was.
    Closed,
    /// The next request goes over it.
    Kept,
}

/// Makes requests of one tenant.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    tenant: String,
    keeping: Keeping,
}

impl Requests {
    pub(super) fn new(tenant: &str, keeping: Keeping) -> Self {
        Self {
            tenant: tenant.to_owned(),
            keeping,
        }
    }

    pub(super) const fn keeping(&self) -> Keeping {
        self.keeping
    }

    /// Asks what the server is.
    pub(super) fn status(&self, out: &mut String) {
        self.write(out, "GET", &format!("{PREFIX}/status"), NO_DATA);
    }

    /// Writes samples: of each gauge its name, and times in milliseconds with values.
    pub(super) fn post(&self, out: &mut String, gauges: &[(&str, &[(i64, f64)])]) {
        self.write(out, "POST", &format!("{PREFIX}/gauges/raw"), &body(gauges));
    }

    /// Reads a range of milliseconds of a gauge; `limit` is left to the server where it is `None`.
    pub(super) fn get(&self, out: &mut String, gauge: &str, (start, end): (i64, i64), limit: Option<u64>) {
        let mut target = format!("{PREFIX}/gauges/{gauge}/raw?start={start}&end={end}");
        if let Some(limit) = limit {
            // Writing to a string cannot fail.
            let _ = write!(target, "&limit={limit}");
        }
        self.write(out, "GET", &target, NO_DATA);
    }

    fn write(&self, out: &mut String, method: &str, target: &str, body: &str) {
        let closing = match self.keeping {
            Keeping::Closed => "Connection: close\r\n",
            Keeping::Kept => "",
        };
        out.clear();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{method} {target} HTTP/1.1\r\nAccept-Encoding: identity\r\nContent-Length: {}\r\n\
             Hawkular-Tenant: {}\r\nUser-Agent: Python-urllib/2.7\r\n{closing}Host: localhost\r\n\
             Content-Type: application/json\r\n\r\n{body}",
            body.len(),
            self.tenant,
        );
    }
}

/// JSON as Python 2 indents it, with a blank after each comma at the end of a line.
fn body(gauges: &[(&str, &[(i64, f64)])]) -> String {
    let mut out = String::from("[");
    for (number, (gauge, samples)) in gauges.iter().enumerate() {
        out.push_str(if number == 0 { "\n" } else { ", \n" });
        out.push_str("  {\n    \"data\": [");
        for (number, (at, value)) in samples.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "{comma}\n      {{\n        \"timestamp\": {at}, \n        \"value\": {value:?}, \n        \
                 \"tags\": {{}}\n      }}"
            );
        }
        // Writing to a string cannot fail.
        let _ = write!(out, "\n    ], \n    \"id\": \"{gauge}\"\n  }}");
    }
    out.push_str("\n]");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_original_client() {
        let mut out = String::new();
        let requests = Requests::new("python_test", Keeping::Closed);
        requests.get(&mut out, "example.doc.1", (1_498_595_715_000, 1_498_595_805_000), None);
        assert_eq!(
            out,
            "GET /hawkular/metrics/gauges/example.doc.1/raw?start=1498595715000&end=1498595805000 HTTP/1.1\r\n\
             Accept-Encoding: identity\r\nContent-Length: 4\r\nHawkular-Tenant: python_test\r\n\
             User-Agent: Python-urllib/2.7\r\nConnection: close\r\nHost: localhost\r\n\
             Content-Type: application/json\r\n\r\nnull"
        );
        requests.post(&mut out, &[("example.doc.1", &[(1_498_595_805_000, 53.27)])]);
        let (head, body) = out.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("POST /hawkular/metrics/gauges/raw HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(
            head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())),
            "{head}"
        );
        assert_eq!(
            body,
            "[\n  {\n    \"data\": [\n      {\n        \"timestamp\": 1498595805000, \n        \"value\": 53.27, \n        \
             \"tags\": {}\n      }\n    ], \n    \"id\": \"example.doc.1\"\n  }\n]"
        );
        requests.status(&mut out);
        assert!(out.starts_with("GET /hawkular/metrics/status HTTP/1.1\r\n") && out.ends_with("\r\n\r\nnull"));
    }

    #[test]
    fn a_kept_connection_differs_by_one_line_and_a_batch_is_json() {
        let requests = Requests::new("t", Keeping::Kept);
        let mut out = String::new();
        requests.post(&mut out, &[("a", &[(1, 2.0), (2, 3.5)]), ("b", &[(1, 0.0)])]);
        assert!(!out.contains("Connection:"), "{out}");
        let (_, body) = out.split_once("\r\n\r\n").unwrap();
        let parsed: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(parsed[0]["data"][1]["value"], 3.5);
        assert_eq!(
            parsed[1],
            serde_json::json!({"id": "b", "data": [{"timestamp": 1, "value": 0.0, "tags": {}}]})
        );
    }
}
