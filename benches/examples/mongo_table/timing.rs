//! Starts workers at the same time, and measures their cost and the server's.

use std::sync::Barrier;

use tsb_core::resource::{Listening, Process, listeners};
use tsb_core::time::{Clock, MonotonicClock, process_cpu_ns};

/// One run.
pub(crate) struct Measured {
    pub(crate) samples: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) client_cpu_ns: u64,
    pub(crate) server_cpu_ns: u64,
    /// Bytes on disk after a checkpoint.
    pub(crate) bytes: u64,
}

impl Measured {
    pub(crate) fn rate(&self) -> f64 {
        self.samples as f64 / (self.elapsed_ns as f64 / 1e9)
    }
}

/// The process that listens at a local address.
pub(crate) fn listener(address: &str) -> u32 {
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let found = listeners(&[Listening::Port(port.expect("HOST:PORT"))]);
    *found.first().expect("a server of this machine listens there")
}

/// Runs the workers, each in a thread of its own.
pub(crate) fn run(server: u32, samples: u64, workers: Vec<impl FnOnce() + Send>) -> Measured {
    let clock = MonotonicClock::new();
    let start = Barrier::new(workers.len() + 1);
    let server = Process::watch(server).expect("the server lives");
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .into_iter()
            .map(|work| {
                scope.spawn(|| {
                    start.wait();
                    work();
                })
            })
            .collect();
        let (client_ns, idle) = (process_cpu_ns(), server.usage().expect("the server lives"));
        let begun_ns = clock.now();
        start.wait();
        for thread in threads {
            thread.join().expect("a worker that wrote everything");
        }
        let elapsed_ns = clock.now() - begun_ns;
        let busy = server.usage().expect("the server lives");
        let cpu_ns = |usage: &tsb_core::resource::Usage| usage.user_cpu_ns + usage.system_cpu_ns;
        Measured {
            samples,
            elapsed_ns,
            client_cpu_ns: process_cpu_ns() - client_ns,
            server_cpu_ns: cpu_ns(&busy) - cpu_ns(&idle),
            bytes: 0,
        }
    })
}
