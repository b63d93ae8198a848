//! What every published experiment needs: the list of them, rounds in a random order that follows
//! from a seed, a folder that is removed when it ends, and our endpoint in a process of its own.
//! What an experiment found is [`tsb_core::report::experiment::Experiment`].

mod folder;
mod ingest_process;
mod listed;
mod rounds;

pub use folder::Folder;
pub(crate) use ingest_process::{EndedIngest, IngestOptions, IngestProcess};
pub use listed::{EXPERIMENTS, Listed};
pub use rounds::{Turn, in_rounds};
