//! Bit packing in eight lanes, so that plain code vectorizes.
//!
//! Element `i` is in lane `i % 8`. A lane is a stream of little-endian 32-bit words, lowest bits
//! first, and the words of the lanes alternate.

/// Numbers in one row of the lanes.
pub(super) const LANES: usize = 8;
/// Bytes of one word of every lane.
const WORD: usize = 4 * LANES;

/// Bytes of `len` numbers of `width` bits; `width` is in [0, 32].
pub(super) fn packed_len(len: usize, width: u32) -> usize {
    (len.div_ceil(LANES) * width as usize).div_ceil(32) * WORD
}

#[inline(always)]
fn put_word(out: &mut Vec<u8>, lanes: &[u32; LANES]) {
    let mut bytes = [0u8; WORD];
    for (to, lane) in bytes.chunks_exact_mut(4).zip(lanes) {
        to.copy_from_slice(&lane.to_le_bytes());
    }
    out.extend_from_slice(&bytes);
}

#[inline(always)]
fn get_word(bytes: &[u8]) -> [u32; LANES] {
    let mut lanes = [0u32; LANES];
    for (lane, from) in lanes.iter_mut().zip(bytes[..WORD].chunks_exact(4)) {
        *lane = u32::from_le_bytes([from[0], from[1], from[2], from[3]]);
    }
    lanes
}

/// Appends the low `width` bits of each number. `numbers` must be a whole number of rows, with no
/// bits set above `width`. `width` is in [0, 32].
#[inline(always)]
pub(super) fn pack(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (rows, _) = numbers.as_chunks::<LANES>();
    let mut word = [0u32; LANES];
    let mut filled = 0;
    for row in rows {
        for lane in 0..LANES {
            word[lane] |= row[lane] << filled;
        }
        filled += width;
        if filled >= 32 {
            put_word(out, &word);
            filled -= 32;
            let taken = width - filled;
            for lane in 0..LANES {
                word[lane] = if filled == 0 { 0 } else { row[lane] >> taken };
            }
        }
    }
    if filled > 0 {
        put_word(out, &word);
    }
}

/// Decodes whole rows into `numbers`. Returns the bytes consumed.
#[inline(always)]
pub(super) fn unpack(bytes: &[u8], width: u32, numbers: &mut [u32]) -> usize {
    if width == 0 {
        numbers.fill(0);
        return 0;
    }
    let mask = u32::MAX >> (32 - width);
    let (rows, _) = numbers.as_chunks_mut::<LANES>();
    let end = (rows.len() * width as usize).div_ceil(32) * WORD;
    let mut word = get_word(bytes);
    let mut at = WORD;
    let mut used = 0;
    for row in rows {
        for lane in 0..LANES {
            row[lane] = word[lane] >> used;
        }
        used += width;
        if used >= 32 {
            used -= 32;
            if at < end {
                word = get_word(&bytes[at..]);
                at += WORD;
            }
            if used > 0 {
                for lane in 0..LANES {
                    row[lane] |= word[lane] << (width - used);
                }
            }
        }
        for lane in row.iter_mut() {
            *lane &= mask;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back_and_takes_the_stated_room() {
        for width in 0..=32u32 {
            for rows in 1..=32usize {
                let mask = if width == 0 { 0 } else { u32::MAX >> (32 - width) };
                let numbers: Vec<u32> = (0..rows * LANES)
                    .map(|i| (i as u32).wrapping_mul(2654435761) & mask)
                    .collect();
                let mut bytes = Vec::new();
                pack(&numbers, width, &mut bytes);
                assert_eq!(bytes.len(), packed_len(numbers.len(), width));
                let mut back = vec![7; numbers.len()];
                assert_eq!(unpack(&bytes, width, &mut back), bytes.len());
                assert_eq!(back, numbers, "width {width}, {rows} rows");
            }
        }
    }
}
