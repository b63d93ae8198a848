//! Parses addresses as users write them: `graphite+udp://127.0.0.1:2003?sockets=30`.

use std::fmt;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::str::FromStr;

use tsb_core::net::{Address, Carrier};
use tsb_core::wire::Protocol;

use crate::plan::{Transport, WirePlan};
use tsb_run::units;

const FORM: &str = "it has the form PROTOCOL+tcp://HOST:PORT, PROTOCOL+udp://HOST:PORT, PROTOCOL+http://HOST:PORT, \
    PROTOCOL+unix:///PATH or PROTOCOL+unixgram:///PATH, such as graphite+tcp://127.0.0.1:2003";

const OPTIONS: &str = "its options are sockets, datagram, gso, gro, receive-buffer, db, gzip, timeout and idle, such as \
    ?sockets=30&datagram=1400&gso=off";

/// An address with its protocol and transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The wire protocol.
    pub protocol: Protocol,
    /// The transport.
    pub transport: Transport,
    /// The options after the question mark.
    pub options: EndpointOptions,
    place: String,
}

/// The options of an address; `None` keeps the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointOptions {
    sockets: Option<usize>,
    datagram_bytes: Option<usize>,
    gso: Option<bool>,
    gro: Option<bool>,
    database: Option<String>,
    gzip: Option<bool>,
    timeout_ns: Option<u64>,
    /// Receive buffer to request, in bytes.
    pub receive_buffer_bytes: Option<u64>,
    /// Idle time in nanoseconds after which a connection is closed, or a sender of datagrams
    /// forgotten; 0: never.
    pub idle_ns: Option<u64>,
    names: Vec<String>,
}

/// Options that only a sender uses, and options that only a receiver uses.
const OF_SENDERS: [&str; 6] = ["sockets", "datagram", "gso", "db", "gzip", "timeout"];
const OF_RECEIVERS: [&str; 3] = ["gro", "receive-buffer", "idle"];

/// Parses an idle timeout into nanoseconds; `off` is 0.
pub fn parse_idle(value: &str) -> Result<u64, String> {
    match value {
        "off" => Ok(0),
        _ => units::parse_duration(value),
    }
}

/// Refuses an option that does nothing on a transport.
fn has_effect(name: &str, transport: Transport) -> Result<(), String> {
    let is_datagrams = transport.carrier() == Carrier::Datagrams;
    let needs = match name {
        "sockets" | "datagram" | "receive-buffer" if !is_datagrams => "udp or unixgram",
        "gso" | "gro" if transport != Transport::Udp => "udp",
        "timeout" if is_datagrams => "a connection",
        "db" | "gzip" if transport != Transport::Http => "http",
        _ => return Ok(()),
    };
    Err(format!("it does nothing over {}: it needs {needs}", transport.name()))
}

/// Refuses an option of HTTP that does nothing with a protocol.
fn suits(name: &str, protocol: Protocol) -> Result<(), String> {
    match (name, protocol) {
        ("gzip", Protocol::RemoteWrite) => Err(format!("it does nothing over {protocol}: that needs snappy")),
        ("db", Protocol::RemoteWrite | Protocol::Otlp) => {
            Err(format!("it does nothing over {protocol}: it needs influx"))
        }
        _ => Ok(()),
    }
}

