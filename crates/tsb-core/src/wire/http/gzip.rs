//! Compresses bodies with gzip (RFC 1952), reusing one buffer.

use std::fmt;

use flate2::{Compress, Compression, FlushCompress, Status};

/// No name, no time, unknown operating system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Bytes by which the output buffer grows.
const ROOM: usize = 16 << 10;

/// Compresses bodies for speed rather than size: level 1. Allocates only for a body larger than
/// all before.
pub struct Gzip {
    deflate: Compress,
    packed: Vec<u8>,
}

impl Default for Gzip {
    fn default() -> Self {
        Self {
            deflate: Compress::new(Compression::fast(), false),
            packed: Vec::new(),
        }
    }
}

impl Gzip {
    /// Replaces the bytes from `start` on by their compressed form.
    pub fn pack(&mut self, bytes: &mut Vec<u8>, start: usize) {
        let content = &bytes[start..];
        self.packed.clear();
        self.packed.extend_from_slice(&HEADER);
        self.deflate.reset();
        loop {
            self.packed.reserve(ROOM);
            let rest = &content[self.deflate.total_in() as usize..];
            let status = self.deflate.compress_vec(rest, &mut self.packed, FlushCompress::Finish);
            // The output always has room, so only the end of the input or an error ends the loop.
            if !matches!(status, Ok(Status::Ok | Status::BufError)) {
                break;
            }
        }
        self.packed.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
        self.packed.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.truncate(start);
        bytes.extend_from_slice(&self.packed);
    }
}

impl fmt::Debug for Gzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gzip").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn packed_lists_are_read_by_any_reader() {
        let mut gzip = Gzip::default();
        let noise: Vec<u8> = (0..100_000_u32)
            .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for content in [b"".as_slice(), b"a", &b"cpu value=1 5\n".repeat(20_000), &noise] {
            let mut bytes = [b"head".as_slice(), content].concat();
            gzip.pack(&mut bytes, 4);
            let (head, body) = bytes.split_at(4);
            let mut read = Vec::new();
            GzDecoder::new(body).read_to_end(&mut read).unwrap();
            assert!(head == b"head" && read == content);
        }
    }
}
