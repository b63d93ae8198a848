//! Stores that are wrong in one way each, in the process of the test: what a run, and a later
//! verification, say of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "../support/faulty_store.rs"]
mod faulty_store;
mod liars;
#[path = "../support/program.rs"]
mod program;
mod stuck;
mod unanswered;
mod verify;
