//! A hash of the events of a simulation.

/// FNV-1a over numbers of 64 bits, with a rotation so that high bits matter as well.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    pub(super) const fn add(&mut self, event: [u64; 3]) {
        let [a, b, c] = event;
        self.0 = mixed(mixed(mixed(self.0, a), b), c);
    }

    pub(super) const fn value(self) -> u64 {
        self.0
    }
}

const fn mixed(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
}
