//! Finds the processes on this machine that listen on a port or a Unix socket, from proc_net(5)
//! and each process's open files. Processes of other users are visible only with privileges.

use std::collections::HashSet;
use std::fs;

/// A place on this machine where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listening {
    /// A TCP port.
    Port(u16),
    /// The path of a Unix socket, as given to the server.
    Path(String),
}

/// The processes that listen on any of the places, in ascending order; empty if there are none.
pub fn listeners(places: &[Listening]) -> Vec<u32> {
    let table = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let (tcp, unix) = (table("tcp") + &table("tcp6"), table("unix"));
    let is_asked = |place: Listening| places.contains(&place);
    let ports = tcp.lines().filter_map(tcp_listener);
    let paths = unix.lines().filter_map(unix_listener);
    let inodes: HashSet<u64> = ports
        .chain(paths)
        .filter(|(place, _)| is_asked(place.clone()))
        .map(|(_, inode)| inode)
        .collect();
    if inodes.is_empty() {
        return Vec::new();
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<u32> = pids.filter(|pid| holds_any(*pid, &inodes)).collect();
    found.sort_unstable();
    found
}

/// Whether a process has one of these sockets open.
fn holds_any(pid: u32, inodes: &HashSet<u64>) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
        .any(|inode: u64| inodes.contains(&inode))
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
