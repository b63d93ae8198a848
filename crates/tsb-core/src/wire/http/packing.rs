//! How bodies are compressed: with gzip where a client wants it, as a snappy block where the
//! protocol asks for it.

use std::fmt;

use super::gzip::Gzip;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// It is not.
    #[default]
    None,
    /// gzip, RFC 1952.
    Gzip,
    /// One block of snappy, without its framing.
    Snappy,
}

/// Compresses bodies, reusing its buffers.
#[derive(Debug)]
pub enum BodyPacker {
    /// Leaves them as they are.
    None,
    /// With gzip.
    Gzip(Gzip),
    /// With snappy.
    Snappy(Box<Snappy>),
}

impl From<Packing> for BodyPacker {
    fn from(packing: Packing) -> Self {
        match packing {
            Packing::None => Self::None,
            Packing::Gzip => Self::Gzip(Gzip::default()),
            Packing::Snappy => Self::Snappy(Box::default()),
        }
    }
}

impl BodyPacker {
    /// Replaces the bytes from `start` on by their compressed form.
    pub fn pack(&mut self, bytes: &mut Vec<u8>, start: usize) {
        match self {
            Self::None => {}
            Self::Gzip(gzip) => gzip.pack(bytes, start),
            Self::Snappy(snappy) => snappy.pack(bytes, start),
        }
    }
}

/// Compresses blocks with snappy. Allocates only for a body larger than all before.
pub struct Snappy {
    encoder: snap::raw::Encoder,
    content: Vec<u8>,
}

impl Default for Snappy {
    fn default() -> Self {
        let (encoder, content) = (snap::raw::Encoder::new(), Vec::new());
        Self { encoder, content }
    }
}

impl Snappy {
    /// Replaces the bytes from `start` on, at most 4 GiB, by their compressed form.
    pub fn pack(&mut self, bytes: &mut Vec<u8>, start: usize) {
        self.content.clear();
        self.content.extend_from_slice(&bytes[start..]);
        let most = snap::raw::max_compress_len(self.content.len());
        bytes.resize(start + most, 0);
        // It fails for a longer content alone, or for less room than this.
        let length = self.encoder.compress(&self.content, &mut bytes[start..]);
        bytes.truncate(start + length.unwrap_or(0));
    }
}

impl fmt::Debug for Snappy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snappy").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_blocks_are_read_by_any_reader() {
        let mut packer = BodyPacker::from(Packing::Snappy);
        for content in [b"".as_slice(), b"a", &b"cpu value=1 5\n".repeat(20_000)] {
            let mut bytes = [b"head".as_slice(), content].concat();
            packer.pack(&mut bytes, 4);
            let (head, body) = bytes.split_at(4);
            let read = snap::raw::Decoder::new().decompress_vec(body).unwrap();
            assert!(head == b"head" && read == content);
        }
    }
}
