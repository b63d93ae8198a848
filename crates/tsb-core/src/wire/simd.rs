//! Operations on sixteen bytes at a time.
//!
//! There are two implementations of the same functions: with the SSE2 instructions that every
//! x86-64 processor has, and portable. Both are compiled and tested against each other wherever
//! SSE2 exists. docs/adr/010-wire-codecs.md shows the gain.

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::{digit_run, find_at_most, find_byte, join16, prefetch, same16};
#[cfg(target_arch = "x86_64")]
pub(crate) use sse2::{digit_run, find_at_most, find_byte, join16, prefetch, same16};

/// Sixteen bytes of text.
pub(crate) type Bytes16 = [u8; 16];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{portable, sse2};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn both_builds_say_the_same(
            text in "[ -9a]{16}", other in "[0-9.]{16}", bytes in any::<[u8; 16]>(), limit in any::<u8>(),
        ) {
            let text: [u8; 16] = text.as_bytes().try_into().unwrap();
            let other: [u8; 16] = other.as_bytes().try_into().unwrap();
            for bytes16 in [text, other, bytes] {
                prop_assert_eq!(sse2::digit_run(&bytes16), portable::digit_run(&bytes16));
                prop_assert_eq!(sse2::find_at_most(&bytes16, limit), portable::find_at_most(&bytes16, limit));
                prop_assert_eq!(sse2::find_at_most(&bytes16, b' '), portable::find_at_most(&bytes16, b' '));
                prop_assert_eq!(sse2::find_byte(&bytes16, text[3]), portable::find_byte(&bytes16, text[3]));
                prop_assert_eq!(sse2::find_byte(&bytes16, limit), portable::find_byte(&bytes16, limit));
                for count in 0..=17 {
                    prop_assert_eq!(sse2::same16(&bytes16, &text, count), portable::same16(&bytes16, &text, count));
                }
            }
        }

        #[test]
        fn digits_at_the_end_are_joined(number in 0_u64..10_000_000_000_000_000, before in "[ -~]{16}") {
            let digits = number.to_string();
            let mut bytes16: [u8; 16] = before.as_bytes().try_into().unwrap();
            bytes16[16 - digits.len()..].copy_from_slice(digits.as_bytes());
            prop_assert_eq!(portable::join16(&bytes16, digits.len()), number);
            prop_assert_eq!(sse2::join16(&bytes16, digits.len()), number);
        }
    }

    #[test]
    fn every_byte_is_told_from_a_digit() {
        for byte in 0..=255_u8 {
            for at in 0..16 {
                let mut bytes16 = *b"0123456789987654";
                bytes16[at] = byte;
                let run = if byte.is_ascii_digit() { 16 } else { at };
                assert_eq!((portable::digit_run(&bytes16), sse2::digit_run(&bytes16)), (run, run));
                let mut bytes16 = [0xff; 16];
                bytes16[at] = byte;
                let found = if byte <= b' ' { at } else { 16 };
                assert_eq!(portable::find_at_most(&bytes16, b' '), found);
                assert_eq!(sse2::find_at_most(&bytes16, b' '), found);
            }
        }
    }
}
