//! The address of a listener for Hawkular's clients: `hawkular+http://127.0.0.1:8080`.

use std::net::ToSocketAddrs;

use tsb_core::net::Address;
use tsb_core::wire::http::hawkular::{Backend, Behaviour, HawkularOptions};
use tsb_run::spec::Typed;

use crate::endpoint::parse_idle;

const SCHEME: &str = "hawkular+http://";

const FORM: &str = "it has the form hawkular+http://HOST:PORT, such as hawkular+http://127.0.0.1:8080";

const OPTIONS: &str = "its options are behaviour, backend and idle, such as ?behaviour=head";

/// What an address asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) address: Address,
    pub(super) answers: HawkularOptions,
    /// Idle timeout in nanoseconds, if given; 0: none.
    pub(super) idle_ns: Option<u64>,
}

/// Whether a listener is for Hawkular's clients.
pub(super) fn is_for(url: &Typed) -> bool {
    url.expose().starts_with("hawkular+")
}

/// The URL with the address that the listener is bound to.
pub(super) fn url_at(address: &Address) -> String {
    format!("{SCHEME}{address}")
}

impl Asked {
    /// Parses an address. Without an option, the backend is the one that Mohawk had for the store.
    pub(super) fn read(url: &str, store_scheme: &str) -> Result<Self, String> {
        let rest = url.strip_prefix(SCHEME).ok_or(FORM)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let place = place.strip_suffix('/').unwrap_or(place);
        let (mut behaviour, mut backend, mut idle_ns) = (Behaviour::default(), None, None);
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or(OPTIONS)?;
            match name {
                "behaviour" => behaviour = one_of(name, value, &Behaviour::ALL.map(|known| (known.name(), known)))?,
                "backend" => backend = Some(one_of(name, value, &Backend::ALL.map(|known| (known.name(), known)))?),
                "idle" => idle_ns = Some(parse_idle(value).map_err(|why| format!("option idle: {why}"))?),
                _ => return Err(format!("unknown option {name:?}; {OPTIONS}")),
            }
        }
        if backend.is_some() && behaviour == Behaviour::Corrected {
            return Err("option backend: it does nothing with behaviour=corrected".to_owned());
        }
        let backend = backend.unwrap_or(match store_scheme {
            "sqlite" => Backend::Sqlite3,
            "mongo" => Backend::Mongo,
            _ => Backend::Memory,
        });
        let mut addresses = place
            .to_socket_addrs()
            .map_err(|error| format!("{place}: {error}; {FORM}"))?;
        Ok(Self {
            address: addresses.next().map(Address::Inet).ok_or(FORM)?,
            answers: HawkularOptions { behaviour, backend },
            idle_ns,
        })
    }
}

fn one_of<T: Copy>(name: &str, value: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(known, _)| *known == value);
    found.map(|(_, found)| *found).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("option {name}: unknown {value:?}; known are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backend_follows_from_the_store_unless_it_is_named() {
        let backend = |url: &str, scheme: &str| Asked::read(url, scheme).unwrap().answers.backend;
        assert_eq!(backend("hawkular+http://127.0.0.1:8080", "ring"), Backend::Memory);
        assert_eq!(backend("hawkular+http://127.0.0.1:8080/", "sqlite"), Backend::Sqlite3);
        assert_eq!(backend("hawkular+http://127.0.0.1:8080", "mongo"), Backend::Mongo);
        assert_eq!(
            backend("hawkular+http://127.0.0.1:1?backend=memory", "sqlite"),
            Backend::Memory
        );
        let asked = Asked::read("hawkular+http://127.0.0.1:1?behaviour=head&idle=off", "ring").unwrap();
        assert_eq!((asked.answers.behaviour, asked.idle_ns), (Behaviour::Head, Some(0)));
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said() {
        for (url, why) in [
            ("hawkular+tcp://127.0.0.1:1", "hawkular+http://HOST:PORT"),
            ("hawkular+http://127.0.0.1", "hawkular+http://HOST:PORT"),
            (
                "hawkular+http://127.0.0.1:1?behaviour=0.9",
                "known are 0.15.4, head, corrected",
            ),
            (
                "hawkular+http://127.0.0.1:1?backend=redis",
                "known are memory, sqlite3, mongo",
            ),
            ("hawkular+http://127.0.0.1:1?gzip=on", "behaviour, backend and idle"),
            ("hawkular+http://127.0.0.1:1?idle=x", "option idle"),
            (
                "hawkular+http://127.0.0.1:1?behaviour=corrected&backend=mongo",
                "does nothing",
            ),
        ] {
            let said = Asked::read(url, "ring").unwrap_err();
            assert!(said.contains(why), "{url}: {said}");
        }
    }
}