impl EndpointOptions {
    /// Sets the given options in `wire`.
    pub fn apply(&self, wire: &mut WirePlan) {
        wire.sockets = self.sockets.unwrap_or(wire.sockets);
        wire.datagram_bytes = self.datagram_bytes.unwrap_or(wire.datagram_bytes);
        wire.gso = self.gso.unwrap_or(wire.gso);
        wire.gro = self.gro.unwrap_or(wire.gro);
        wire.gzip = self.gzip.unwrap_or(wire.gzip);
        if let Some(name) = &self.database {
            wire.database = Some(name.clone());
        }
        wire.timeout_ns = self.timeout_ns.or(wire.timeout_ns);
        wire.receive_buffer_bytes = self.receive_buffer_bytes.or(wire.receive_buffer_bytes);
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let count = || units::parse_count(value).map(|count| count as usize);
        match name {
            "sockets" => self.sockets = Some(count()?),
            "datagram" => self.datagram_bytes = Some(count()?),
            "gso" => self.gso = Some(units::parse_switch(value)?),
            "gro" => self.gro = Some(units::parse_switch(value)?),
            "gzip" => self.gzip = Some(units::parse_switch(value)?),
            "timeout" => self.timeout_ns = Some(units::parse_duration(value)?),
            "db" if value.is_empty() => return Err("a database has a name".to_owned()),
            "db" => self.database = Some(value.to_owned()),
            "receive-buffer" => self.receive_buffer_bytes = Some(units::parse_bytes(value)?),
            "idle" => self.idle_ns = Some(parse_idle(value)?),
            _ => return Err(format!("unknown option {name:?}; {OPTIONS}")),
        }
        Ok(())
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
        let (protocol, transport) = scheme.split_once('+').ok_or(FORM)?;
        let protocol = protocol.parse::<Protocol>().map_err(|error| match protocol {
            "hawkular" => "tsb ingest listens for hawkular, and nothing sends it".to_owned(),
            _ => error.to_string(),
        })?;
        let transport = Transport::WIRES.into_iter().find(|known| known.name() == transport);
        let transport = transport.ok_or_else(|| {
            let (_, unknown) = scheme.split_once('+').unwrap_or_default();
            format!("unknown transport {unknown:?}; this build speaks tcp, udp, unix, unixgram and http")
        })?;
        transport.carries(protocol)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        // Before any part of it is quoted: a password may hold a question mark.
        if (place.contains('@') || !is_address(place)) && rest.contains('@') && !transport.is_unix() {
            return Err("it holds a user or a password, and tsb sends none".to_owned());
        }
        let mut options = EndpointOptions::default();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or(OPTIONS)?;
            let set = options
                .set(name, value)
                .and_then(|()| has_effect(name, transport))
                .and_then(|()| suits(name, protocol));
            set.map_err(|why| format!("option {name}: {why}"))?;
            options.names.push(name.to_owned());
        }
        let place = if transport.is_unix() {
            (place.len() > 1 && place.starts_with('/'))
                .then_some(place)
                .ok_or(FORM)?
        } else {
            let host = place.strip_suffix('/').unwrap_or(place);
            is_address(host).then_some(host).ok_or(FORM)?
        };
        Ok(Self {
            protocol,
            transport,
            options,
            place: place.to_owned(),
        })
    }
}

/// Whether it is `HOST:PORT`.
fn is_address(place: &str) -> bool {
    let parts = place.strip_suffix('/').unwrap_or(place).rsplit_once(':');
    parts.is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok())
}

impl Endpoint {
    /// Refuses options that do nothing where samples are sent.
    pub fn check_sending(&self) -> Result<(), String> {
        self.refuse(&OF_RECEIVERS, "it is an option of tsb ingest")
    }

    /// Refuses options that do nothing where samples are received.
    pub fn check_listening(&self) -> Result<(), String> {
        self.refuse(&OF_SENDERS, "it is an option of tsb emit")
    }

    fn refuse(&self, others: &[&str], why: &str) -> Result<(), String> {
        let mut names = self.options.names.iter();
        let found = names.find(|name| others.contains(&name.as_str()));
        found.map_or(Ok(()), |name| Err(format!("option {name}: {why}")))
    }

    /// Resolves the host name, or returns the path of a Unix socket.
    pub fn resolve(&self) -> std::io::Result<Address> {
        if self.transport.is_unix() {
            return Ok(Address::Unix(PathBuf::from(&self.place)));
        }
        let mut addresses = self.place.to_socket_addrs()?;
        let first = addresses.next().map(Address::Inet);
        first.ok_or_else(|| std::io::Error::other("the name has no address"))
    }

