//! Addresses of servers: `//[user:password@]host[:port][,host...]/DATABASE`, or a prefix in place of the
//! database.

use std::fmt;

use tsb_stores::error::{Error, Result};
use tsb_stores::secret::Credentials;

/// `HOST:PORT` of a host that may name a port. An IPv6 address stands in brackets: `[::1]`.
pub fn host_with_port(host: &str, default_port: u16) -> String {
    match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => host.to_owned(),
        _ => format!("{host}:{default_port}"),
    }
}

/// An address. It is printed without its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    credentials: Option<Credentials>,
    /// `HOST[:PORT]`, separated by commas.
    hosts: String,
    place: String,
}

impl Address {
    /// Parses the part of a spec between the scheme and the options. `what` is the server's word
    /// for a place: a database, a prefix.
    ///
    /// # Errors
    /// [`Error::Spec`] naming what is missing.
    pub fn parse(scheme: &str, what: &str, path: &str) -> Result<Self> {
        let wrong = |why: &str| Error::Spec {
            spec: format!("{scheme}:"),
            what: format!(
                "{why}; write {scheme}://HOST[:PORT][,HOST...]/{}",
                what.to_ascii_uppercase()
            ),
        };
        let rest = path.strip_prefix("//").ok_or_else(|| wrong("there are no slashes"))?;
        let (authority, place) = rest
            .rsplit_once('/')
            .ok_or_else(|| wrong(&format!("no {what} is named")))?;
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (Some(Credentials::of_address(credentials)), hosts),
            None => (None, authority),
        };
        if hosts.split(',').any(str::is_empty) || hosts.contains('/') {
            return Err(wrong("a host is missing"));
        }
        // MongoDB's rule, which also keeps the name free of characters that need quoting.
        let is_odd = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if place.is_empty() || place.len() > 63 || place.contains(is_odd) {
            return Err(wrong(&format!("a {what} has 1 to 63 letters, digits, _ and -")));
        }
        Ok(Self {
            credentials,
            hosts: hosts.to_owned(),
            place: place.to_owned(),
        })
    }

    /// The same address with credentials that do not stand in it. The caller has read them, from a file or
    /// the environment; this crate reads neither.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self {
            credentials: Some(credentials),
            ..self
        }
    }

    /// The part of the server that is used: a database or a prefix.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The user and the password.
    pub const fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// `HOST[:PORT]`, separated by commas; [`host_with_port`] adds a port that is not named.
    pub fn hosts(&self) -> &str {
        &self.hosts
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = if self.credentials.is_some() { "***@" } else { "" };
        write!(f, "{user}{}/{}", self.hosts, self.place)
    }
}

// By hand: a derived one would print the credentials.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Result<Address> {
        Address::parse("mongo", "database", path)
    }

    #[test]
    fn an_address_shows_no_credentials() {
        let address = parse("//me:p%40ss@a:1,b/runs").unwrap();
        assert_eq!(address.to_string(), "***@a:1,b/runs");
        assert_eq!(format!("{address:?}"), "Address(***@a:1,b/runs)");
        assert_eq!(address.credentials().map(Credentials::password), Some("p@ss"));
        assert_eq!((address.hosts(), address.place()), ("a:1,b", "runs"));
        let given = Credentials::parse("me:x").unwrap();
        let given = parse("//a/runs").unwrap().with_credentials(given);
        assert_eq!(given.credentials().map(Credentials::user), Some("me"));
    }

    #[test]
    fn a_host_without_a_port_gets_the_default_one() {
        for (host, expected) in [
            ("db", "db:9"),
            ("db:1", "db:1"),
            ("[::1]", "[::1]:9"),
            ("[::1]:1", "[::1]:1"),
        ] {
            assert_eq!(host_with_port(host, 9), expected);
        }
    }

    #[test]
    fn the_error_names_what_is_missing() {
        for (path, what) in [
            ("a/runs", "no slashes"),
            ("//a", "no database"),
            ("//a/", "a database has 1 to 63"),
            ("///runs", "a host is missing"),
            ("//a,,b/runs", "a host is missing"),
            ("//a/ru.ns", "1 to 63"),
        ] {
            let error = parse(path).unwrap_err().to_string();
            assert!(error.contains(what), "{path}: {error}");
            assert!(error.contains("mongo://HOST[:PORT][,HOST...]/DATABASE"), "{error}");
        }
    }
}
