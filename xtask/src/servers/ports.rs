//! Finds free ports.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// Ports of servers: below those that Linux gives to clients, whose connections could take one before
/// the server listens.
const PORTS: Range<u16> = 10_000..32_000;
/// Ports of them that this process has tried.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// `N` different free ports of the loopback address, each given once by this process.
///
/// They are free when this returns; who takes one first after that has it, and a server
/// that comes second says so in its log.
pub(super) fn free<const N: usize>() -> Result<[u16; N]> {
    // Processes that look at one time begin far from each other.
    let first = std::process::id().wrapping_mul(97);
    let mut ports = [0; N];
    for port in &mut ports {
        let mut candidates = PORTS.map(|_| {
            let place = first.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % PORTS.len() as u32;
            PORTS.start + place as u16
        });
        let free = candidates.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
        *port = free.context("no port of 127.0.0.1 is free")?;
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_are_no_clients() {
        let mut ports = free::<16>().expect("there are sixteen");
        ports.sort_unstable();
        assert!(ports.is_sorted_by(|a, b| a < b), "{ports:?}");
        assert!(ports.iter().all(|port| PORTS.contains(port)), "{ports:?}");
    }
}
