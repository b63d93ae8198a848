//! Finds free ports.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// `N` different free ports of the loopback address.
///
/// They are free when this returns; who takes one first after that has it, and a server
/// that comes second says so in its log.
pub(super) fn free<const N: usize>() -> Result<[u16; N]> {
    // Held until all are known, so that no port is given twice.
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port of 127.0.0.1 is free")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ() {
        let mut ports = free::<16>().expect("there are sixteen");
        ports.sort_unstable();
        assert!(ports.is_sorted_by(|a, b| a < b), "{ports:?}");
    }
}
