//! Converts an address to endpoints.

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use super::DEFAULT_PORT;
use super::options::EtcdOptions;
use crate::{Address, host_with_port};
use tsb_stores::error::{Error, Result};

/// One endpoint per host; an address has at least one.
pub(super) fn endpoints(address: &Address, options: &EtcdOptions) -> Result<Vec<Endpoint>> {
    let scheme = if options.tls { "https" } else { "http" };
    let hosts: Vec<&str> = address.hosts().split(',').collect();
    let wrong = |host: &str, error: tonic::transport::Error| Error::Spec {
        spec: "etcd:".to_owned(),
        what: format!("{host} is not a host: {error}"),
    };
    let endpoint = |host: &&str| -> Result<Endpoint> {
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", host_with_port(host, DEFAULT_PORT)));
        let endpoint = endpoint.map_err(|error| wrong(host, error))?;
        // Each member gets an equal share of the deadline.
        let endpoint = endpoint.connect_timeout(options.timeout / hosts.len() as u32);
        if !options.tls {
            return Ok(endpoint);
        }
        endpoint.tls_config(tls(options)?).map_err(|error| wrong(host, error))
    };
    hosts.iter().map(endpoint).collect()
}

fn tls(options: &EtcdOptions) -> Result<ClientTlsConfig> {
    let config = ClientTlsConfig::new();
    let Some(file) = &options.tls_ca else {
        return Ok(config.with_webpki_roots());
    };
    let pem = std::fs::read(file).map_err(|source| Error::Backend {
        action: format!("read the certificates in {}", file.display()),
        source: source.into(),
    })?;
    Ok(config.ca_certificate(Certificate::from_pem(pem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_etcds_port_unless_it_names_one() {
        let address = Address::parse("etcd", "prefix", "//a,b:1/runs").unwrap();
        let endpoints = endpoints(&address, &EtcdOptions::default()).unwrap();
        let uris: Vec<_> = endpoints.iter().map(|endpoint| endpoint.uri().to_string()).collect();
        assert_eq!(uris, ["http://a:2379/", "http://b:1/"]);
    }
}
