//! The backends that are compared, by name: stores behind our endpoint, and another's server.

use std::fmt;
use std::path::Path;

use serde_json::Value;
use tsb_core::resource::Listening;
use tsb_core::wire::http::hawkular::Behaviour;

use super::windows::RowRule;
use crate::error::Error;
use crate::spec::Spec;

/// What stands behind the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MohawkBackend {
    /// Slots in memory, as Mohawk's memory backend: `ring:` behind our endpoint.
    Ring,
    /// SQLite in Mohawk's layout behind our endpoint.
    Sqlite,
    /// Hawkular's answers, over `memory:` behind our endpoint.
    Hawkular,
    /// MongoDB at `HOST:PORT` in Mohawk's layout behind our endpoint.
    Mongo(String),
    /// A Mohawk, or Hawkular, at `HOST:PORT`, which somebody else started.
    Started(String),
}

/// Which answers are asked of our endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// Those of the measured version, or for [`MohawkBackend::Hawkular`] of Hawkular.
    AsTheyWere,
    /// Hawkular's for every backend, so that all answer the same question.
    Corrected,
}

/// The rules of a server's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerRules {
    /// Which ends of a range belong to it.
    pub(super) rows: RowRule,
    /// Whether an answer without rows is a 204.
    pub(super) has_no_content: bool,
    /// Length of a slot in seconds that keeps one sample; 0 where each is kept.
    pub(super) slot_seconds: u64,
}

impl MohawkBackend {
    /// Those that need no server, in the order in which they are shown.
    pub const EMBEDDED: [Self; 3] = [Self::Ring, Self::Sqlite, Self::Hawkular];

    /// The name by which a user chooses one of [`Self::EMBEDDED`].
    pub const fn short_name(&self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Sqlite => "sqlite",
            Self::Hawkular => "hawkular",
            Self::Mongo(_) => "mongo",
            Self::Started(_) => "mohawk",
        }
    }

    /// Checks an address.
    ///
    /// # Errors
    /// [`Error::Plan`] if it is not `HOST:PORT`, with a hint.
    pub fn check(&self) -> Result<(), Error> {
        let (Self::Mongo(address) | Self::Started(address)) = self else {
            return Ok(());
        };
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let is_plain = !address.starts_with(':') && !address.contains(['/', '?', '@', ' ', ',']);
        if port.is_some() && is_plain {
            return Ok(());
        }
        Err(
            Error::plan(format!("cannot use {address} as the address of {}", self.short_name()))
                .because_of("it is not HOST:PORT")
                .hint("give it as 127.0.0.1:8080; credentials are read from TSB_CREDENTIALS_MONGO"),
        )
    }

    /// The store behind our endpoint, before it has a place of its own; `None` for another's
    /// server.
    ///
    /// # Errors
    /// If this build does not have it.
    pub(super) fn store(&self, folder: &Path) -> Result<Option<Spec>, Error> {
        let text = match self {
            Self::Ring => "ring:".to_owned(),
            Self::Hawkular => "memory:".to_owned(),
            Self::Sqlite => format!("sqlite:{}?layout=mohawk", folder.join("mohawk.db").display()),
            Self::Mongo(address) => format!("mongo://{address}/tsb-mohawk-{}?layout=mohawk", std::process::id()),
            Self::Started(_) => return Ok(None),
        };
        let spec = text.parse::<Spec>();
        spec.map(Some).map_err(|error| Error::opening(self, &error))
    }

    /// The behaviour that is asked of our endpoint.
    pub(super) const fn behaviour(&self, answers: Answers) -> Behaviour {
        match (answers, self) {
            (Answers::Corrected, _) | (_, Self::Hawkular) => Behaviour::Corrected,
            (Answers::AsTheyWere, _) => Behaviour::Mohawk0154,
        }
    }

    /// Where its database listens on this machine, if it has one apart.
    pub(super) fn database(&self) -> Option<Listening> {
        match self {
            Self::Mongo(address) => Listening::of_local(address),
            _ => None,
        }
    }

    /// The rules that our endpoint follows, or by `status` another's server; `None` if that is not
    /// known.
    pub(super) fn rules(&self, answers: Answers, status: &Value) -> Option<AnswerRules> {
        if let Self::Started(_) = self {
            return rules_of_status(status);
        }
        let is_corrected = self.behaviour(answers) == Behaviour::Corrected;
        let is_after_start = matches!(self, Self::Sqlite) && !is_corrected;
        Some(AnswerRules {
            rows: if is_after_start {
                RowRule::AfterStart
            } else {
                RowRule::FromStart
            },
            has_no_content: is_corrected,
            slot_seconds: if matches!(self, Self::Ring) { 30 } else { 0 },
        })
    }
}

