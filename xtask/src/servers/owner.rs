//! Finds the process that listens on a port: the answering program may not be the one that was
//! started.

use std::fs;
use std::path::Path;

use crate::proc_files::stat_number;

/// The state of a listening socket in /proc/net/tcp.
const LISTENS: &str = "0A";

/// Whether a process of the group `group` listens on `port`. A server is started as the leader
/// of a group of its own, and may have children that listen for it.
pub(super) fn listens(group: u32, port: u16) -> bool {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inodes: Vec<String> = tables
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect();
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    !links.is_empty() && members(group).iter().any(|pid| holds(*pid, &links))
}

/// The inodes of the sockets that listen on `port`, from a table of the kernel.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local, 16).ok()? == port && fields.get(3) == Some(&LISTENS);
        is_it.then(|| fields.get(9).map(|&inode| inode.to_owned())).flatten()
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// The processes of a group.
fn members(group: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| group_of(pid) == Some(group)).collect()
}

/// The group of a process.
fn group_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat_number(&text, 5)?.try_into().ok()
}

fn holds(pid: u32, links: &[String]) -> bool {
    let entries = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd"));
    let targets = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    let mut names = targets.filter_map(|target| target.into_os_string().into_string().ok());
    names.any(|name| links.contains(&name))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_listener_is_found_in_its_group_and_in_no_other() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let own = group_of(std::process::id()).expect("we have a group");
        assert!(listens(own, port));
        assert!(!listens(u32::MAX, port));
        drop(listener);
        assert!(!listens(own, port));
    }

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1267 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n\
            1: 0100007F:1267 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4343 1\n";
        assert_eq!(listening_inodes(table, 0x1267), ["4242"]);
        assert!(listening_inodes(table, 0x1268).is_empty());
    }
}
