//! The protocols: their names, and what each can carry.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::series::{Catalog, SeriesKey};
use crate::time::{Clock, SECOND_NS};
use crate::wire::dalmatiner::{AugustDecoder, DalmatinerEncoder, DalmatinerPacker, Form, JulyDecoder, StreamDecoder};
use crate::wire::datagram::{LinePacker, WholeDatagrams};
use crate::wire::graphite::{GraphiteDecoder, GraphiteEncoder};
use crate::wire::http::{self, Databases};
use crate::wire::influx::{InfluxDecoder, InfluxEncoder};
use crate::wire::kairosdb::{KairosdbJsonDecoder, KairosdbJsonEncoder};
use crate::wire::pickle::{PickleDecoder, PickleEncoder};
use crate::wire::put::{Dialect, PutDecoder, PutEncoder};
use crate::wire::statsd::{StatsdDecoder, StatsdEncoder};
use crate::wire::tsb::{TsbDatagramDecoder, TsbDecoder, TsbEncoder, TsbPacker};
use crate::wire::{Decoder, Encoder, Packer, Room};

const MILLI_NS: u64 = 1_000_000;

/// A wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// The body of KairosDB's HTTP interface: docs/formats/kairosdb-json.md.
    KairosdbJson,
    /// The telnet protocol of OpenTSDB: docs/formats/put.md.
    Opentsdb,
    /// Graphite's pickle protocol: docs/formats/pickle.md.
    Pickle,
    /// StatsD: docs/formats/statsd.md.
    Statsd,
    /// tsb's own binary protocol: docs/formats/tsb-wire.md.
    Tsb,
}

