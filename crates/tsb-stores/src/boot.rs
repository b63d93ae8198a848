//! Identifies the current boot of the machine: unsynced writes survive a process, but not a power
//! cut.

use std::fs;

/// The kernel's file with the boot id.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of the current boot; all 0 if the kernel has none.
pub(crate) fn boot() -> [u8; 16] {
    let text = fs::read_to_string(BOOT_ID).unwrap_or_default();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut boot = [0; 16];
    for (byte, pair) in boot.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    boot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_the_same_for_as_long_as_it_lasts() {
        assert_eq!(boot(), boot());
        if fs::exists(BOOT_ID).unwrap_or(false) {
            assert_ne!(boot(), [0; 16]);
        }
    }
}
