//! The older experiment in the repository of HM9000's benchmark (`old/phd` and `old/phdaws`): a batch
//! of records of random letters, by requests in flight and size of a record, and a heartbeat by
//! number of apps, each written into a fresh place of a store of keys, read back and compared.

mod answer;
mod batch;
mod content;
mod experiment;
mod requests;

pub use experiment::{MISTAKES, Request, measure, rows};

/// Requests in flight while a heartbeat is written, as HM9000's configuration has them.
pub const APPS_IN_FLIGHT: usize = 30;
/// Instances of an app.
pub const INSTANCES: usize = 2;
