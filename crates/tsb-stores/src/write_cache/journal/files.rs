//! Creates, marks and keeps aside the files of a journal.
//!
//! After a crash at any point, replay finds files that it does not report as damaged.

use std::sync::Arc;

use super::head::{Marker, SegmentHead};
use super::medium::{MARKER, Medium, Segment, name_of};
use super::order;
use super::replay::ReplayResult;
use crate::error::{Error, Result};

/// Begins a segment. When this returns, the segment and its head outlive a power cut, and the
/// marker names it.
pub(super) fn begin_segment(medium: &dyn Medium, oldest: (u32, u64), head: SegmentHead) -> Result<Arc<dyn Segment>> {
    let name = name_of(head.number);
    let begun = medium.create(&name).and_then(|segment| {
        segment.append(&head.to_bytes())?;
        segment.sync()?;
        write_marker(medium, oldest, head)?;
        Ok(segment)
    });
    begun.map_err(|source| Error::Backend {
        action: format!("begin {}", medium.path_of(&name).display()),
        source: source.into(),
    })
}

/// Writes the marker: which segment is the newest, and that none before the oldest is needed.
pub(super) fn write_marker(
    medium: &dyn Medium,
    (oldest, oldest_record): (u32, u64),
    newest: SegmentHead,
) -> std::io::Result<()> {
    let marker = Marker {
        oldest,
        oldest_record,
        newest,
    };
    medium.replace(MARKER, &marker.to_bytes())
}

/// Writes a marker if there is none, before the first segment that needs one. A damaged marker is
/// kept aside.
pub(super) fn ensure_marker(medium: &dyn Medium, found: &ReplayResult) -> Result<()> {
    if found.has_marker {
        return Ok(());
    }
    let newest = SegmentHead {
        number: found.next_number - 1,
        first_record: found.next_record,
        opening: 0,
    };
    let kept = if found.is_marker_damaged {
        keep_aside(medium, MARKER).map(drop)
    } else {
        Ok(())
    };
    kept.and_then(|()| write_marker(medium, (found.oldest, found.oldest_record), newest))
        .map_err(|source| Error::Backend {
            action: format!("write {}", medium.path_of(MARKER).display()),
            source: source.into(),
        })
}

/// Renames a damaged file so that nothing reads or removes it. Returns the new name.
pub(super) fn keep_aside(medium: &dyn Medium, name: &str) -> std::io::Result<String> {
    let aside = order::aside(name, &medium.names()?);
    medium.rename(name, &aside)?;
    Ok(aside)
}