/// The rules of the versions that were read: 0.15 and 0.33 of Mohawk, and Hawkular.
fn rules_of_status(status: &Value) -> Option<AnswerRules> {
    status.get("MetricsService")?;
    let Some(version) = status.get("MohawkVersion").and_then(Value::as_str) else {
        // Hawkular.
        return Some(AnswerRules {
            rows: RowRule::FromStart,
            has_no_content: true,
            slot_seconds: 0,
        });
    };
    let storage = storage_of(status)?;
    let rows = match (version.starts_with("0.15."), version.starts_with("0.33.")) {
        (true, _) if storage == "Sqlite3" => RowRule::AfterStart,
        (true, _) | (_, true) => RowRule::FromStart,
        _ => return None,
    };
    Some(AnswerRules {
        rows,
        has_no_content: false,
        slot_seconds: if storage == "Memory" { 30 } else { 0 },
    })
}

/// `Memory`, `Sqlite3` or `Mongo`, as a status of Mohawk says.
fn storage_of(status: &Value) -> Option<&str> {
    let named = |name: &str| status.get(name).and_then(Value::as_str);
    let storage = named("MohawkBackend").or_else(|| named("MohawkStorage"))?;
    storage.split_once('-').map(|(_, storage)| storage)
}

/// A status in few words.
pub(super) fn described(status: &Value) -> String {
    let named = |name: &str| status.get(name).and_then(Value::as_str);
    let server = match (named("MohawkVersion"), named("Implementation-Version")) {
        (Some(version), _) => format!("Mohawk {version}"),
        (None, Some(version)) => format!("Hawkular {version}"),
        (None, None) => "unknown".to_owned(),
    };
    match storage_of(status) {
        Some(storage) => format!("{server}, {storage}"),
        None => server,
    }
}

/// What a confirmed write to another's server has reached, by what its version does.
pub(super) fn durability_of(status: &Value) -> &'static str {
    match storage_of(status) {
        Some("Memory") => "volatile",
        Some("Sqlite3") => "synced by SQLite's defaults, not checked",
        Some("Mongo") => "confirmed by mongod before its journal, not checked",
        _ => "not known",
    }
}

impl fmt::Display for MohawkBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring => f.write_str("ring:"),
            Self::Sqlite => f.write_str("sqlite: layout=mohawk"),
            Self::Hawkular => f.write_str("memory: as Hawkular"),
            // Short, as a label; the address is in the plan.
            Self::Mongo(_) => f.write_str("mongo: layout=mohawk"),
            Self::Started(address) => write!(f, "mohawk at {address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_are_hosts_with_ports() {
        for address in ["127.0.0.1:8080", "localhost:1", "[::1]:27017"] {
            MohawkBackend::Started(address.to_owned()).check().unwrap();
        }
        for address in [
            "",
            "host",
            ":1",
            "host:x",
            "user:secret@host:1",
            "http://host:1",
            "a:1,b:2",
        ] {
            for backend in [
                MohawkBackend::Mongo(address.to_owned()),
                MohawkBackend::Started(address.to_owned()),
            ] {
                assert!(
                    backend.check().unwrap_err().to_string().contains("HOST:PORT"),
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn the_rules_follow_from_what_a_server_says() {
        use RowRule::{AfterStart, FromStart};
        let started = MohawkBackend::Started("h:1".to_owned());
        let rules = |status: Value| {
            let rules = started.rules(Answers::AsTheyWere, &status);
            rules.map(|rules| (rules.rows, rules.has_no_content, rules.slot_seconds))
        };
        let mohawk = |version: &str, key: &str, storage: &str| {
            rules(json!({"MetricsService": "STARTED", "MohawkVersion": version, key: storage}))
        };
        assert_eq!(
            mohawk("0.15.4", "MohawkBackend", "Backend-Memory"),
            Some((FromStart, false, 30))
        );
        assert_eq!(
            mohawk("0.15.4", "MohawkBackend", "Backend-Sqlite3"),
            Some((AfterStart, false, 0))
        );
        assert_eq!(
            mohawk("0.33.3", "MohawkStorage", "Storage-Sqlite3"),
            Some((FromStart, false, 0))
        );
        assert_eq!(mohawk("0.22.1", "MohawkBackend", "Backend-Mongo"), None);
        let hawkular = json!({"MetricsService": "STARTED", "Implementation-Version": "0.26.1.Final"});
        assert_eq!(described(&hawkular), "Hawkular 0.26.1.Final");
        assert_eq!(rules(hawkular), Some((FromStart, true, 0)));
        assert_eq!(rules(json!({})), None);
        let status = json!({"MohawkVersion": "0.15.4", "MohawkBackend": "Backend-Memory"});
        assert_eq!(
            (described(&status).as_str(), durability_of(&status)),
            ("Mohawk 0.15.4, Memory", "volatile")
        );
    }

    #[test]
    fn corrected_all_backends_answer_the_same_question() {
        for backend in MohawkBackend::EMBEDDED {
            let rules = backend.rules(Answers::Corrected, &Value::Null).unwrap();
            assert_eq!(
                (rules.rows, rules.has_no_content),
                (RowRule::FromStart, true),
                "{backend}"
            );
        }
        let rules = MohawkBackend::Sqlite.rules(Answers::AsTheyWere, &Value::Null).unwrap();
        assert_eq!((rules.rows, rules.has_no_content), (RowRule::AfterStart, false));
    }
}
