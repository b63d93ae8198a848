//! Addresses as users write them: `graphite+tcp://127.0.0.1:2003`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use tsb_core::wire::Protocol;

/// A protocol over a transport to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What is spoken.
    pub protocol: Protocol,
    host: String,
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "it has the form PROTOCOL+tcp://HOST:PORT, such as graphite+tcp://127.0.0.1:2003";
        let (scheme, host) = text.split_once("://").ok_or(FORM)?;
        let (protocol, transport) = scheme.split_once('+').ok_or(FORM)?;
        let protocol = protocol.parse::<Protocol>().map_err(|error| error.to_string())?;
        if transport != "tcp" {
            return Err(format!("unknown transport {transport:?}; this build speaks tcp"));
        }
        let host = host.strip_suffix('/').unwrap_or(host);
        if host
            .rsplit_once(':')
            .is_none_or(|(name, port)| name.is_empty() || port.parse::<u16>().is_err())
        {
            return Err(FORM.to_owned());
        }
        Ok(Self {
            protocol,
            host: host.to_owned(),
        })
    }
}

impl Endpoint {
    /// The address behind the name.
    pub fn resolve(&self) -> std::io::Result<SocketAddr> {
        let mut addresses = self.host.to_socket_addrs()?;
        addresses
            .next()
            .ok_or_else(|| std::io::Error::other("the name has no address"))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+tcp://{}", self.protocol, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_names_protocol_transport_and_address() {
        let endpoint: Endpoint = "graphite+tcp://127.0.0.1:2003".parse().unwrap();
        assert_eq!(endpoint.protocol, Protocol::Graphite);
        assert_eq!(endpoint.resolve().unwrap(), SocketAddr::from(([127, 0, 0, 1], 2003)));
        assert_eq!(endpoint.to_string(), "graphite+tcp://127.0.0.1:2003");
        assert!(
            "tsb+tcp://[::1]:4270"
                .parse::<Endpoint>()
                .unwrap()
                .resolve()
                .unwrap()
                .is_ipv6()
        );
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
            "graphite+udp://h:1",
            "carrier+tcp://h:1",
        ] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad}");
        }
    }
}
