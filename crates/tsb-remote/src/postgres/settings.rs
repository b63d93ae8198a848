//! What the server's settings make of an ack.

use tsb_core::Durability;

use super::options::SynchronousCommit;

/// The settings that decide what an ack is worth, as `SHOW` answers them in a session.
///
/// | `synchronous_commit` | `fsync` | level of an ack |
/// | --- | --- | --- |
/// | `off` | any | volatile: the log is still in the server's memory, for up to three times `wal_writer_delay` |
/// | any other | `off` | buffered: the log is with the operating system, and is never synced |
/// | any other | `on` | synced |
///
/// <https://www.postgresql.org/docs/current/runtime-config-wal.html>
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    synchronous_commit: SynchronousCommit,
    fsync: bool,
    /// Number of standbys that a commit waits for.
    standbys: u32,
}

impl Settings {
    /// From the values of `synchronous_commit`, `fsync` and `synchronous_standby_names`; `None`
    /// for a value that this client does not know.
    pub fn parse(synchronous_commit: &str, fsync: &str, standby_names: &str) -> Option<Self> {
        Some(Self {
            synchronous_commit: SynchronousCommit::parse(synchronous_commit)?,
            fsync: match fsync {
                "on" => true,
                "off" => false,
                _ => return None,
            },
            standbys: standbys(standby_names),
        })
    }

    /// The level that an ack has.
    pub fn acknowledges(&self) -> Durability {
        if self.synchronous_commit == SynchronousCommit::Off {
            Durability::Volatile
        } else {
            self.reaches()
        }
    }

    /// The highest level that a flush can reach.
    pub fn reaches(&self) -> Durability {
        if self.fsync {
            Durability::Synced
        } else {
            Durability::Buffered
        }
    }

    /// Number of machines on which an acknowledged sample has that level. A standby that has only
    /// written its log does not count.
    pub fn copies(&self) -> u32 {
        match self.synchronous_commit {
            SynchronousCommit::On | SynchronousCommit::RemoteApply => 1 + self.standbys,
            _ => 1,
        }
    }
}

/// The number of standbys that `synchronous_standby_names` makes a commit wait for: `FIRST 2 (a,
/// b, c)`, `ANY 2 (a, b, c)`, `2 (a, b, c)`, or a list of names, of which one is waited for.
fn standbys(names: &str) -> u32 {
    let names = names.trim();
    if names.is_empty() {
        return 0;
    }
    let Some((head, _)) = names.split_once('(') else {
        return 1;
    };
    let count = head.split_whitespace().next_back();
    count.and_then(|count| count.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_is_worth_what_the_settings_say() {
        let of = |commit: &str, fsync: &str| {
            let settings = Settings::parse(commit, fsync, "").unwrap();
            (settings.acknowledges(), settings.reaches())
        };
        assert_eq!(of("on", "on"), (Durability::Synced, Durability::Synced));
        assert_eq!(of("local", "on"), (Durability::Synced, Durability::Synced));
        assert_eq!(of("off", "on"), (Durability::Volatile, Durability::Synced));
        assert_eq!(of("on", "off"), (Durability::Buffered, Durability::Buffered));
        assert_eq!(of("off", "off"), (Durability::Volatile, Durability::Buffered));
        assert_eq!(Settings::parse("sometimes", "on", ""), None);
        assert_eq!(Settings::parse("on", "perhaps", ""), None);
    }

    #[test]
    fn a_standby_counts_where_its_log_is_synced() {
        let copies = |commit: &str, names: &str| Settings::parse(commit, "on", names).unwrap().copies();
        assert_eq!(copies("on", ""), 1);
        assert_eq!(copies("on", "a, b"), 2);
        assert_eq!(copies("on", "ANY 2 (a, b, c)"), 3);
        assert_eq!(copies("remote_apply", "FIRST 1 (a)"), 2);
        assert_eq!(copies("on", "2 (a, b)"), 3);
        for commit in ["off", "local", "remote_write"] {
            assert_eq!(copies(commit, "ANY 2 (a, b, c)"), 1, "{commit}");
        }
    }
}
