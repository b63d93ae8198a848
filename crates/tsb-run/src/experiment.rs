//! What every published experiment needs: the list of them, rounds in a random order that follows
//! from a seed, and a folder that is removed when it ends. What an experiment found is
//! [`tsb_core::report::experiment::Experiment`].

mod folder;
mod listed;
mod rounds;

pub use folder::Folder;
pub use listed::{EXPERIMENTS, Listed};
pub use rounds::{Turn, in_rounds};
