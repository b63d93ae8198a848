//! A storage device: measured through a file, and a deterministic model of what was measured.
//!
//! [`measure`] takes about four seconds and a file of 64 MiB by default ([`MeasureBounds`]). [`Device`] then
//! says when requests would be done, in virtual time and without touching a disk: a queue of
//! `depth` slots, a time for each request out of the measured ones, and a rate that all requests
//! share.
//!
//! ```
//! use tsb_core::report::device::{DeviceProfile, DeviceTimes};
//! use tsb_run::device::{Device, Request};
//!
//! let profile = DeviceProfile {
//!     is_direct: true,
//!     file_bytes: 1 << 26,
//!     depth: 16,
//!     read: DeviceTimes::constant(80_000),
//!     write: DeviceTimes::constant(60_000),
//!     sync: DeviceTimes::constant(200_000),
//!     reads_per_second: 100_000,
//!     writes_per_second: 100_000,
//!     read_bytes_per_second: 1 << 30,
//!     written_bytes_per_second: 1 << 30,
//!     writeback_pages_per_second: 100_000,
//! };
//! let mut device = Device::new(&profile, 1);
//! // One at a time takes what one takes; a hundred at once what their rate allows.
//! assert_eq!(device.submit(0, Request::Read(4_096)), 80_000);
//! let last = (0..100).map(|_| device.submit(1_000_000, Request::Read(4_096))).max();
//! assert!(last.is_some_and(|done| (1_900_000..2_100_000).contains(&done)));
//! ```

mod measure;
mod model;

#[cfg(test)]
pub(crate) use model::tests;

pub use measure::{MeasureBounds, measure};
pub use model::{Device, Request};
