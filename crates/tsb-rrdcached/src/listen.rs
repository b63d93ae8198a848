//! Listens for the clients of a cache of files.

use std::sync::Arc;

use tsb_core::net::{Address, Intake, ListenOptions, Listener, NetError, Runtime};
use tsb_core::time::Clock;
use tsb_core::wire::rrdcached::NoSeries;

use crate::files::{Conversation, FileCache};

/// Serves `cache` to every client that connects to `address`. `options.ingest_threads` threads
/// execute the commands, and a flush blocks the other clients of its thread.
///
/// Drop the listener before [`FileCache::close`]: what its clients had sent is then taken.
///
/// # Errors
/// [`NetError::Bind`], or [`NetError::Start`] when there is no thread to spare.
pub fn listen(
    runtime: &Runtime,
    address: &Address,
    options: ListenOptions,
    cache: &Arc<FileCache>,
    clock: Arc<dyn Clock>,
) -> Result<Listener, NetError> {
    let cache = Arc::clone(cache);
    let intake = move |_: &Address| Intake {
        decoder: Box::new(Conversation::new(Arc::clone(&cache))),
        sink: Box::new(NoSeries),
    };
    Listener::bind(runtime.handle(), address, options, intake, clock, None)
}

#[cfg(test)]
mod tests {
    use tsb_core::time::MonotonicClock;
    use tsb_stores::write_cache::WriteCacheOptions;

    use super::*;
    use crate::{Connection, FileBounds, Reply};

    fn ask(client: &mut Connection, command: &str) -> Reply {
        client.send(command).unwrap();
        let reply = client.reply().unwrap();
        assert!(reply.is_ok, "{command}{}", reply.text);
        reply
    }

    #[test]
    fn all_clients_of_a_socket_share_one_cache_and_its_end_writes_what_they_sent() {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let (bounds, options) = (FileBounds::of_files(1), WriteCacheOptions::default());
        let cache = FileCache::open(&folder.path().join("base"), bounds, &options, Arc::clone(&clock)).unwrap();
        let cache = Arc::new(cache);
        let runtime = Runtime::start().unwrap();
        let socket = folder.path().join("socket");
        let address = Address::Unix(socket.clone());
        let listener = listen(&runtime, &address, ListenOptions::default(), &cache, clock).unwrap();
        let [mut one, mut other] = [(); 2].map(|()| Connection::open(&socket).unwrap());
        ask(
            &mut one,
            "CREATE a.rrd -s 1 -b 1699999999 DS:a:GAUGE:120:U:U RRA:LAST:0.5:1:9\n",
        );
        ask(&mut one, "UPDATE a.rrd 1700000000:7\n");
        assert_eq!(ask(&mut other, "PENDING a.rrd\n").lines, ["1700000000:7"]);
        drop(listener);
        assert!(Connection::open(&socket).is_err());
        cache.close().unwrap();
        assert_eq!(cache.stats().account.written, 1);
    }
}
