//! tsb's own binary protocol: series announced once, then dense rows of values.
//!
//! It shows the minimum cost of a wire. docs/formats/tsb-wire.md is a complete specification.
//! Integers are little endian; every frame has a magic, a sequence number and a checksum of all
//! its bytes. In a stream, frames are numbered (version 1); in datagrams, samples are (version 2),
//! so that a receiver knows exactly how many samples were lost.
//!
//! It is *not* a storage format, and the receiver never answers.

mod account;
mod announce;
mod datagram;
mod decode;
mod encode;
mod frame;
mod held_frames;
mod pack;
mod sample_frame;
mod table;

pub use datagram::TsbDatagramDecoder;
pub use decode::TsbDecoder;
pub use encode::TsbEncoder;
pub use pack::TsbPacker;

/// Maximum number of series that one connection can announce.
pub const MAX_SERIES: usize = 1 << 24;

/// Maximum length of one key's announcement, in bytes.
pub const MAX_KEY: usize = 32 << 10;

/// In a sender: marks a series that is not announced yet.
const UNKNOWN: u32 = u32::MAX;

/// Whether each id is one more than the one before.
fn is_range(ids: &[u32]) -> bool {
    let first = ids.first().copied().unwrap_or_default();
    let steps = ids.iter().enumerate();
    // No early exit, so that it compiles to a few wide comparisons.
    steps.fold(true, |same, (index, id)| {
        same & (*id == first.wrapping_add(index as u32))
    })
}

/// The first of the ids, if they are consecutive and all announced.
#[inline]
fn known_range(ids: &[u32]) -> Option<u32> {
    let first = ids.first().copied()?;
    (first != UNKNOWN && is_range(ids)).then_some(first)
}

#[cfg(test)]
mod datagram_tests;
#[cfg(test)]
mod tests;
