//! The protocols by name, and what each can carry.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::series::{Catalog, SeriesKey};
use crate::time::{Clock, SECOND_NS};
use crate::wire::graphite::{GraphiteDecoder, GraphiteEncoder};
use crate::wire::tsb::{TsbDecoder, TsbEncoder};
use crate::wire::{Decoder, Encoder};

/// A wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Graphite plaintext: docs/formats/graphite.md.
    Graphite,
    /// Our own binary protocol: docs/formats/tsb-wire.md.
    Tsb,
}

/// What a protocol can carry, for plans and for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The distance of two timestamps that stay apart, in nanoseconds; 1 or more. Finer
    /// ones are cut, so a plan whose interval is shorter lets samples collide.
    pub resolution_ns: u64,
    /// Whether NaN and the infinities arrive, bit for bit.
    pub special_values: bool,
    /// Whether the receiver can tell that something is missing.
    pub sequenced: bool,
    /// Whether the receiver answers.
    pub acknowledges: bool,
    /// Which series it can name, in a sentence.
    pub names: &'static str,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Graphite, Self::Tsb];

    /// The word that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Graphite => "graphite",
            Self::Tsb => "tsb",
        }
    }

    /// What it can carry.
    pub const fn facts(self) -> Facts {
        match self {
            Self::Graphite => Facts {
                resolution_ns: SECOND_NS,
                special_values: false,
                sequenced: false,
                acknowledges: false,
                names: "no white space, control character or ';'; labels as ;label=value",
            },
            Self::Tsb => Facts {
                resolution_ns: 1,
                special_values: true,
                sequenced: true,
                acknowledges: false,
                names: "any UTF-8 up to 32 KiB with its labels",
            },
        }
    }

    /// An encoder for one connection that carries series of `catalog`.
    ///
    /// # Errors
    /// The first series that the protocol cannot carry, and why.
    pub fn encoder(self, catalog: &Catalog) -> Result<Box<dyn Encoder>, Uncarried> {
        Ok(match self {
            Self::Graphite => Box::new(GraphiteEncoder::new(catalog)?),
            Self::Tsb => Box::new(TsbEncoder::new(catalog)?),
        })
    }

    /// A decoder for one connection. The clock is for protocols that can say "now".
    pub fn decoder(self, clock: Arc<dyn Clock>) -> Box<dyn Decoder> {
        match self {
            Self::Graphite => Box::new(GraphiteDecoder::new(clock)),
            Self::Tsb => Box::new(TsbDecoder::new()),
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

/// No protocol has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol '{0}'; known are graphite and tsb")]
pub struct UnknownProtocol(pub String);

/// A series that a protocol cannot carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{protocol} cannot carry the series {key:?}: {why}")]
pub struct Uncarried {
    /// The protocol.
    pub protocol: Protocol,
    /// The series, as `SeriesKey` prints it, cut at 200 characters.
    pub key: String,
    /// What in it cannot be carried.
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
            "unknown protocol 'grafite'; known are graphite and tsb"
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
            assert_eq!(error.key.len(), 203, "{error}");
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
