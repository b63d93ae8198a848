//! Writes the changes of a pass through a mapping, with one system call for up to 64 KiB or 64
//! places.

use std::io;

use crate::file::Pass;
use crate::layout::Layout;
use crate::live_header::LiveHeader;
use crate::system::{Mapping, StagingBuffer};

/// Writes the rows of a pass and then the header, through a staging buffer that the first call
/// creates. Changes that could not be written are dropped.
pub(crate) fn write(
    staging: &mut Option<StagingBuffer>,
    mapping: &mut Mapping,
    layout: &Layout,
    pass: &Pass,
    live: &LiveHeader,
) -> io::Result<()> {
    let staging = match staging {
        Some(staging) => staging,
        none => none.insert(StagingBuffer::new()?),
    };
    let mut staged = staging.to(mapping);
    pass.rows.write(|offset, bytes| staged.put(offset, bytes))?;
    staged.put(layout.live_offset() as u64, pass.changed(live))?;
    staged.send()
}
