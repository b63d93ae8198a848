//! The first line that a program writes: the version, the form of its messages, and what it can
//! do.

use tsb_core::Durability;
use tsb_stores::store::{Capabilities, Exactness, OnConflict};

use super::message::{Form, LEVELS, Malformed};
use super::text::quoted;

/// The version of the protocol.
const VERSION: &str = "1";

/// A greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) form: Form,
    /// What the program calls itself.
    pub(super) name: String,
    pub(super) capabilities: Capabilities,
}

/// The words that may follow the form.
const WORDS: &str = "name, query, exactness, duplicate, resolution, special, acknowledges, reaches, copies, \
    persistent, retention, delay";

impl Greeting {
    /// Parses the line, without its end.
    pub(super) fn parse(line: &str) -> Result<Self, Malformed> {
        let wrong = |what: String| Malformed(format!("{what} in the greeting {}", quoted(line)));
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some("tsb-exec"), Some(VERSION)) => {}
            (Some("tsb-exec"), Some(other)) => {
                return Err(wrong(format!(
                    "version {other} is not {VERSION}, which this tsb speaks,"
                )));
            }
            _ => {
                return Err(Malformed(format!(
                    "the first line {} does not begin with tsb-exec {VERSION}",
                    quoted(line)
                )));
            }
        }
        let form = match words.next() {
            Some("text") => Form::Text,
            Some("binary") => Form::Binary,
            _ => return Err(wrong("neither text nor binary follows the version".to_owned())),
        };
        let mut greeting = Self {
            form,
            name: "exec".to_owned(),
            capabilities: Capabilities::new(Durability::Volatile, Durability::Volatile),
        };
        greeting.capabilities.special_values = false;
        let mut reaches = None;
        for word in words {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| wrong(format!("{word:?} is not WORD=VALUE")))?;
            if name == "reaches" {
                reaches = Some(level(value).ok_or_else(|| wrong(format!("{value:?} is no level")))?);
            } else {
                greeting.set(name, value).map_err(&wrong)?;
            }
        }
        let capabilities = &mut greeting.capabilities;
        capabilities.reaches = reaches.unwrap_or(capabilities.acknowledges);
        if capabilities.reaches < capabilities.acknowledges {
            return Err(wrong("reaches is below acknowledges".to_owned()));
        }
        if capabilities.special_values && form == Form::Text {
            return Err(wrong("special=1 needs the binary form".to_owned()));
        }
        Ok(greeting)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let capabilities = &mut self.capabilities;
        let not = |form: &str| format!("{name}={value} is not {name}={form}");
        match name {
            "name" if value.len() <= 64 => value.clone_into(&mut self.name),
            "name" => return Err(not("a word of at most 64 bytes")),
            "query" => capabilities.query = switch(value).ok_or_else(|| not("0 or 1"))?,
            "special" => capabilities.special_values = switch(value).ok_or_else(|| not("0 or 1"))?,
            "persistent" => capabilities.persistent = switch(value).ok_or_else(|| not("0 or 1"))?,
            "exactness" => {
                let form = "exact, float32, decimals:N or slot:NANOSECONDS";
                capabilities.exactness = exactness(value).ok_or_else(|| not(form))?;
            }
            "duplicate" => {
                capabilities.duplicate = match value {
                    "accepted" => OnConflict::Accepted,
                    "rejected" => OnConflict::Rejected,
                    "both" => OnConflict::KeptBoth,
                    _ => return Err(not("accepted, rejected or both")),
                }
            }
            "acknowledges" => {
                capabilities.acknowledges =
                    level(value).ok_or_else(|| not("unconfirmed, volatile, buffered or synced"))?;
            }
            "resolution" => capabilities.resolution_ns = positive(value).ok_or_else(|| not("NANOSECONDS"))?,
            "retention" => capabilities.retention_ns = Some(positive(value).ok_or_else(|| not("NANOSECONDS"))?),
            "copies" => capabilities.copies = positive(value).ok_or_else(|| not("a number from 1"))? as u32,
            "delay" => capabilities.visibility_delay_ms = value.parse().map_err(|_| not("MILLISECONDS"))?,
            _ => return Err(format!("{name:?} is unknown; the words are {WORDS}; it is")),
        }
        Ok(())
    }
}

fn level(value: &str) -> Option<Durability> {
    LEVELS.into_iter().find(|level| level.to_string() == value)
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn positive(value: &str) -> Option<i64> {
    value.parse().ok().filter(|value| *value > 0)
}

fn exactness(value: &str) -> Option<Exactness> {
    match value.split_once(':') {
        None if value == "exact" => Some(Exactness::Exact),
        None if value == "float32" => Some(Exactness::Float32),
        Some(("decimals", decimals)) => decimals.parse().ok().map(Exactness::Decimals),
        Some(("slot", ns)) => positive(ns).map(Exactness::OnePerSlot),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_states_capabilities() {
        let line = "tsb-exec 1 binary name=mine acknowledges=buffered reaches=synced persistent=1 duplicate=both \
            special=1 resolution=1000 retention=60000000000 delay=5 exactness=decimals:3 copies=2\r";
        let greeting = Greeting::parse(line).unwrap();
        assert_eq!((greeting.form, greeting.name.as_str()), (Form::Binary, "mine"));
        let mut expected = Capabilities::new(Durability::Buffered, Durability::Synced);
        expected.persistent = true;
        expected.duplicate = OnConflict::KeptBoth;
        expected.resolution_ns = 1_000;
        expected.retention_ns = Some(60_000_000_000);
        expected.visibility_delay_ms = 5;
        expected.exactness = Exactness::Decimals(3);
        expected.copies = 2;
        expected.special_values = true;
        assert_eq!(greeting.capabilities, expected);
        let plain = Greeting::parse("tsb-exec 1 text").unwrap().capabilities;
        assert_eq!((plain.reaches, plain.special_values), (Durability::Volatile, false));
    }

    #[test]
    fn a_wrong_greeting_is_named() {
        for (line, says) in [
            ("hello", "does not begin with tsb-exec 1"),
            ("", "does not begin with tsb-exec 1"),
            ("tsb-exec 2 text", "version 2 is not 1"),
            ("tsb-exec 1", "neither text nor binary"),
            ("tsb-exec 1 text fast", "\"fast\" is not WORD=VALUE"),
            ("tsb-exec 1 text speed=1", "the words are name, query"),
            (
                "tsb-exec 1 text persistent=yes",
                "persistent=yes is not persistent=0 or 1",
            ),
            (
                "tsb-exec 1 text acknowledges=synced reaches=volatile",
                "below acknowledges",
            ),
            ("tsb-exec 1 text special=1", "needs the binary form"),
            ("tsb-exec 1 text resolution=0", "resolution=NANOSECONDS"),
        ] {
            let why = Greeting::parse(line).unwrap_err().0;
            assert!(why.contains(says), "{line}: {why}");
        }
    }
}
