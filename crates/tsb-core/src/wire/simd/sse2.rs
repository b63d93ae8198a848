//! The implementation for x86-64. The only module of this crate with `unsafe`.
#![expect(unsafe_code, reason = "vector instructions; the portable build is the safe twin")]

use std::arch::x86_64::{
    __m128i, _MM_HINT_T0, _mm_add_epi16, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_loadu_si128,
    _mm_madd_epi16, _mm_min_epu8, _mm_movemask_epi8, _mm_mullo_epi16, _mm_packs_epi32, _mm_prefetch, _mm_set1_epi8,
    _mm_set1_epi16, _mm_set1_epi32, _mm_srli_epi16, _mm_sub_epi8,
};

use super::Bytes16;

/// Number of digits before the first other byte; in [0, 16].
#[inline(always)]
pub(crate) fn digit_run(bytes16: &Bytes16) -> usize {
    // SAFETY: the instructions are SSE2, which is part of x86-64.
    let small = unsafe {
        let digits = _mm_sub_epi8(load(bytes16), _mm_set1_epi8(b'0' as i8));
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(digits, _mm_set1_epi8(9)), digits))
    };
    (!small).trailing_zeros() as usize
}

/// Number of bytes before the first that is `limit` or below; 16 if there is none.
#[inline(always)]
pub(crate) fn find_at_most(bytes16: &Bytes16, limit: u8) -> usize {
    // SAFETY: the instructions are SSE2, which is part of x86-64.
    let below = unsafe {
        let bytes = load(bytes16);
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(limit as i8)), bytes))
    };
    (below | 1 << 16).trailing_zeros() as usize
}

/// Number of bytes before the first that equals `wanted`; 16 if there is none.
#[inline(always)]
pub(crate) fn find_byte(bytes16: &Bytes16, wanted: u8) -> usize {
    // SAFETY: the instructions are SSE2, which is part of x86-64.
    let same = unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(load(bytes16), _mm_set1_epi8(wanted as i8))) };
    (same | 1 << 16).trailing_zeros() as usize
}

/// Whether the first `count` bytes are equal; false if `count` is above 16.
#[inline(always)]
pub(crate) fn same16(one: &Bytes16, other: &Bytes16, count: usize) -> bool {
    // SAFETY: the instructions are SSE2, which is part of x86-64.
    let same = unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(load(one), load(other))) };
    (!same).trailing_zeros() as usize >= count
}

/// The number in the last `count` bytes, which must be digits; `count` is in [1, 16].
#[inline(always)]
pub(crate) fn join16(bytes16: &Bytes16, count: usize) -> u64 {
    // SAFETY: the instructions are SSE2, which is part of x86-64.
    let both = unsafe {
        let digits = _mm_sub_epi8(load(bytes16), _mm_set1_epi8(b'0' as i8));
        let digits = _mm_and_si128(digits, load(&KEEP[count % KEEP.len()]));
        let factors = |first: i32| _mm_set1_epi32(first + (1 << 16));
        // The first digit of a pair is the lower byte of its word.
        let tens = _mm_mullo_epi16(_mm_and_si128(digits, _mm_set1_epi16(0xff)), _mm_set1_epi16(10));
        let pairs = _mm_add_epi16(tens, _mm_srli_epi16(digits, 8));
        let fours = _mm_madd_epi16(pairs, factors(100));
        let words = _mm_packs_epi32(fours, fours);
        let eights = _mm_madd_epi16(words, factors(10_000));
        _mm_cvtsi128_si64(eights) as u64
    };
    (both & 0xffff_ffff) * 100_000_000 + (both >> 32)
}

/// Prefetches the cache line of `place`, without waiting for it.
#[inline(always)]
pub(crate) fn prefetch<T>(place: &T) {
    // SAFETY: a prefetch of any address changes nothing but the cache; the instruction is
    // SSE, which is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) }
}

/// An unaligned load.
#[inline(always)]
fn load(bytes16: &Bytes16) -> __m128i {
    // SAFETY: the reference is to 16 readable bytes; the load needs no alignment, and the
    // instruction is SSE2, which is part of x86-64.
    unsafe { _mm_loadu_si128(bytes16.as_ptr().cast()) }
}

/// Masks that keep the last `n` bytes.
static KEEP: [Bytes16; 32] = {
    let mut masks = [[0; 16]; 32];
    let mut count = 1;
    while count <= 16 {
        let mut byte = 16 - count;
        while byte < 16 {
            masks[count][byte] = 0xff;
            byte += 1;
        }
        count += 1;
    }
    masks
};
