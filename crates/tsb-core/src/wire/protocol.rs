//! The protocols: their names, and what each can carry.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::series::SeriesKey;
use crate::time::SECOND_NS;

const MILLI_NS: u64 = 1_000_000;

/// A wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Protocol {
    /// Graphite plaintext: docs/formats/graphite.md.
    Graphite,
    /// DalmatinerDB's datagrams of July 2014: docs/formats/dalmatiner.md.
    DalmatinerJuly,
    /// DalmatinerDB's frames and datagrams of August 2014: docs/formats/dalmatiner.md.
    DalmatinerAugust,
    /// The stream mode of DalmatinerDB's last version: docs/formats/dalmatiner.md.
    DalmatinerStream,
    /// The batch mode of DalmatinerDB's last version: docs/formats/dalmatiner.md.
    DalmatinerBatch,
    /// Influx line protocol: docs/formats/influx.md.
    Influx,
    /// The telnet protocol of KairosDB: docs/formats/put.md.
    Kairosdb,
    /// The body of KairosDB's HTTP interface: docs/formats/put.md.
    KairosdbJson,
    /// The telnet protocol of OpenTSDB: docs/formats/put.md.
    Opentsdb,
    /// The body of OTLP's export of metrics: docs/formats/otlp.md.
    Otlp,
    /// Graphite's pickle protocol: docs/formats/graphite.md.
    Pickle,
    /// The body of Prometheus remote write 1.0: docs/formats/remote-write.md.
    RemoteWrite,
    /// StatsD: docs/formats/statsd.md.
    Statsd,
    /// tsb's own binary protocol: docs/formats/tsb-wire.md.
    Tsb,
}

