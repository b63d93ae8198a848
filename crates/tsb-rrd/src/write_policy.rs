//! The policy for writing to open files: through a mapping or with write calls, chosen from
//! measured cost.
//!
//! If a page is already waiting for writeback, a further change through a mapping is nearly free,
//! while each write call costs a system call. If a page has been written back since its last
//! change, changing it through a mapping costs a page fault, which is more than a call. Which case
//! applies depends on how often files are updated and synced, so one pass in [`SAMPLE`] is
//! measured.

/// One pass in this many is measured, or tries the mapping.
const SAMPLE: u32 = 64;
/// Number of consecutive measurements that must agree before the method changes.
const SWITCH_AFTER: u32 = 4;

/// The method for the next passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WritePolicy {
    prefers_mapping: bool,
    passes: u32,
    /// Number of consecutive measurements in favour of the other method.
    disagreeing: u32,
}

/// How a pass writes its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMethod {
    /// One write call per place.
    Calls,
    /// Through the mapping.
    Mapping {
        /// Whether page faults are counted for [`WritePolicy::record_faults`].
        is_measured: bool,
    },
}

impl WritePolicy {
    /// A policy that currently prefers the mapping.
    #[cfg(test)]
    pub(crate) fn mapping() -> Self {
        Self {
            prefers_mapping: true,
            ..Self::default()
        }
    }

    /// The method of the next pass over a file. `was_mapped`: whether the file's last pass wrote
    /// through its mapping.
    pub(crate) fn method(&mut self, was_mapped: bool) -> WriteMethod {
        self.passes = self.passes.wrapping_add(1);
        let is_sample = self.passes.is_multiple_of(SAMPLE);
        match (self.prefers_mapping, was_mapped) {
            (true, _) => WriteMethod::Mapping {
                is_measured: was_mapped && is_sample,
            },
            // The mapping was tried: only its second use shows the steady cost.
            (false, true) => WriteMethod::Mapping { is_measured: true },
            (false, false) if is_sample => WriteMethod::Mapping { is_measured: false },
            (false, false) => WriteMethod::Calls,
        }
    }

    /// Whether the next pass over a file written by `method` is to be measured.
    pub(crate) fn measures_next(&self, method: WriteMethod) -> bool {
        self.prefers_mapping || method == WriteMethod::Mapping { is_measured: false }
    }

    /// Records the page faults of a measured pass. One fault may be a row that enters its next
    /// page.
    pub(crate) fn record_faults(&mut self, faults: u64) {
        let was_cheap = faults <= 1;
        self.disagreeing = if was_cheap == self.prefers_mapping {
            0
        } else {
            self.disagreeing + 1
        };
        if self.disagreeing >= SWITCH_AFTER {
            (self.prefers_mapping, self.disagreeing) = (!self.prefers_mapping, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes over `files` in turn, of which a page faults if it is clean: the share of them
    /// that wrote through the mapping.
    fn share(write_policy: &mut WritePolicy, was_mapped: &mut [bool], rounds: usize, is_clean: bool) -> f64 {
        let mut mapped = 0;
        for _ in 0..rounds {
            for was in was_mapped.iter_mut() {
                let method = write_policy.method(*was);
                if method == (WriteMethod::Mapping { is_measured: true }) {
                    write_policy.record_faults(if is_clean { 3 } else { 0 });
                }
                *was = write_policy.measures_next(method);
                mapped += usize::from(method != WriteMethod::Calls);
            }
        }
        mapped as f64 / (rounds * was_mapped.len()) as f64
    }

    #[test]
    fn the_method_follows_the_measured_page_faults() {
        for files in [1, 5, 100, 1_000, 10_001] {
            let (mut write_policy, mut was_mapped) = (WritePolicy::default(), vec![false; files]);
            let rounds = 6_000 / files + 2;
            let mut settled = |is_clean: bool| {
                share(&mut write_policy, &mut was_mapped, rounds, is_clean);
                share(&mut write_policy, &mut was_mapped, rounds, is_clean)
            };
            assert!(settled(true) < 0.04, "{files}");
            assert!(settled(false) > 0.96, "{files}");
            assert!(settled(true) < 0.04, "{files}");
        }
    }
}
