//! The program as its users start it: real processes, sockets and files. One test program, so that
//! it is linked once and the tests of all files wait beside each other.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set up has failed"
)]

mod canary;
mod cli;
#[cfg(feature = "dalmatiner")]
mod dalmatiner;
mod damage;
mod damaged_files;
mod documents;
mod emitted;
mod flags;
mod hawkular;
mod help;
#[cfg(feature = "hosts")]
mod hosts;
#[path = "../support/ingest.rs"]
mod ingest;
#[path = "../support/interrupt.rs"]
mod interrupt;
mod intervals;
mod journal;
mod live;
mod lossy;
#[path = "../support/output.rs"]
mod output;
mod outputs;
mod partial;
mod peers;
mod places;
#[path = "../support/program.rs"]
mod program;
mod queries;
#[cfg(feature = "sqlite")]
mod query;
#[cfg(feature = "sqlite")]
mod recordings;
mod report;
mod reproduce;
#[path = "../support/running.rs"]
mod running;
mod scenarios;
#[path = "../support/screen.rs"]
mod screen;
mod secrets;
#[path = "../rrdcached/server.rs"]
#[expect(dead_code, reason = "other tests kill the server and speak to it")]
mod server;
mod signals;
#[path = "../support/snapshot.rs"]
mod snapshot;
#[cfg(feature = "sqlite")]
mod sqlite;
mod terminals;
mod thresholds;
mod verdicts;
