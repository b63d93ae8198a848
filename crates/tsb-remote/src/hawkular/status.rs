//! Which server answers, by its status.
//!
//! Hawkular: `{"MetricsService":"STARTED","Implementation-Version":"0.21.0","Cassandra":"up",...}`.
//! Mohawk adds `MohawkVersion`, and `MohawkBackend` (`Backend-Memory`), which is `MohawkStorage`
//! (`Storage-Memory`) since 0.24. Read at Mohawk `79b0f45` (0.15.4) and `ad35ae5` (0.33.3), and at Hawkular
//! `269e4f9`.

use serde::Deserialize;

/// The first version, major and minor, that answers with an error if its backend has not taken the samples.
const REPORTS_FROM: (u32, u32) = (0, 33);

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// Hawkular Metrics, or who answers like it.
    Hawkular,
    /// Mohawk.
    Mohawk(Mohawk),
}

/// A version of Mohawk with its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mohawk {
    pub(super) backend: MohawkBackend,
    /// Whether it is older than 0.24.
    pub(super) is_old: bool,
    /// Whether it says that its backend has not taken samples.
    pub(super) reports: bool,
}

/// Where a Mohawk keeps samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MohawkBackend {
    Memory,
    Sqlite3,
    Mongo,
    /// One that is not known here.
    Other,
}

#[derive(Debug, Deserialize)]
struct Status {
    #[serde(rename = "MetricsService")]
    service: String,
    #[serde(rename = "MohawkVersion")]
    version: Option<String>,
    #[serde(rename = "MohawkBackend")]
    backend: Option<String>,
    #[serde(rename = "MohawkStorage")]
    storage: Option<String>,
}

/// Why a status is none of a server that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoServer {
    /// It is none of Hawkular's.
    Another,
    /// Its service is in this state.
    NotStarted(String),
}

/// The server of the body of a status.
pub(super) fn server_of(body: &[u8]) -> Result<ServerKind, NoServer> {
    let status: Status = serde_json::from_slice(body).map_err(|_| NoServer::Another)?;
    if status.service != "STARTED" {
        return Err(NoServer::NotStarted(status.service));
    }
    let is_old = status.backend.is_some();
    let Some(name) = status.backend.or(status.storage) else {
        return Ok(ServerKind::Hawkular);
    };
    let version = status.version.as_deref().and_then(major_and_minor);
    Ok(ServerKind::Mohawk(Mohawk {
        backend: backend_of(&name),
        is_old,
        reports: version.is_some_and(|version| version >= REPORTS_FROM),
    }))
}

fn backend_of(name: &str) -> MohawkBackend {
    match name.rsplit('-').next() {
        Some("Memory") => MohawkBackend::Memory,
        Some("Sqlite3") => MohawkBackend::Sqlite3,
        Some("Mongo") => MohawkBackend::Mongo,
        _ => MohawkBackend::Other,
    }
}

fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mohawk(backend: MohawkBackend, is_old: bool, reports: bool) -> ServerKind {
        ServerKind::Mohawk(Mohawk {
            backend,
            is_old,
            reports,
        })
    }

    #[test]
    fn a_status_names_its_server() {
        for (fields, expected) in [
            (r#""Cassandra":"up""#, ServerKind::Hawkular),
            (
                r#""MohawkVersion":"0.15.4","MohawkBackend":"Backend-Memory""#,
                mohawk(MohawkBackend::Memory, true, false),
            ),
            (
                r#""MohawkVersion":"0.24.1","MohawkStorage":"Storage-Mongo""#,
                mohawk(MohawkBackend::Mongo, false, false),
            ),
            (
                r#""MohawkVersion":"0.33.3","MohawkStorage":"Storage-Sqlite3""#,
                mohawk(MohawkBackend::Sqlite3, false, true),
            ),
            (
                r#""MohawkVersion":"x","MohawkStorage":"Storage-Example""#,
                mohawk(MohawkBackend::Other, false, false),
            ),
        ] {
            let status = format!("{{\"MetricsService\":\"STARTED\",{fields}}}\n");
            assert_eq!(server_of(status.as_bytes()), Ok(expected), "{status}");
        }
    }

    #[test]
    fn what_is_no_status_is_no_server() {
        for body in ["", "{}", "[1", "null", "{\"MetricsService\":1}", "<html>"] {
            assert_eq!(server_of(body.as_bytes()), Err(NoServer::Another), "{body}");
        }
        let starting = server_of(b"{\"MetricsService\":\"STARTING\"}");
        assert_eq!(starting, Err(NoServer::NotStarted("STARTING".to_owned())));
    }
}
