//! Which server is answered like, and how its errors read.

use super::super::outcome::Response;

/// The server whose answers a listener gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// Mohawk 0.15.4, which the published benchmark measured.
    #[default]
    Mohawk0154,
    /// Mohawk 0.33.3, its last version.
    Head,
    /// What Hawkular's own interface says where Mohawk differs: errors are 400, empty results 204,
    /// and times are exact.
    Corrected,
}

impl Behaviour {
    /// All behaviours.
    pub const ALL: [Self; 3] = [Self::Mohawk0154, Self::Head, Self::Corrected];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mohawk0154 => "0.15.4",
            Self::Head => "head",
            Self::Corrected => "corrected",
        }
    }
}

/// The backend of Mohawk whose answers are given: they differ in ranges, order and statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Slots in memory. A read creates its series.
    #[default]
    Memory,
    /// SQLite: ranges exclude their start and include their end in 0.15.4.
    Sqlite3,
    /// MongoDB: raw data comes in the other order in 0.15.4.
    Mongo,
}

impl Backend {
    /// All backends.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Sqlite3, Self::Mongo];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite3 => "sqlite3",
            Self::Mongo => "mongo",
        }
    }

    /// The name in the status.
    const fn title(self) -> &'static str {
        match self {
            Self::Memory => "Memory",
            Self::Sqlite3 => "Sqlite3",
            Self::Mongo => "Mongo",
        }
    }
}

/// How a listener answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HawkularOptions {
    /// The server.
    pub behaviour: Behaviour,
    /// Its backend; means nothing to [`Behaviour::Corrected`].
    pub backend: Backend,
}

impl HawkularOptions {
    pub(super) fn is(self, behaviour: Behaviour, backend: Backend) -> bool {
        self.behaviour == behaviour && self.backend == backend
    }

    pub(super) fn is_corrected(self) -> bool {
        self.behaviour == Behaviour::Corrected
    }

    pub(super) fn is_head(self) -> bool {
        self.behaviour == Behaviour::Head
    }

    /// The answer to a request for the status.
    pub(super) fn status(self) -> Response {
        let title = self.backend.title();
        let (version, backend) = match self.behaviour {
            Behaviour::Mohawk0154 => ("0.15.4", format!(r#","MohawkBackend":"Backend-{title}""#)),
            Behaviour::Head => ("0.33.3", format!(r#","MohawkStorage":"Storage-{title}""#)),
            Behaviour::Corrected => ("0.33.3", String::new()),
        };
        self.json(format!(
            "{{\"MetricsService\":\"STARTED\",\"Implementation-Version\":\"0.21.0\",\"MohawkVersion\":\"{version}\"{backend}}}\n"
        ))
    }

    /// A successful answer in JSON.
    pub(super) fn json(self, body: impl Into<Vec<u8>>) -> Response {
        self.finish(Response::new(200, body))
    }

    /// Adds the header lines that the server sends with each answer.
    pub(super) fn finish(self, mut response: Response) -> Response {
        if self.is_head() {
            response.fields.push_str(
                "Access-Control-Allow-Origin: *\r\n\
                 Access-Control-Allow-Headers: authorization,content-type,hawkular-tenant\r\n\
                 Access-Control-Allow-Methods: GET, POST, DELETE, PUT\r\n",
            );
        }
        response
    }

    /// The answer that says why there is none.
    pub(super) fn error(self, problem: &Problem) -> Response {
        let message = problem.message();
        let mut response = match self.behaviour {
            Behaviour::Mohawk0154 => old_error(problem, &message),
            Behaviour::Head if matches!(problem, Problem::NoPage) => {
                Response::new(404, r#"{"error":"404","message":"Page not found - 404"}"#)
            }
            Behaviour::Head => {
                let message = serde_json::Value::from(message);
                Response::new(500, format!(r#"{{"code":500,"message":{message}}}"#))
            }
            Behaviour::Corrected => {
                let message = serde_json::Value::from(message);
                Response::new(problem.status(), format!(r#"{{"errorMsg":{message}}}"#))
            }
        };
        response.problem = problem.counted();
        self.finish(response)
    }
}

/// The errors of Mohawk 0.15.4, which had two, and ours in the same voice.
fn old_error(problem: &Problem, message: &str) -> Response {
    match problem {
        Problem::BadId { is_post: true } => Response {
            content_type: "text/html; charset=utf-8",
            ..Response::new(504, "<p>Error 504, Bad metrics ID</p>")
        },
        Problem::BadId { is_post: false } => Response::new(504, ""),
        Problem::NoRange => Response::text(504, "504 - Can't delete time rage"),
        Problem::NoPage => Response::text(404, "Page not found - 404\n"),
        Problem::Unsupported(_) => Response::text(501, format!("{message}\n")),
        _ => Response::text(500, format!("{message}\n")),
    }
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// An id or a tag has a character that is not allowed.
    BadId { is_post: bool },
    /// The range of a deletion is empty.
    NoRange,
    /// There is no such path, or not with this method.
    NoPage,
    /// Something in the request cannot be read: what, and the text.
    Unreadable(&'static str, String),
    /// An answer or a body would be larger than is allowed.
    TooLarge(&'static str),
    /// The store cannot be read, or did not take all samples.
    Store(String),
    /// No store of tsb can do this.
    Unsupported(&'static str),
}

impl Problem {
    pub(super) fn unreadable(what: &'static str, text: &str) -> Self {
        // Quoted text is bounded: it comes back in the answer.
        Self::Unreadable(what, text.chars().take(80).collect())
    }

    fn message(&self) -> String {
        match self {
            Self::BadId { .. } => "Bad metrics ID".to_owned(),
            Self::NoRange => "Can't delete time range".to_owned(),
            Self::NoPage => "Page not found - 404".to_owned(),
            Self::Unreadable(what, text) if text.is_empty() => (*what).to_owned(),
            Self::Unreadable(what, text) => format!("{what}: {text}"),
            Self::TooLarge(what) | Self::Unsupported(what) => (*what).to_owned(),
            Self::Store(why) => why.clone(),
        }
    }

    const fn status(&self) -> u16 {
        match self {
            Self::BadId { .. } | Self::NoRange | Self::Unreadable(..) | Self::TooLarge(_) => 400,
            Self::NoPage => 404,
            Self::Store(_) => 500,
            Self::Unsupported(_) => 501,
        }
    }

    /// The sentence under which it is counted as malformed; `None` if the request was right.
    pub(super) const fn counted(&self) -> Option<&'static str> {
        match self {
            Self::BadId { .. } => {
                Some("a metric id or a tag is longer than 16 KiB or has a character that is not allowed")
            }
            Self::NoRange => Some("a range to delete is empty"),
            Self::NoPage => Some("a path is none of Hawkular's"),
            Self::Unreadable(what, _) | Self::TooLarge(what) => Some(what),
            Self::Store(_) | Self::Unsupported(_) => None,
        }
    }
}
