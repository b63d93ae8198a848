//! Round-robin database files, created and updated byte for byte as librrd does.
//!
//! ```
//! use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout, RrdFile, Session};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let layout = Layout::new(
//!     300,
//!     vec![DataSource::new("load", DsKind::Gauge, 600)],
//!     vec![Archive::new(Cf::Average, 0.5, 1, 1440)],
//! )?;
//! let path = folder.path().join("load.rrd");
//! tsb_rrd::create(&path, &layout, 1_700_000_000, 7)?;
//! let file = RrdFile::open(&path)?;
//! let mut session = Session::default();
//! file.update(&mut session, &["1700000300:1.5", "1700000600:2.5"])?;
//! assert_eq!(file.newest(&mut session)?.seconds, 1_700_000_600);
//! # Ok(())
//! # }
//! ```
//!
//! The format is in [docs/formats/rrd.md](https://github.com/tsb-bench/tsb/blob/main/docs/formats/rrd.md). Handled are GAUGE, COUNTER, DERIVE, ABSOLUTE,
//! DCOUNTER and DDERIVE with AVERAGE, MIN, MAX and LAST, in the 64-bit little-endian form;
//! anything else is refused with its reason. It queues no updates: each is
//! written before the call returns, and nothing is synced unless asked.
//!
//! Written from the layout, the manual pages and differential tests against the installed
//! librrd; it holds none of its code.

mod cached_pages;
mod check;
mod create;
mod definition;
mod error;
mod exclusive_file;
mod fetch;
mod file;
mod header;
mod info;
mod layout;
mod live_header;
mod mapped;
mod number;
mod open_file;
mod parse;
mod read_ahead;
mod rows;
mod stamp;
mod system;
mod update;
mod write_policy;

pub use cached_pages::CachedPages;
pub use check::{check, check_plain};
pub use create::{create, new_header, replace};
pub use definition::{define, file_len_max, seconds};
pub use error::{Error, Result};
pub use exclusive_file::ExclusiveFile;
pub use fetch::{Fetched, Row, fetch, first, rows};
pub use file::{RrdFile, Session, Updated};
pub use info::{InfoValue, info};
pub use layout::{Archive, Cf, DataSource, DsKind, FORECASTS, Layout};
pub use live_header::LiveHeader;
pub use number::{difference, number};
pub use open_file::OpenFile;
pub use parse::Moment;
pub use read_ahead::{ReadAhead, Residency, Stage, update_time_s};
pub use rows::Rows;
pub use update::{Scratch, apply};