/// The capabilities of a protocol, for plans and for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtocolCapabilities {
    /// Minimum distance of two distinct timestamps, in nanoseconds; at least 1. Finer timestamps
    /// are cut, so a plan with a shorter interval lets samples collide.
    pub resolution_ns: u64,
    /// Whether samples carry a time. Otherwise they get their time of arrival, and the resolution is the
    /// interval at which the imitated server flushes.
    pub timestamps: bool,
    /// Whether NaN and the infinities are carried, bit for bit.
    pub special_values: bool,
    /// Whether the receiver can detect missing data.
    pub sequenced: bool,
    /// Whether the receiver acknowledges what it accepted, over a stream or datagrams.
    pub acknowledges: bool,
    /// Whether only integers are carried, from -2^53 to 2^53.
    pub integers_only: bool,
    /// Whether it runs over byte streams, such as TCP.
    pub streams: bool,
    /// Whether it runs over datagrams, such as UDP.
    pub datagrams: bool,
    /// Whether it is the body of HTTP requests, whose answers accept or refuse it.
    pub http: bool,
    /// The series that it can name, in a sentence.
    pub names: &'static str,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 14] = [
        Self::DalmatinerJuly,
        Self::DalmatinerAugust,
        Self::DalmatinerStream,
        Self::DalmatinerBatch,
        Self::Graphite,
        Self::Influx,
        Self::Kairosdb,
        Self::KairosdbJson,
        Self::Opentsdb,
        Self::Otlp,
        Self::Pickle,
        Self::RemoteWrite,
        Self::Statsd,
        Self::Tsb,
    ];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DalmatinerJuly => "dalmatiner-july",
            Self::DalmatinerAugust => "dalmatiner-august",
            Self::DalmatinerStream => "dalmatiner-stream",
            Self::DalmatinerBatch => "dalmatiner-batch",
            Self::Graphite => "graphite",
            Self::Influx => "influx",
            Self::Kairosdb => "kairosdb",
            Self::KairosdbJson => "kairosdb-json",
            Self::Opentsdb => "opentsdb",
            Self::Otlp => "otlp",
            Self::Pickle => "pickle",
            Self::RemoteWrite => "remote-write",
            Self::Statsd => "statsd",
            Self::Tsb => "tsb",
        }
    }

    /// Its capabilities.
    #[expect(clippy::too_many_lines, reason = "a table, a row for each protocol")]
    pub const fn capabilities(self) -> ProtocolCapabilities {
        match self {
            Self::DalmatinerJuly | Self::DalmatinerAugust | Self::DalmatinerStream | Self::DalmatinerBatch => {
                ProtocolCapabilities {
                    resolution_ns: SECOND_NS,
                    timestamps: true,
                    special_values: false,
                    sequenced: false,
                    acknowledges: false,
                    integers_only: matches!(self, Self::DalmatinerJuly | Self::DalmatinerAugust),
                    streams: !matches!(self, Self::DalmatinerJuly),
                    datagrams: matches!(self, Self::DalmatinerJuly | Self::DalmatinerAugust),
                    http: false,
                    names: "no labels but 'bucket', the same for all; up to 16 KiB",
                }
            }
            Self::Graphite => ProtocolCapabilities {
                resolution_ns: SECOND_NS,
                timestamps: true,
                special_values: false,
                sequenced: false,
                acknowledges: false,
                integers_only: false,
                streams: true,
                datagrams: true,
                http: false,
                names: "no white space, control character or ';'; labels as ;label=value",
            },
            Self::Influx => ProtocolCapabilities {
                resolution_ns: 1,
                timestamps: true,
                special_values: false,
                sequenced: false,
                acknowledges: false,
                integers_only: false,
                streams: true,
                datagrams: true,
                http: true,
                names: "no backslash or control character; labels as tags, the label _field as the field",
            },
            Self::Kairosdb | Self::KairosdbJson | Self::Opentsdb => ProtocolCapabilities {
                resolution_ns: MILLI_NS,
                timestamps: true,
                special_values: false,
                sequenced: false,
                acknowledges: false,
                integers_only: false,
                streams: !matches!(self, Self::KairosdbJson),
                datagrams: false,
                http: matches!(self, Self::KairosdbJson),
                names: "letters, digits and - _ . / in names, labels and their values; a line of 1,024 bytes",
            },
            Self::Pickle => ProtocolCapabilities {
                resolution_ns: SECOND_NS,
                timestamps: true,
                special_values: false,
                sequenced: false,
                acknowledges: false,
                integers_only: false,
                streams: true,
                datagrams: false,
                http: false,
                names: "as graphite",
            },
            Self::Otlp | Self::RemoteWrite => ProtocolCapabilities {
                resolution_ns: if matches!(self, Self::Otlp) { 1 } else { MILLI_NS },
                timestamps: true,
                special_values: true,
                sequenced: false,
                acknowledges: false,
                integers_only: false,
                streams: false,
                datagrams: false,
                http: true,
                names: "any UTF-8 up to 32 KiB with its labels; no empty name, and in remote-write no empty label value",
            },
            Self::Statsd => ProtocolCapabilities {
                resolution_ns: 10 * SECOND_NS,
                timestamps: false,
                special_values: false,
                sequenced: false,
                acknowledges: false,
                integers_only: false,
                streams: true,
                datagrams: true,
                http: false,
                names: "letters, digits and _ . - in names, labels and their values; up to 448 bytes",
            },
            Self::Tsb => ProtocolCapabilities {
                resolution_ns: 1,
                timestamps: true,
                special_values: true,
                sequenced: true,
                acknowledges: false,
                integers_only: false,
                streams: true,
                datagrams: true,
                http: false,
                names: "any UTF-8 up to 32 KiB with its labels",
            },
        }
    }

    /// The names of all protocols, for messages.
    fn known() -> String {
        let names = Self::ALL.map(Self::name);
        names.join(", ")
    }

    /// Whether [`Protocol::packer`] supports it: more protocols can be received in datagrams than
    /// sent.
    pub const fn is_packed(self) -> bool {
        matches!(
            self,
            Self::Graphite | Self::Influx | Self::Statsd | Self::Tsb | Self::DalmatinerJuly | Self::DalmatinerAugust
        )
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|protocol| protocol.name() == name);
        found.ok_or_else(|| UnknownProtocol(name.to_owned()))
    }
}

/// There is no protocol of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol '{0}'; known are {known}", known = Protocol::known())]
pub struct UnknownProtocol(pub String);

/// A series that a protocol cannot carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{protocol} cannot carry the series {key:?}: {why}")]
pub struct UnsupportedSeries {
    /// The protocol.
    pub protocol: Protocol,
    /// The series, as `SeriesKey` prints it, truncated to 200 characters.
    pub key: String,
    /// The part of it that cannot be carried.
    pub why: &'static str,
}

impl UnsupportedSeries {
    pub(crate) fn new(protocol: Protocol, key: &SeriesKey, why: &'static str) -> Self {
        let mut text = key.to_string();
        if let Some((cut, _)) = text.char_indices().nth(200) {
            text.truncate(cut);
            text.push_str("...");
        }
        let key = text;
        Self { protocol, key, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_goes_by_its_name() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
            let json = serde_json::to_string(&protocol).unwrap();
            assert_eq!(json, format!("\"{protocol}\""));
        }
        let error = "grafite".parse::<Protocol>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("unknown protocol 'grafite'; known are {}", Protocol::known())
        );
    }
}
