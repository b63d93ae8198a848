//! tsb's own binary protocol: series announced once, then dense rows of values.
//!
//! The reference for what a wire can cost at the least. The document, complete enough to
//! write a sender or receiver from, is docs/formats/tsb-wire.md. Everything is little
//! endian; every frame bears a magic, a sequence number and a checksum of all its bytes.
//!
//! It is *not* a storage format, and the receiver answers nothing.

mod announce;
mod decode;
mod encode;
mod frame;

pub use decode::TsbDecoder;
pub use encode::TsbEncoder;

/// The most series that one connection can announce.
pub const MAX_SERIES: usize = 1 << 24;

/// The longest announcement of one key, in bytes.
pub const MAX_KEY: usize = 32 << 10;

/// Whether each id is one more than the one before.
fn is_range(ids: &[u32]) -> bool {
    let first = ids.first().copied().unwrap_or_default();
    let steps = ids.iter().enumerate();
    // No early exit: that makes it a few wide compares.
    steps.fold(true, |same, (index, id)| {
        same & (*id == first.wrapping_add(index as u32))
    })
}

#[cfg(test)]
mod tests;