    /// The URL with another address, such as the port that the kernel assigned.
    pub fn url_at(&self, address: &Address) -> String {
        format!("{}+{}://{address}", self.protocol, self.transport.name())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}://{}", self.protocol, self.transport.name(), self.place)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn an_endpoint_names_protocol_transport_and_address() {
        let endpoint: Endpoint = "graphite+tcp://127.0.0.1:2003".parse().unwrap();
        assert_eq!(
            (endpoint.protocol, endpoint.transport),
            (Protocol::Graphite, Transport::Tcp)
        );
        let address = SocketAddr::from(([127, 0, 0, 1], 2003));
        assert_eq!(endpoint.resolve().unwrap(), Address::Inet(address));
        assert_eq!(endpoint.to_string(), "graphite+tcp://127.0.0.1:2003");
        let six: Endpoint = "tsb+udp://[::1]:4270".parse().unwrap();
        assert!(six.resolve().unwrap().inet().unwrap().is_ipv6());
        let unix: Endpoint = "tsb+unixgram:///run/tsb.sock".parse().unwrap();
        assert_eq!(unix.resolve().unwrap(), Address::Unix(PathBuf::from("/run/tsb.sock")));
        assert_eq!(unix.to_string(), "tsb+unixgram:///run/tsb.sock");
    }

    #[test]
    fn options_change_the_wire() {
        let mut wire = WirePlan::default();
        let text = "influx+http://h:1?db=x&gzip=1&timeout=5s";
        text.parse::<Endpoint>().unwrap().options.apply(&mut wire);
        let text = "tsb+udp://h:1?sockets=30&datagram=512&gso=off&gro=off&receive-buffer=8MiB&idle=2s";
        let endpoint: Endpoint = text.parse().unwrap();
        endpoint.options.apply(&mut wire);
        let expected = WirePlan {
            sockets: 30,
            datagram_bytes: 512,
            gso: false,
            gro: false,
            receive_buffer_bytes: Some(8 << 20),
            database: Some("x".to_owned()),
            connections: None,
            gzip: true,
            timeout_ns: Some(5_000_000_000),
        };
        assert_eq!((wire, endpoint.options.idle_ns), (expected, Some(2_000_000_000)));
    }

    #[test]
    fn every_protocol_has_an_endpoint_where_it_runs() {
        for protocol in Protocol::ALL {
            let endpoint = format!("{protocol}+tcp://127.0.0.1:1").parse::<Endpoint>();
            assert_eq!(endpoint.is_ok(), protocol.capabilities().streams, "{protocol}");
            let endpoint = format!("{protocol}+udp://127.0.0.1:1").parse::<Endpoint>();
            assert_eq!(endpoint.is_ok(), protocol.capabilities().datagrams, "{protocol}");
            let endpoint = format!("{protocol}+http://127.0.0.1:1").parse::<Endpoint>();
            assert_eq!(endpoint.is_ok(), protocol.capabilities().http, "{protocol}");
        }
        let error = "kairosdb-json+tcp://h:1".parse::<Endpoint>().unwrap_err();
        assert_eq!(error, "kairosdb-json does not run over tcp: it needs http");
        let error = "hawkular+http://h:1".parse::<Endpoint>().unwrap_err();
        assert_eq!(error, "tsb ingest listens for hawkular, and nothing sends it");
    }

    #[test]
    fn flags_without_effect_are_refused() {
        for (text, needs) in [
            ("tsb+tcp://h:1?sockets=2", "udp or unixgram"),
            ("tsb+unix:///a?receive-buffer=1MiB", "udp or unixgram"),
            ("tsb+unixgram:///a?gso=off", "udp"),
            ("tsb+tcp://h:1?gro=on", "udp"),
            ("influx+udp://h:1?timeout=1s", "a connection"),
            ("influx+udp://h:1?db=x", "http"),
            ("influx+tcp://h:1?gzip=on", "http"),
            ("remote-write+http://h:1?gzip=on", "that needs snappy"),
            ("otlp+http://h:1?db=x", "it needs influx"),
        ] {
            let why = text.parse::<Endpoint>().unwrap_err();
            assert!(
                why.contains("does nothing over") && why.ends_with(needs),
                "{text}: {why}"
            );
        }
        let sender: Endpoint = "tsb+udp://h:1?sockets=2".parse().unwrap();
        assert!(sender.check_sending().is_ok() && sender.check_listening().unwrap_err().contains("tsb emit"));
        let receiver: Endpoint = "tsb+udp://h:1?idle=2s".parse().unwrap();
        assert!(receiver.check_listening().is_ok() && receiver.check_sending().unwrap_err().contains("tsb ingest"));
        for text in [
            "influx+http://me:pw@h:1",
            "influx+http://me:p?w@h:1",
            "tsb+tcp://me:p?w=1&pw@h:1",
        ] {
            let why = text.parse::<Endpoint>().unwrap_err();
            assert!(why.contains("user or a password") && !why.contains("pw"), "{why}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_form() {
        for bad in [
            "",
            "graphite",
            "graphite://h:1",
            "graphite+tcp://",
            "graphite+tcp://h",
            "graphite+tcp://h:x",
            "graphite+pigeon://h:1",
            "graphite+inproc://h:1",
            "carrier+tcp://h:1",
            "tsb+unix://relative/path",
            "tsb+unix:///",
            "tsb+udp://h:1?sockets",
            "tsb+udp://h:1?sockets=x",
            "tsb+udp://h:1?wings=2",
            "tsb+udp://h:1?gso=perhaps",
            "influx+http://h:1?db=",
            "graphite+http://h:1",
            "dalmatiner-july+tcp://h:1",
            "kairosdb-json+tcp://h:1",
        ] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }
}
