//! The order in which the segments of a journal are read, and the search for missing ones.
//!
//! A segment's number is in its name and in its head. If they differ the head wins: it has a
//! checksum, and a file is easily renamed.

use std::path::{Path, PathBuf};

use super::head::{DecodedHead, MARKER_VERSION, Marker, MarkerError, VERSION};
use super::medium::{MARKER, Medium, later_format, number_of, with_path};
use crate::damage::{Damage, DamageKind};
use crate::error::Result;

/// A segment, with the numbers in its name and in its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentFile {
    pub(super) name: String,
    /// The number in its name.
    pub(super) number_in_name: u32,
    /// The number in its head, or in its name if it has no head.
    pub(super) number: u32,
}

/// What the marker states, if it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerState {
    /// There is none: a journal of format 1 has none.
    Absent,
    Known(Marker),
    Damaged,
}

impl MarkerState {
    pub(super) fn read(medium: &dyn Medium, names: &[String]) -> Result<Self> {
        if !names.iter().any(|name| name == MARKER) {
            return Ok(Self::Absent);
        }
        let bytes = with_path(medium, MARKER, "read", |name| medium.read(name))?;
        match Marker::of(&bytes) {
            Ok(marker) => Ok(Self::Known(marker)),
            Err(MarkerError::Damaged) => Ok(Self::Damaged),
            Err(MarkerError::Later(version)) => Err(later_format(medium, MARKER, version, char::from(MARKER_VERSION))),
        }
    }

    pub(super) fn known(&self) -> Option<&Marker> {
        match self {
            Self::Known(marker) => Some(marker),
            Self::Absent | Self::Damaged => None,
        }
    }

    /// The finding for a marker that is damaged, or missing although segments of format 2 need
    /// one.
    pub(super) fn finding(&self, medium: &dyn Medium, is_needed: bool) -> Option<Damage> {
        const BLIND: &str = "so that segments missing before the first or behind the last would not be noticed";
        let path = medium.path_of(MARKER);
        match self {
            Self::Known(_) => None,
            Self::Absent => is_needed.then(|| {
                let what = format!("the marker of the journal is gone, {BLIND}");
                Damage::new(DamageKind::Missing, path, what)
            }),
            Self::Damaged => {
                let what = format!("it is not a marker of a journal, {BLIND}");
                Some(Damage::new(DamageKind::Unreadable, path, what))
            }
        }
    }
}

/// The segments in the order of the numbers in their names.
pub(super) fn by_name(names: &[String]) -> Vec<SegmentFile> {
    let files = names.iter().filter_map(|name| {
        let number = number_of(name)?;
        Some(SegmentFile {
            name: name.clone(),
            number_in_name: number,
            number,
        })
    });
    let mut files: Vec<SegmentFile> = files.collect();
    files.sort_unstable_by_key(|file| file.number);
    files
}

/// The segments in the order of the numbers in their heads. Of two with the same number, the one
/// with that number in its name comes first.
pub(super) fn by_head(mut files: Vec<SegmentFile>, numbers: &[Option<u32>]) -> Vec<SegmentFile> {
    for (file, number) in files.iter_mut().zip(numbers) {
        file.number = number.unwrap_or(file.number_in_name);
    }
    files.sort_by_key(|file| (file.number, file.number_in_name != file.number, file.number_in_name));
    files
}

/// The number that a segment gives itself.
///
/// # Errors
/// [`Error::LaterFormat`].
pub(super) fn number_in(medium: &dyn Medium, name: &str, bytes: &[u8]) -> Result<Option<u32>> {
    match DecodedHead::of(bytes) {
        DecodedHead::Later(version) => Err(later_format(medium, name, version, char::from(VERSION))),
        head => Ok(head.number()),
    }
}

/// The findings for damaged files that earlier openings kept aside; they are not read any more.
pub(super) fn kept_aside(medium: &dyn Medium, names: &[String]) -> Vec<Damage> {
    let kept = names.iter().filter(|name| is_aside(name));
    kept.map(|name| {
        let what =
            "an earlier opening found damage in it and recovered what it could; remove it when it is no longer needed";
        Damage::new(DamageKind::KeptAside, medium.path_of(name), what)
    })
    .collect()
}

const ASIDE: &str = ".damaged";

fn is_aside(name: &str) -> bool {
    name.contains(ASIDE)
}

/// An unused name under which a damaged file is kept aside.
pub(super) fn aside(name: &str, names: &[String]) -> String {
    let first = format!("{name}{ASIDE}");
    let further = (2_u32..).map(|copy| format!("{name}{ASIDE}.{copy}"));
    let mut free = std::iter::once(first.clone())
        .chain(further)
        .filter(|aside| !names.contains(aside));
    free.next().unwrap_or(first)
}

/// The folder of a journal, for findings about missing files.
pub(super) fn folder(medium: &dyn Medium) -> PathBuf {
    let marker = medium.path_of(MARKER);
    marker.parent().map_or_else(|| marker.clone(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_overrule_names_and_the_rightly_named_copy_is_first() {
        let names = [2, 3, 9, 4].map(|number| format!("tsb.journal.{number:010}"));
        let files = by_name(&names);
        assert_eq!(
            files.iter().map(|file| file.number_in_name).collect::<Vec<_>>(),
            [2, 3, 4, 9]
        );
        let ordered = by_head(files, &[Some(3), Some(3), None, Some(1)]);
        let ordered: Vec<(u32, u32)> = ordered.iter().map(|file| (file.number, file.number_in_name)).collect();
        assert_eq!(ordered, [(1, 9), (3, 3), (3, 2), (4, 4)]);
    }

    #[test]
    fn a_damaged_file_takes_no_name_of_another() {
        let names = vec!["a".to_owned(), "a.damaged".to_owned(), "a.damaged.2".to_owned()];
        assert_eq!(aside("b", &names), "b.damaged");
        assert_eq!(aside("a", &names), "a.damaged.3");
    }
}
