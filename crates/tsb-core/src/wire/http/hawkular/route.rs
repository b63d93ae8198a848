//! From a method and a path to what is asked.

use super::super::query::decoded;
use super::behaviour::{HawkularOptions, Problem};

const PREFIX: &str = "/hawkular/metrics/";

/// What a request asks for. Ids and tags are decoded, and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Status,
    Tenants,
    Metrics,
    /// The last values in Prometheus' text format.
    Exports,
    /// Data of one metric; `is_stats`: the path ends in `stats`.
    Read {
        id: String,
        is_stats: bool,
    },
    Write,
    /// Data of several metrics; `is_keyed`: as one object by their ids.
    Query {
        is_keyed: bool,
    },
    PutTags {
        id: String,
    },
    PutAllTags,
    Delete {
        id: String,
    },
    DeleteTags {
        id: String,
        tags: String,
    },
    Options,
}

impl Route {
    /// The route of a request. As in Mohawk, one slash at the end is ignored, and a segment with a
    /// bad escape is empty.
    pub(super) fn find(method: &str, path: &str, options: HawkularOptions) -> Result<Self, Problem> {
        let rest = path.strip_prefix(PREFIX).ok_or(Problem::NoPage)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let segments: Vec<&str> = rest.splitn(5, '/').collect();
        let is_new = options.is_head() || options.is_corrected();
        let found = match segments.as_slice() {
            ["gauges", rest @ ..] => gauges(method, rest, is_new),
            ["counters", rest @ ..] if method != "DELETE" && method != "OPTIONS" => {
                gauges(method, rest, is_new).filter(|route| *route != Self::PutAllTags)
            }
            ["availability", rest @ ..] if method == "GET" && rest.last() != Some(&"data") => {
                gauges(method, rest, is_new)
            }
            ["m", "stats", "query"] if is_new => match method {
                "POST" => Some(Self::Query { is_keyed: true }),
                "OPTIONS" => Some(Self::Options),
                _ => None,
            },
            [one] if method == "GET" => match *one {
                "status" => Some(Self::Status),
                "tenants" => Some(Self::Tenants),
                "metrics" => Some(Self::Metrics),
                "exports" if is_new => Some(Self::Exports),
                _ => None,
            },
            _ => None,
        };
        let route = found.ok_or(Problem::NoPage)?;
        route.check(options)?;
        Ok(route)
    }

    fn check(&self, options: HawkularOptions) -> Result<(), Problem> {
        let texts: &[&String] = match self {
            Self::Read { id, .. } | Self::PutTags { id } | Self::Delete { id } => &[id],
            Self::DeleteTags { id, tags } => &[id, tags],
            _ => &[],
        };
        let is_good = |text: &&String| is_allowed(text, options) && !(options.is_corrected() && text.is_empty());
        let is_good = texts.iter().all(is_good);
        is_good.then_some(()).ok_or(Problem::BadId { is_post: false })
    }
}

fn gauges(method: &str, segments: &[&str], is_new: bool) -> Option<Route> {
    Some(match (method, segments) {
        ("GET", [id, "raw" | "data"]) => Route::Read {
            id: segment(id),
            is_stats: false,
        },
        ("GET", [id, "stats"]) => Route::Read {
            id: segment(id),
            is_stats: true,
        },
        ("POST", ["raw" | "data"]) => Route::Write,
        ("POST", ["raw", "query"]) => Route::Query { is_keyed: false },
        ("POST", ["stats", "query"]) if is_new => Route::Query { is_keyed: false },
        ("PUT", ["tags"]) if is_new => Route::PutAllTags,
        ("PUT", [id, "tags"]) => Route::PutTags { id: segment(id) },
        ("DELETE", [id, "raw"]) => Route::Delete { id: segment(id) },
        ("DELETE", [id, "tags", tags]) => Route::DeleteTags {
            id: segment(id),
            tags: segment(tags),
        },
        ("OPTIONS", ["raw" | "data"] | [_, "raw" | "stats" | "data" | "query"]) if is_new => Route::Options,
        _ => return None,
    })
}

/// A segment of a path, decoded.
fn segment(text: &str) -> String {
    let mut escapes = text.split('%');
    escapes.next();
    let is_escape = |part: &str| {
        let code = part.as_bytes().get(..2);
        code.is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
    };
    if escapes.all(is_escape) {
        decoded(text)
    } else {
        String::new()
    }
}

/// Maximum length of an id or a tag, in bytes: the head of a request has no room for longer ones.
const MAX_TEXT: usize = 16 << 10;

/// Whether an id or a tag has only allowed characters.
pub(super) fn is_allowed(text: &str, options: HawkularOptions) -> bool {
    text.len() <= MAX_TEXT
        && text.bytes().all(|byte| {
            byte.is_ascii_alphanumeric()
                || b" _,|:/[]().+*-".contains(&byte)
                || (byte == b'@' && (options.is_head() || options.is_corrected()))
        })
}
