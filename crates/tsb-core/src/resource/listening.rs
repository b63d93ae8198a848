//! Finds the processes on this machine that listen on a port or a Unix socket.
//!
//! Processes of other users are visible only with privileges.

use std::collections::HashSet;

use crate::proc::{Listening, listening_sockets, processes, sockets_of};

/// The processes that listen on any of the places, in ascending order; empty if there are none.
pub fn listeners(places: &[Listening]) -> Vec<u32> {
    if places.is_empty() {
        return Vec::new();
    }
    let sockets = listening_sockets().into_iter();
    let inodes: HashSet<u64> = sockets
        .filter(|(place, _)| places.contains(place))
        .map(|(_, inode)| inode)
        .collect();
    if inodes.is_empty() {
        return Vec::new();
    }
    let holds_any = |pid: &u32| sockets_of(*pid).any(|inode| inodes.contains(&inode));
    let mut found: Vec<u32> = processes().filter(holds_any).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_by_its_port_and_its_path() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let own = [std::process::id()];
        let place = Listening::Port(port.local_addr().expect("it is bound").port());
        assert_eq!(listeners(std::slice::from_ref(&place)), own);
        drop(port);
        assert!(!listeners(&[place]).contains(&own[0]));
        let path = std::env::temp_dir().join(format!("tsb-listening-{}", own[0]));
        let socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket can be made");
        let found = listeners(&[Listening::Path(path.display().to_string())]);
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(found, own);
        drop(socket);
    }
}