/// The capabilities of a protocol, for plans and for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Minimum distance of two distinct timestamps, in nanoseconds; at least 1. Finer timestamps
    /// are cut, so a plan with a shorter interval lets samples collide.
    pub resolution_ns: u64,
    /// Whether samples carry a time. Otherwise the receiver's clock gives their time of arrival,
    /// and the resolution is how often it is read.
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
    pub const ALL: [Self; 12] = [
        Self::DalmatinerJuly,
        Self::DalmatinerAugust,
        Self::DalmatinerStream,
        Self::DalmatinerBatch,
        Self::Graphite,
        Self::Influx,
        Self::Kairosdb,
        Self::KairosdbJson,
        Self::Opentsdb,
        Self::Pickle,
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
            Self::Pickle => "pickle",
            Self::Statsd => "statsd",
            Self::Tsb => "tsb",
        }
    }

    /// Its capabilities.
    #[expect(clippy::too_many_lines, reason = "a table, a row for each protocol")]
    pub const fn facts(self) -> Facts {
        match self {
            Self::DalmatinerJuly | Self::DalmatinerAugust | Self::DalmatinerStream | Self::DalmatinerBatch => Facts {
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
            },
            Self::Graphite => Facts {
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
            Self::Influx => Facts {
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
            Self::Kairosdb | Self::KairosdbJson | Self::Opentsdb => Facts {
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
            Self::Pickle => Facts {
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
            Self::Statsd => Facts {
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
            Self::Tsb => Facts {
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

    /// An encoder for one connection that carries series of `catalog`.
    ///
    /// # Errors
    /// The first series that the protocol cannot carry, and why.
    pub fn encoder(self, catalog: &Catalog) -> Result<Box<dyn Encoder>, Uncarried> {
        Ok(match self {
            Self::Graphite => Box::new(GraphiteEncoder::new(catalog)?),
            Self::DalmatinerJuly => Box::new(DalmatinerEncoder::new(Form::July, catalog)?),
            Self::DalmatinerAugust => Box::new(DalmatinerEncoder::new(Form::August, catalog)?),
            Self::DalmatinerStream => Box::new(DalmatinerEncoder::new(Form::Stream, catalog)?),
            Self::DalmatinerBatch => Box::new(DalmatinerEncoder::new(Form::Batch, catalog)?),
            Self::Influx => Box::new(InfluxEncoder::new(catalog)?),
            Self::Kairosdb => Box::new(PutEncoder::new(Dialect::Kairosdb, catalog)?),
            Self::KairosdbJson => Box::new(KairosdbJsonEncoder::new(catalog)?),
            Self::Opentsdb => Box::new(PutEncoder::new(Dialect::Opentsdb, catalog)?),
            Self::Pickle => Box::new(PickleEncoder::new(catalog)?),
            Self::Statsd => Box::new(StatsdEncoder::new(catalog)?),
            Self::Tsb => Box::new(TsbEncoder::new(catalog)?),
        })
    }

    /// A decoder for one connection, with its own memory budget. The clock is for protocols that
    /// can express "now".
    pub fn decoder(self, clock: Arc<dyn Clock>) -> Box<dyn Decoder> {
        self.decoder_within(clock, &Room::default())
    }

    /// A decoder for one connection. Its memory is charged to `room`, which all connections of a
    /// listener share.
    pub fn decoder_within(self, clock: Arc<dyn Clock>, room: &Room) -> Box<dyn Decoder> {
        match self {
            Self::Graphite => Box::new(GraphiteDecoder::new(clock).within(room)),
            Self::DalmatinerJuly => Box::new(JulyDecoder::new(&clock).within(room)),
            Self::DalmatinerAugust => Box::new(AugustDecoder::new(&clock).within(room)),
            Self::DalmatinerStream | Self::DalmatinerBatch => Box::new(StreamDecoder::new(&clock).within(room)),
            Self::Influx => Box::new(InfluxDecoder::new(clock).within(room)),
            Self::Kairosdb => Box::new(PutDecoder::new(Dialect::Kairosdb, &clock).within(room)),
            Self::KairosdbJson => Box::new(KairosdbJsonDecoder::new(&clock).within(room)),
            Self::Opentsdb => Box::new(PutDecoder::new(Dialect::Opentsdb, &clock).within(room)),
            Self::Pickle => Box::new(PickleDecoder::new(clock).within(room)),
            Self::Statsd => Box::new(StatsdDecoder::new(clock).within(room)),
            Self::Tsb => Box::new(TsbDecoder::new().within(room)),
        }
    }

    /// Whether [`Protocol::packer`] supports it: more protocols can be received in datagrams than
    /// sent.
    pub const fn is_packed(self) -> bool {
        matches!(
            self,
            Self::Graphite | Self::Influx | Self::Statsd | Self::Tsb | Self::DalmatinerJuly | Self::DalmatinerAugust
        )
    }

    /// A packer for one socket that carries series of `catalog` in datagrams of at most `limit`
    /// bytes. A sender that reuses an address must use another `session`.
    ///
    /// # Errors
    /// The first series that the protocol cannot carry in such a datagram, and why.
    pub fn packer(self, catalog: &Catalog, limit: usize, session: u16) -> Result<Box<dyn Packer>, Uncarried> {
        match self {
            Self::Graphite | Self::Influx | Self::Statsd => Ok(Box::new(LinePacker::new(self, catalog, limit)?)),
            Self::Tsb => Ok(Box::new(TsbPacker::new(catalog, limit, session)?)),
            Self::DalmatinerJuly => Ok(Box::new(DalmatinerPacker::new(Form::July, catalog, limit)?)),
            Self::DalmatinerAugust => Ok(Box::new(DalmatinerPacker::new(Form::August, catalog, limit)?)),
            _ => {
                // The protocol carries no series in datagrams, so any series serves as an example.
                self.encoder(catalog)?;
                let first = catalog.keys().first().cloned().unwrap_or_else(|| SeriesKey::new(""));
                Err(Uncarried::new(self, &first, "it is not sent in datagrams here"))
            }
        }
    }

    /// A decoder for one HTTP connection, if the protocol is a request body. Names and buffered
    /// bodies are charged to `room`, and `databases` is shared by all connections.
    pub fn http_decoder(self, clock: Arc<dyn Clock>, room: &Room, databases: &Databases) -> Option<Box<dyn Decoder>> {
        http::decoder(self, clock, room, databases)
    }

    /// A decoder for the datagrams of one peer, which must be passed whole. Its memory is charged
    /// to `room`, which all peers of a listener share.
    pub fn datagram_decoder(self, clock: Arc<dyn Clock>, room: &Room) -> Box<dyn Decoder> {
        let records = |decoder: Box<dyn Decoder>| Box::new(WholeDatagrams::of_records(decoder));
        match self {
            Self::Tsb => Box::new(TsbDatagramDecoder::new(room)),
            Self::DalmatinerAugust => records(Box::new(AugustDecoder::of_datagrams(&clock).within(room))),
            Self::DalmatinerJuly => records(self.decoder_within(clock, room)),
            Self::Influx => records(Box::new(InfluxDecoder::of_datagrams(clock).within(room))),
            _ => Box::new(WholeDatagrams::of_lines(self.decoder_within(clock, room))),
        }
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
pub struct Uncarried {
    /// The protocol.
    pub protocol: Protocol,
    /// The series, as `SeriesKey` prints it, truncated to 200 characters.
    pub key: String,
    /// The part of it that cannot be carried.
    pub why: &'static str,
}

impl Uncarried {
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
    use crate::time::ManualClock;

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

    #[test]
    fn a_series_that_cannot_be_carried_is_named() {
        let catalog: Catalog = [SeriesKey::new("good"), SeriesKey::new("not good")]
            .into_iter()
            .collect();
        let error = Protocol::Graphite.encoder(&catalog).unwrap_err();
        assert_eq!(
            error.to_string(),
            "graphite cannot carry the series \"not good\": it has white space or a control character"
        );
        assert!(Protocol::Tsb.encoder(&catalog).is_ok());
        let catalog: Catalog = [SeriesKey::new("x".repeat(40_000))].into_iter().collect();
        for protocol in Protocol::ALL {
            let error = protocol.encoder(&catalog).unwrap_err();
            assert_eq!(error.protocol, protocol);
            assert_eq!(error.key.len(), 203, "{error}");
        }
    }

    #[test]
    fn every_protocol_runs_over_something() {
        for protocol in Protocol::ALL {
            let facts = protocol.facts();
            assert!(facts.streams || facts.datagrams || facts.http, "{protocol}");
            let decoder = protocol.http_decoder(Arc::new(ManualClock::new()), &Room::default(), &Databases::default());
            assert_eq!(decoder.is_some(), facts.http, "{protocol}");
        }
    }

    #[test]
    fn only_a_sequenced_protocol_keeps_an_account() {
        for protocol in Protocol::ALL {
            let decoder = protocol.decoder(Arc::new(ManualClock::new()));
            assert_eq!(decoder.sequence().is_some(), protocol.facts().sequenced);
        }
    }
}
