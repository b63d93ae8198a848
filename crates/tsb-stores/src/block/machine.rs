//! Sealing and reading with the widest vector instructions that the processor has.
//!
//! The code is the portable one, compiled once more: there are no intrinsics here. This
//! module is the only one of the crate that is not safe Rust, and only because calling a
//! function that was compiled for more instructions must be shown to be sound.

#![expect(
    unsafe_code,
    reason = "calls a function compiled for instructions that were detected"
)]

use super::{Block, Columns, GROUP, Sealer};

#[inline]
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("lzcnt")
}

/// [`Sealer::seal_portable`], faster where the processor allows it.
#[inline]
pub(super) fn seal(sealer: &mut Sealer, rows: usize, columns: usize, gaps: u8) -> (Block, [f64; GROUP]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the function needs exactly the features that were just detected.
        return unsafe { seal_avx2(sealer, rows, columns, gaps) };
    }
    sealer.seal_portable(rows, columns, gaps)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,lzcnt")]
fn seal_avx2(sealer: &mut Sealer, rows: usize, columns: usize, gaps: u8) -> (Block, [f64; GROUP]) {
    sealer.seal_portable(rows, columns, gaps)
}

/// [`Block::read_portable`], faster where the processor allows it.
#[inline]
pub(super) fn read<'a>(block: &Block, column: usize, out: &'a mut Columns) -> (&'a [i64], &'a [f64]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the function needs exactly the features that were just detected.
        return unsafe { read_avx2(block, column, out) };
    }
    block.read_portable(column, out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,lzcnt")]
fn read_avx2<'a>(block: &Block, column: usize, out: &'a mut Columns) -> (&'a [i64], &'a [f64]) {
    block.read_portable(column, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both are the same code, but one compiler bug in either would be silent.
    #[test]
    fn the_fast_and_the_portable_twin_agree() {
        let mut sealer = Box::new(Sealer::default());
        let mut random = 7u64;
        for rows in [1usize, 5, 64, 200, 256] {
            for kind in 0..8 {
                for row in 0..rows {
                    random = random
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    sealer.times[row] = row as i64 * 1_000_000_000 + (kind == 3) as i64 * (random >> 60) as i64;
                    sealer.present[row] = if kind == 5 { (random >> 40) as u8 | 1 } else { u8::MAX };
                    for column in 0..GROUP {
                        let noise = (random >> (20 + column)) % 1024;
                        sealer.columns[column][row] = match (kind + column) % 6 {
                            0 => 7.0,
                            1 => noise as f64,
                            2 => (row * 1000) as f64 + noise as f64,
                            3 => noise as f64 / 100.0,
                            4 => f64::from_bits(random),
                            _ => (row / 30) as f64,
                        };
                    }
                }
                let gaps = if kind == 5 { u8::MAX } else { 0 };
                let (portable, maxima) = sealer.seal_portable(rows, GROUP, gaps);
                let (fast, same) = seal(&mut sealer, rows, GROUP, gaps);
                assert_eq!(fast.bytes(), portable.bytes());
                assert_eq!(maxima.map(f64::to_bits), same.map(f64::to_bits));
                let (mut one, mut other) = (Columns::default(), Columns::default());
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                for column in 0..GROUP {
                    let (times, values) = read(&fast, column, &mut one);
                    let (same_times, same_values) = fast.read_portable(column, &mut other);
                    assert_eq!((times, bits(values)), (same_times, bits(same_values)));
                }
            }
        }
    }
}
