//! Describes what replay found wrong with a journal, as [`Damage`].
//!
//! It does not decide what is read; it counts what could not be read.

use std::path::Path;

use crate::damage::{Damage, DamageKind};

/// What is wrong with one segment.
#[derive(Debug, Default)]
pub(super) struct SegmentFindings {
    /// Bytes between records, and the position of the first of them with its error.
    pub(super) bad_bytes: u64,
    pub(super) first_bad: Option<(usize, &'static str)>,
    /// Bytes after the last record, and the error there.
    pub(super) tail_bytes: u64,
    pub(super) tail: Option<&'static str>,
    /// Numbers that no record has: an upper bound of the lost samples.
    pub(super) lost: u64,
    /// Whether more samples may be lost than the numbers show.
    pub(super) is_loss_unknown: bool,
    /// Samples whose series no record names.
    pub(super) unnamed: u64,
    /// Records that an earlier segment contains as well.
    pub(super) repeated: u64,
    /// The number in its head, if it differs from the number in its name.
    pub(super) misnamed: Option<u32>,
    /// It does not begin with the head of a segment.
    pub(super) has_no_head: bool,
    /// Its last bytes are a record.
    pub(super) ends_with_record: bool,
    /// Records are missing after its last one, without leftover bytes.
    pub(super) is_cut: bool,
}

impl SegmentFindings {
    /// Whether it is damaged: more is wrong than a crash could cause.
    pub(super) fn is_damaged(&self) -> bool {
        self.bad_bytes > 0
            || self.lost > 0
            || self.is_loss_unknown
            || self.unnamed > 0
            || self.repeated > 0
            || self.misnamed.is_some()
            || self.has_no_head
            || self.is_cut
    }

    /// Counts the tail as damage, since a later segment shows that `numbers` records are missing
    /// there.
    pub(super) fn count_tail_as_lost(&mut self, numbers: u64) {
        self.lost += numbers;
        if let Some(what) = self.tail.take() {
            self.first_bad.get_or_insert((0, what));
            self.bad_bytes += std::mem::take(&mut self.tail_bytes);
        } else {
            self.is_cut = true;
        }
    }

    /// The findings about the segment at `path`.
    pub(super) fn findings(&self, path: &Path) -> impl Iterator<Item = Damage> {
        let torn = self.tail.map(|what| {
            let what = format!("{what}; a crash leaves that, and damage of the newest samples looks the same");
            Damage::new(DamageKind::Torn, path, what).with_bytes(self.tail_bytes)
        });
        let damaged = self.is_damaged().then(|| self.damaged(path));
        damaged.into_iter().chain(torn)
    }

    fn damaged(&self, path: &Path) -> Damage {
        let mut what = Vec::new();
        if self.has_no_head {
            what.push("it does not begin as a segment does".to_owned());
        }
        match self.first_bad {
            Some((0, text)) => what.push(text.to_owned()),
            Some((at, text)) => what.push(format!("{text} at byte {at}")),
            None => {}
        }
        if self.is_cut {
            what.push("records are missing at its end".to_owned());
        }
        if self.unnamed > 0 {
            let unnamed = self.unnamed;
            what.push(format!("the names of the series of {unnamed} samples are missing"));
        }
        if self.repeated > 0 {
            let repeated = self.repeated;
            what.push(format!(
                "{repeated} of its records came before, and were not applied again"
            ));
        }
        if let Some(number) = self.misnamed {
            what.push(format!("it is segment {number} under another name"));
        }
        let kind = if self.is_cut && self.bad_bytes == 0 && !self.has_no_head {
            DamageKind::Missing
        } else {
            DamageKind::Unreadable
        };
        let damage = Damage::new(kind, path, what.join(", "));
        let damage = if self.bad_bytes > 0 {
            damage.with_bytes(self.bad_bytes)
        } else {
            damage
        };
        if self.is_loss_unknown {
            damage
        } else {
            damage.with_samples_at_most(self.lost + self.unnamed)
        }
    }
}

/// Missing segments.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) first: u32,
    pub(super) last: u32,
    /// The count of numbers that their records had; `None` if unknown.
    pub(super) lost: Option<u64>,
}

impl Gap {
    /// The finding about the journal in the folder `path`.
    pub(super) fn finding(&self, path: &Path) -> Damage {
        let Self { first, last, .. } = self;
        let what = if first == last {
            format!("segment {first} is missing")
        } else {
            format!("segments {first} to {last} are missing")
        };
        let damage = Damage::new(DamageKind::Missing, path, what);
        match self.lost {
            Some(samples) => damage.with_samples_at_most(samples),
            None => damage,
        }
    }
}
