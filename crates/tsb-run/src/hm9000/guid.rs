//! Identifiers: version 4 UUIDs, from a seed.

use std::fmt;

/// A version 4 UUID. It prints as 36 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(u128);

/// Random numbers that follow from a seed (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Draws(u64);

impl Draws {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number in [0, n).
    pub(super) const fn below(&mut self, n: u64) -> u64 {
        ((self.next() as u128 * n as u128) >> 64) as u64
    }

    /// A number in [0, 1).
    pub(super) const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) const fn guid(&mut self) -> Guid {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0x3 << 62;
        let random = ((self.next() as u128) << 64) | self.next() as u128;
        Guid((random & !VERSION & !VARIANT) | (0x4 << 76) | (0x2 << 62))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32, digits: u32| (self.0 >> shift) & ((1 << (4 * digits)) - 1);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 8),
            part(80, 4),
            part(64, 4),
            part(48, 4),
            part(0, 12)
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_a_version_4_uuid() {
        let mut draws = Draws::new(1);
        for _ in 0..100 {
            let text = draws.guid().to_string();
            let parts: Vec<&str> = text.split('-').collect();
            let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12]);
            assert!(text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()));
            assert!(parts[2].starts_with('4') && "89ab".contains(&parts[3][..1]), "{text}");
        }
        assert_eq!(
            Guid(0x0123_4567_89ab_4def_8123_4567_89ab_cdef).to_string(),
            "01234567-89ab-4def-8123-456789abcdef"
        );
    }
}
