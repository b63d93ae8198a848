//! Identifiers: version 4 UUIDs, from a seed.

use std::fmt;

use crate::draws::Draws;

/// A version 4 UUID. It prints as 36 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(u128);

impl Guid {
    /// The next one.
    pub(crate) const fn draw(draws: &mut Draws) -> Self {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0x3 << 62;
        let random = ((draws.next() as u128) << 64) | draws.next() as u128;
        Self((random & !VERSION & !VARIANT) | (0x4 << 76) | (0x2 << 62))
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
            let text = Guid::draw(&mut draws).to_string();
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
