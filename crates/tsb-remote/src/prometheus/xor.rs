//! Chunks of Prometheus in their XOR encoding, which is Gorilla's: the timestamp as the change of
//! its distance, the value as the bits that differ from the last.
//!
//! As `tsdb/chunkenc/xor.go` of version 2.42 writes it. Remote read's other form, whole samples,
//! leaves out the value 0 and with it the sign of minus zero.

use super::message::Sample;

/// The bytes are no such chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoChunk;

/// Bits from the highest of the first byte on.
struct Bits<'a> {
    bytes: &'a [u8],
    /// Number of bits that are read.
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Result<bool, NoChunk> {
        let byte = self.bytes.get(self.at / 8).ok_or(NoChunk)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Ok(bit == 1)
    }

    /// The next `count` bits, 64 at most.
    fn bits(&mut self, count: u32) -> Result<u64, NoChunk> {
        let (mut value, mut left) = (0_u64, count as usize);
        while left > 0 {
            let byte = *self.bytes.get(self.at / 8).ok_or(NoChunk)?;
            let (offset, here) = (self.at % 8, left.min(8 - self.at % 8));
            let part = byte << offset >> (8 - here);
            value = value << here | u64::from(part);
            self.at += here;
            left -= here;
        }
        Ok(value)
    }

    /// An unsigned varint, whose bytes need not be aligned.
    fn uvarint(&mut self) -> Result<u64, NoChunk> {
        let mut value = 0;
        for index in 0..10 {
            let byte = self.bits(8)?;
            value |= (byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(NoChunk)
    }

    /// A signed one, in zigzag form.
    fn varint(&mut self) -> Result<i64, NoChunk> {
        let value = self.uvarint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The change of the distance of two timestamps.
    fn change(&mut self) -> Result<i64, NoChunk> {
        let mut size = 0;
        for wider in [14, 17, 20, 64] {
            if !self.bit()? {
                break;
            }
            size = wider;
        }
        let bits = self.bits(size)? as i64;
        let is_negative = (1..64).contains(&size) && bits > 1 << (size - 1);
        Ok(if is_negative { bits - (1 << size) } else { bits })
    }
}

/// The bits of values, by what the last had.
#[derive(Default)]
struct Values {
    bits: u64,
    leading: u32,
    trailing: u32,
}

impl Values {
    fn next(&mut self, from: &mut Bits<'_>) -> Result<f64, NoChunk> {
        if from.bit()? {
            if from.bit()? {
                self.leading = from.bits(5)? as u32;
                let significant = match from.bits(6)? as u32 {
                    0 => 64,
                    bits => bits,
                };
                self.trailing = 64_u32.checked_sub(self.leading + significant).ok_or(NoChunk)?;
            }
            let significant = 64 - self.leading - self.trailing;
            self.bits ^= from.bits(significant)? << self.trailing;
        }
        Ok(f64::from_bits(self.bits))
    }
}

/// Appends the samples of a chunk.
pub(super) fn decode(chunk: &[u8], samples: &mut Vec<Sample>) -> Result<(), NoChunk> {
    let (count, bytes) = chunk.split_first_chunk().ok_or(NoChunk)?;
    let count = u16::from_be_bytes(*count);
    let (mut bits, mut values) = (Bits { bytes, at: 0 }, Values::default());
    let (mut at_ms, mut distance) = (0_i64, 0_i64);
    for index in 0..count {
        let value = if index == 0 {
            at_ms = bits.varint()?;
            values.bits = bits.bits(64)?;
            f64::from_bits(values.bits)
        } else {
            distance = match index {
                1 => bits.uvarint()? as i64,
                _ => distance.wrapping_add(bits.change()?),
            };
            at_ms = at_ms.wrapping_add(distance);
            values.next(&mut bits)?
        };
        samples.push(Sample { value, at_ms });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Writes bits, as Prometheus does.
    #[derive(Default)]
    struct Writer {
        bytes: Vec<u8>,
        free: u32,
    }

    impl Writer {
        fn bits(&mut self, value: u64, count: u32) {
            for index in (0..count).rev() {
                if self.free == 0 {
                    self.bytes.push(0);
                    self.free = 8;
                }
                self.free -= 1;
                if let Some(last) = self.bytes.last_mut() {
                    *last |= ((value >> index & 1) as u8) << self.free;
                }
            }
        }

        fn uvarint(&mut self, mut value: u64) {
            while value >= 0x80 {
                self.bits(value & 0x7f | 0x80, 8);
                value >>= 7;
            }
            self.bits(value, 8);
        }

        fn change(&mut self, change: i64) {
            let fits = |size: u32| -((1 << (size - 1)) - 1) <= change && change <= 1 << (size - 1);
            match change {
                0 => self.bits(0, 1),
                _ if fits(14) => self.sized(0b10, 2, change, 14),
                _ if fits(17) => self.sized(0b110, 3, change, 17),
                _ if fits(20) => self.sized(0b1110, 4, change, 20),
                _ => self.sized(0b1111, 4, change, 64),
            }
        }

        fn sized(&mut self, prefix: u64, length: u32, change: i64, size: u32) {
            self.bits(prefix, length);
            self.bits(change as u64, size);
        }
    }

    fn encode(samples: &[Sample]) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.bits(samples.len() as u64, 16);
        let (mut at, mut distance, mut last) = (0_i64, 0_i64, 0_u64);
        let (mut leading, mut trailing) = (64, 0);
        for (index, sample) in samples.iter().enumerate() {
            let bits = sample.value.to_bits();
            if index == 0 {
                writer.uvarint((sample.at_ms << 1 ^ sample.at_ms >> 63) as u64);
                writer.bits(bits, 64);
            } else {
                let now = sample.at_ms - at;
                match index {
                    1 => writer.uvarint(now as u64),
                    _ => writer.change(now - distance),
                }
                distance = now;
                let differs = bits ^ last;
                if differs == 0 {
                    writer.bits(0, 1);
                } else {
                    let (first, end) = (differs.leading_zeros().min(31), differs.trailing_zeros());
                    if leading <= first && trailing <= end {
                        writer.bits(0b10, 2);
                    } else {
                        (leading, trailing) = (first, end);
                        writer.bits(0b11, 2);
                        writer.bits(u64::from(first), 5);
                        writer.bits(u64::from(64 - first - end), 6);
                    }
                    writer.bits(differs >> trailing, 64 - leading - trailing);
                }
            }
            (at, last) = (sample.at_ms, bits);
        }
        writer.bytes
    }

    proptest! {
        #[test]
        fn chunks_come_back_to_the_bit(
            start in any::<i32>(),
            steps in prop::collection::vec((prop_oneof![Just(1_000_i64), 0_i64..20_000, 0_i64..10_000_000_000], any::<f64>(), 0_u8..4), 0..130),
        ) {
            let mut at_ms = i64::from(start) * 1_000;
            let samples: Vec<Sample> = steps.iter().map(|(step, value, kind)| {
                at_ms += step;
                let value = match kind { 0 => -0.0, 1 => (*step % 7) as f64, _ => *value };
                Sample { value, at_ms }
            }).collect();
            let mut found = Vec::new();
            prop_assert_eq!(decode(&encode(&samples), &mut found), Ok(()));
            let bits = |samples: &[Sample]| -> Vec<_> { samples.iter().map(|one| (one.at_ms, one.value.to_bits())).collect() };
            prop_assert_eq!(bits(&found), bits(&samples));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut found = Vec::new();
            let outcome = decode(&bytes, &mut found);
            prop_assert!(outcome.is_err() || u16::try_from(found.len()).is_ok());
        }
    }

    #[test]
    fn a_chunk_that_breaks_off_is_an_error() {
        let samples = [(1, 1.0), (2, 1.5), (900_000, -0.0)].map(|(at_ms, value)| Sample { value, at_ms });
        let chunk = encode(&samples);
        for length in 0..chunk.len() {
            assert_eq!(decode(&chunk[..length], &mut Vec::new()), Err(NoChunk), "{length}");
        }
        assert_eq!(decode(&chunk, &mut Vec::new()), Ok(()));
    }
}
