//! Runs in the process of the test, most of them into stores that are wrong in one way each: what a
//! run, and a later verification, say of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "../support/faulty_store.rs"]
mod faulty_store;
mod honesty;
mod liars;
#[path = "../support/output.rs"]
mod output;
#[path = "../support/program.rs"]
mod program;
mod runs;
mod stuck;
mod times;
mod unanswered;
mod verify;
