//! Sockets, from the tables of `proc_net(5)`.

use super::read;

/// A place on this machine where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listening {
    /// A TCP port.
    Port(u16),
    /// The path of a Unix socket, as given to the server.
    Path(String),
}

impl Listening {
    /// The port of `HOST:PORT`, if the host is this machine by its loopback address.
    pub fn of_local(host: &str) -> Option<Self> {
        let (name, port) = host.rsplit_once(':')?;
        let is_local = name.starts_with("127.") || ["localhost", "[::1]"].contains(&name);
        is_local.then(|| port.parse().ok().map(Self::Port)).flatten()
    }
}

/// All listening sockets, with their inodes.
pub fn listening_sockets() -> Vec<(Listening, u64)> {
    let table = |name: &str| read(&format!("/proc/net/{name}")).unwrap_or_default();
    let mut found = Vec::new();
    for tcp in ["tcp", "tcp6"] {
        found.extend(table(tcp).lines().filter_map(tcp_listener));
    }
    found.extend(table("unix").lines().filter_map(unix_listener));
    found
}

/// `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode`, in state LISTEN.
fn tcp_listener(line: &str) -> Option<(Listening, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    if fields.nth(1)? != "0A" {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((Listening::Port(port), fields.nth(5)?.parse().ok()?))
}

/// `num refcount protocol flags type st inode path`; the flags say whether the socket accepts
/// connections.
fn unix_listener(line: &str) -> Option<(Listening, u64)> {
    let mut fields = line.split_ascii_whitespace();
    if fields.nth(3)? != "00010000" {
        return None;
    }
    let inode = fields.nth(2)?.parse().ok()?;
    Some((Listening::Path(fields.next()?.to_owned()), inode))
}

/// Number of datagrams that the kernel dropped because the receive buffer of the UDP socket with
/// this inode was full. `None` if the socket is not in the tables.
///
/// The count that the kernel attaches to received datagrams (`SO_RXQ_OVFL`) is as of the moment
/// when each was queued, so it misses drops after the last datagram. The table includes them.
pub fn udp_drops(inode: u64) -> Option<u64> {
    ["/proc/net/udp", "/proc/net/udp6"]
        .into_iter()
        .find_map(|table| drops_in(&read(table)?, inode))
}

/// Finds the line of a socket. Columns are located by position and not by the header line, in
/// which two of the names each stand for a single column.
fn drops_in(table: &str, inode: u64) -> Option<u64> {
    const INODE: usize = 9;
    const DROPS: usize = 12;
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it = columns.get(INODE)?.parse::<u64>() == Ok(inode);
        is_it.then(|| columns.get(DROPS)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let tcp =
            "   0: 0100007F:8B47 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17711 1 0 100";
        assert_eq!(tcp_listener(tcp), Some((Listening::Port(35_655), 17_711)));
        assert_eq!(tcp_listener(&tcp.replace(" 0A ", " 01 ")), None);
        assert_eq!(tcp_listener("  sl  local_address rem_address   st"), None);
        let unix = "0000000000000000: 00000002 00000000 00010000 0001 01 23456 /tmp/a socket";
        assert_eq!(
            unix_listener(unix),
            Some((Listening::Path("/tmp/a".to_owned()), 23_456))
        );
        assert_eq!(unix_listener(&unix.replace("00010000", "00000000")), None);
    }

    #[test]
    fn the_drops_stand_in_the_last_column() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
            1042: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 18812 2 0000000000000000 0\n \
            1043: 0100007F:1F90 00000000:0000 07 00000000:00033A00 00:00000000 00000000     0        0 24601 2 0000000000000000 4887\n";
        assert_eq!(
            (drops_in(table, 24601), drops_in(table, 18812), drops_in(table, 7)),
            (Some(4887), Some(0), None)
        );
    }
}
