//! The kernel's count of datagrams that it dropped at a UDP socket: the last column of
//! /proc/net/udp.
//!
//! The count that the kernel attaches to received datagrams (`SO_RXQ_OVFL`) is as of the moment
//! when each was queued, so it misses drops after the last datagram. The table includes them.

use std::fs;

/// Number of datagrams that the kernel dropped because the receive buffer of the UDP socket with
/// this inode was full. `None` if the socket is not in the tables.
pub(super) fn of_socket(inode: u64) -> Option<u64> {
    ["/proc/net/udp", "/proc/net/udp6"]
        .into_iter()
        .find_map(|table| find(&fs::read_to_string(table).ok()?, inode))
}

/// Finds the line of a socket. Columns are located by position and not by the header line, in
/// which two of the names each stand for a single column.
fn find(table: &str, inode: u64) -> Option<u64> {
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
    fn the_drops_stand_in_the_last_column() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
            1042: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 18812 2 0000000000000000 0\n \
            1043: 0100007F:1F90 00000000:0000 07 00000000:00033A00 00:00000000 00000000     0        0 24601 2 0000000000000000 4887\n";
        assert_eq!(
            (find(table, 24601), find(table, 18812), find(table, 7)),
            (Some(4887), Some(0), None)
        );
    }
}
