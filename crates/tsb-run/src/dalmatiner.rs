//! DalmatinerDB's production benchmark, the fourth published experiment: one stream of kernel
//! statistics for every target, with what each keeps, costs, answers, and loses when it is killed.
//!
//! ```
//! use tsb_run::dalmatiner::compressed_bits;
//!
//! // "8.65 bit/point" was never measured: it is the nine bytes of a point over a pool's ratio.
//! assert_eq!(format!("{:.2}", compressed_bits(9, 8.32)), "8.65");
//! ```

mod experiment;
mod feed;
mod files;
mod history;
mod kill;
mod opened;
mod queries;
mod target;

pub use experiment::{MISTAKES, Request, compressed_bits, measure, rows};
pub use target::{DalmatinerTarget, TargetWay};
