//! From a protocol to its encoder, decoder and packer. A new protocol is entered here and in
//! `protocol.rs`; as a body also in `http.rs` and `http/client.rs`; in datagrams of lines also in
//! `datagram/lines.rs`. rrdcached's protocol and Hawkular's are no [`Protocol`].

use std::sync::Arc;

use super::protocol::{Protocol, UnsupportedSeries};
use crate::series::{Catalog, SeriesKey};
use crate::time::Clock;
use crate::wire::dalmatiner::{AugustDecoder, DalmatinerEncoder, DalmatinerPacker, Form, JulyDecoder, StreamDecoder};
use crate::wire::datagram::{LinePacker, WholeDatagrams};
use crate::wire::graphite::{GraphiteDecoder, GraphiteEncoder};
use crate::wire::http::{self, Databases};
use crate::wire::influx::{InfluxDecoder, InfluxEncoder};
use crate::wire::kairosdb::{KairosdbJsonDecoder, KairosdbJsonEncoder};
use crate::wire::otlp::{OtlpDecoder, OtlpEncoder};
use crate::wire::pickle::{PickleDecoder, PickleEncoder};
use crate::wire::put::{Dialect, PutDecoder, PutEncoder};
use crate::wire::remote_write::{RemoteWriteDecoder, RemoteWriteEncoder};
use crate::wire::statsd::{StatsdDecoder, StatsdEncoder};
use crate::wire::tsb::{TsbDatagramDecoder, TsbDecoder, TsbEncoder, TsbPacker};
use crate::wire::{Decoder, Encoder, Packer, Room};

impl Protocol {
    /// An encoder for one connection that carries series of `catalog`.
    ///
    /// # Errors
    /// The first series that the protocol cannot carry, and why.
    pub fn encoder(self, catalog: &Catalog) -> Result<Box<dyn Encoder>, UnsupportedSeries> {
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
            Self::Otlp => Box::new(OtlpEncoder::new(catalog)?),
            Self::Pickle => Box::new(PickleEncoder::new(catalog)?),
            Self::RemoteWrite => Box::new(RemoteWriteEncoder::new(catalog)?),
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
            Self::Otlp => Box::new(OtlpDecoder::new(&clock).within(room)),
            Self::Pickle => Box::new(PickleDecoder::new(clock).within(room)),
            Self::RemoteWrite => Box::new(RemoteWriteDecoder::new(&clock).within(room)),
            Self::Statsd => Box::new(StatsdDecoder::new(clock).within(room)),
            Self::Tsb => Box::new(TsbDecoder::new().within(room)),
        }
    }

    /// A packer for one socket that carries series of `catalog` in datagrams of at most `limit`
    /// bytes. A sender that reuses an address must use another `session`.
    ///
    /// # Errors
    /// The first series that the protocol cannot carry in such a datagram, and why.
    pub fn packer(self, catalog: &Catalog, limit: usize, session: u16) -> Result<Box<dyn Packer>, UnsupportedSeries> {
        match self {
            Self::Graphite | Self::Influx | Self::Statsd => Ok(Box::new(LinePacker::new(self, catalog, limit)?)),
            Self::Tsb => Ok(Box::new(TsbPacker::new(catalog, limit, session)?)),
            Self::DalmatinerJuly => Ok(Box::new(DalmatinerPacker::new(Form::July, catalog, limit)?)),
            Self::DalmatinerAugust => Ok(Box::new(DalmatinerPacker::new(Form::August, catalog, limit)?)),
            _ => {
                // The protocol carries no series in datagrams, so any series serves as an example.
                self.encoder(catalog)?;
                let first = catalog.keys().first().cloned().unwrap_or_else(|| SeriesKey::new(""));
                Err(UnsupportedSeries::new(self, &first, "it is not sent in datagrams here"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ManualClock;

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
            let facts = protocol.capabilities();
            assert!(facts.streams || facts.datagrams || facts.http, "{protocol}");
            let decoder = protocol.http_decoder(Arc::new(ManualClock::new()), &Room::default(), &Databases::default());
            assert_eq!(decoder.is_some(), facts.http, "{protocol}");
        }
    }

    #[test]
    fn only_a_sequenced_protocol_keeps_an_account() {
        for protocol in Protocol::ALL {
            let decoder = protocol.decoder(Arc::new(ManualClock::new()));
            assert_eq!(decoder.sequence().is_some(), protocol.capabilities().sequenced);
        }
    }
}
