//! What is fuzzed: one line a target.
//!
//! The paths are spelled out because a test includes this file from elsewhere.

#[path = "targets/codec.rs"]
mod codec;
#[path = "targets/graphite.rs"]
mod graphite;
#[path = "targets/tsb.rs"]
mod tsb;

/// A reader of untrusted bytes. `check` panics when a promise is broken.
#[derive(Debug)]
pub(crate) struct Target {
    /// Also the directory of its corpus.
    pub(crate) name: &'static str,
    /// Feeds one input to the reader and asserts what it promises.
    pub(crate) check: fn(&[u8]),
}

/// Every target. A new one is a line here and a directory in `fixtures/fuzz`.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "graphite",
        check: graphite::check,
    },
    Target {
        name: "tsb",
        check: tsb::check,
    },
];
