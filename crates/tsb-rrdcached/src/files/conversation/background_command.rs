//! Runs one slow command of a client on a thread of its own.
//!
//! A connection shares its thread with other connections, which must not wait for the command.
//! The connection itself waits: replies are in the order of the commands.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::task::Waker;

use super::execute::CommandResult;

/// The running command of a connection; at most one.
#[derive(Debug, Default)]
pub(super) struct BackgroundCommand {
    outcome: Option<Receiver<CommandResult>>,
    waker: Option<Waker>,
}

/// The error if the thread panicked.
const UNFINISHED: &str = "the command was not finished";

impl BackgroundCommand {
    /// Sets the waker to call when a command is done. Without one, [`BackgroundCommand::start`]
    /// blocks.
    pub(super) fn wake_with(&mut self, waker: &Waker) {
        self.waker = Some(waker.clone());
    }

    /// Whether a command is running.
    pub(super) fn is_busy(&self) -> bool {
        self.outcome.is_some()
    }

    /// Starts `work` on a new thread; without a waker, runs it at once.
    pub(super) fn start(&mut self, work: impl FnOnce() -> CommandResult + Send + 'static) -> CommandResult {
        let Some(waker) = self.waker.clone() else {
            return work();
        };
        let (done, outcome) = sync_channel(1);
        let run = move || {
            // Dropped last, also by a panic: it wakes after the channel has closed.
            let _wakes = WakeOnDrop(waker);
            let done = done;
            // The connection may be gone.
            let _ = done.send(work());
        };
        let thread = std::thread::Builder::new().name("tsb-cache-create".to_owned());
        thread
            .spawn(run)
            .map_err(|error| format!("no thread to spare: {error}"))?;
        self.outcome = Some(outcome);
        Ok(())
    }

    /// The outcome, if the command is done.
    pub(super) fn poll(&mut self) -> Option<CommandResult> {
        let outcome = match self.outcome.as_ref()?.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(UNFINISHED.to_owned()),
        };
        self.outcome = None;
        Some(outcome)
    }

    /// Waits for the outcome.
    pub(super) fn wait(&mut self) -> Option<CommandResult> {
        let outcome = self.outcome.take()?.recv();
        Some(outcome.unwrap_or_else(|_| Err(UNFINISHED.to_owned())))
    }
}

/// Calls the waker when it is dropped.
struct WakeOnDrop(Waker);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use tempfile::tempdir;
    use tsb_core::time::MonotonicClock;
    use tsb_core::wire::rrdcached::NoSeries;
    use tsb_core::wire::{Decoder, Next, Peer};

    use super::super::super::FileBounds;
    use super::super::{Conversation, FileCache};
    use super::*;
    use tsb_stores::parts::lock;
    use tsb_stores::write_cache::WriteCacheOptions;

    struct SendOnWake(std::sync::Mutex<std::sync::mpsc::SyncSender<()>>);

    impl Wake for SendOnWake {
        fn wake(self: Arc<Self>) {
            let _ = self.0.lock().unwrap().send(());
        }
    }

    /// Issue 15: while a large file was created, the clients of the same thread waited.
    #[test]
    fn a_large_file_is_created_while_the_thread_serves_others() {
        let folder = tempdir().unwrap();
        let (options, clock) = (WriteCacheOptions::default(), Arc::new(MonotonicClock::new()));
        let cache = FileCache::open(&folder.path().join("base"), FileBounds::of_files(10), &options, clock);
        let cache = Arc::new(cache.unwrap());
        let mut conversation = Conversation::new(Arc::clone(&cache));
        let (woken, wakes) = sync_channel(16);
        conversation.wake_with(&Waker::from(Arc::new(SendOnWake(woken.into()))));
        let peer = Peer {
            rejected: 0,
            is_listening: true,
        };
        let turn = lock(&cache.creating);
        let commands = b"CREATE large.rrd -s 10 DS:v:GAUGE:20:U:U RRA:AVERAGE:0.5:1:200000\nPING\n";
        let taken = conversation.decode(commands, &mut NoSeries).unwrap();
        let mut replies = Vec::new();
        assert_eq!(conversation.answer(peer, &mut replies), Next::Later);
        assert_eq!(&commands[taken..], b"PING\n", "the next command waits for its turn");
        assert_eq!(conversation.decode(&commands[taken..], &mut NoSeries).unwrap(), 0);
        assert!(replies.is_empty());
        drop(turn);
        wakes.recv().unwrap();
        assert_eq!(conversation.decode(&commands[taken..], &mut NoSeries).unwrap(), 5);
        assert_eq!(conversation.answer(peer, &mut replies), Next::More);
        assert_eq!(String::from_utf8(replies).unwrap(), "0 RRD created OK\n0 PONG\n");
        cache.close().unwrap();
    }
}
