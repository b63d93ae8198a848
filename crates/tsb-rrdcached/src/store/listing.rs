//! Lists the series for which the daemon has files.

use std::path::Path;

use tsb_core::SeriesKey;

use crate::connection::Connection;
use tsb_stores::error::{Error, Result};
use tsb_stores::rrd::client::key_of;

/// The series whose files begin with `prefix`, sorted. It only lists names: no file is created,
/// written or read.
///
/// # Errors
/// [`Error::Backend`] if the daemon cannot be reached, [`Error::Unsupported`] if it is older than
/// rrdcached 1.7, which has no `LIST`.
pub fn series(socket: &Path, prefix: &str) -> Result<Vec<SeriesKey>> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| Error::Backend {
        action: format!("list files (rrdcached at {})", socket.display()),
        source: error,
    };
    let mut connection = Connection::open(socket).map_err(|error| failed(error.into()))?;
    let replies = connection
        .ask("LIST RECURSIVE /\n")
        .map_err(|error| failed(error.into()))?;
    let reply = replies
        .into_iter()
        .next()
        .ok_or_else(|| failed("it says nothing".into()))?;
    if reply.text.starts_with("Unknown command") {
        return Err(Error::Unsupported {
            store: format!("the rrdcached at {}", socket.display()),
            what: "the command LIST, which it has from version 1.7 on",
        });
    }
    if !reply.is_ok {
        return Err(failed(reply.text.into()));
    }
    let names = reply
        .lines
        .iter()
        .filter_map(|name| name.trim_start_matches('/').strip_prefix(prefix));
    let mut keys: Vec<SeriesKey> = names.filter_map(|name| key_of(Path::new(name))).collect();
    keys.sort_unstable();
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A daemon with this reply to the first command.
    fn series_from(says: &'static str) -> Result<Vec<SeriesKey>> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let daemon = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap())
                .read_line(&mut line)
                .unwrap();
            stream.write_all(says.as_bytes()).unwrap();
            line
        });
        let series = series(&socket, "run1/");
        assert_eq!(daemon.join().unwrap(), "LIST RECURSIVE /\n");
        series
    }

    #[test]
    fn files_of_the_prefix_are_series_and_others_are_not() {
        let says = "4 RRDs\nrun1/cpu{host=b}.rrd\nrun2/cpu.rrd\nrun1/cpu{host=a}.rrd\nrun1/mem%20free.rrd\n";
        let names: Vec<String> = series_from(says).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["cpu{host=a}", "cpu{host=b}", "mem free"]);
        assert_eq!(series_from("0 RRDs\n").unwrap(), []);
    }

    #[test]
    fn a_daemon_without_the_command_is_too_old_and_other_errors_are_said() {
        let error = series_from("-1 Unknown command: LIST\n").unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains("from version 1.7 on"), "{error}");
        let error = series_from("-1 List /: Permission denied\n").unwrap_err();
        assert!(matches!(error, Error::Backend { .. }), "{error:?}");
    }
}
