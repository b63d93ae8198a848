//! The rows of a query, read some series at a time.

use std::sync::Arc;
use std::vec::IntoIter;

use tsb_core::{SeriesId, Timestamp};

use super::render::{Render, SlotsRead, Span};
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::store::{SlotArchive, TimeRange};
use tsb_stores::{Damage, DamageKind, DamageLog};

/// Maximum number of series in one request.
pub(super) const SERIES_MAX: usize = 32;

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct GraphiteCursor {
    render: Arc<Render>,
    archives: Arc<[SlotArchive]>,
    span: Span,
    range: TimeRange,
    remaining: IntoIter<(SeriesId, String)>,
    damage: Arc<DamageLog>,
    read: IntoIter<Chunk>,
}

impl GraphiteCursor {
    /// Reads the slots of a span of an archive whose starts are in `range`; files that cannot be read
    /// are noted in `damage`.
    pub(super) fn new(
        render: &Arc<Render>,
        damage: &Arc<DamageLog>,
        (archives, span): (Arc<[SlotArchive]>, Span),
        range: TimeRange,
        series: Vec<(SeriesId, String)>,
    ) -> Self {
        Self {
            render: Arc::clone(render),
            archives,
            span,
            range,
            remaining: series.into_iter(),
            damage: Arc::clone(damage),
            read: Vec::new().into_iter(),
        }
    }

    async fn read_more(&mut self) -> Result<bool> {
        let some: Vec<(SeriesId, String)> = self.remaining.by_ref().take(SERIES_MAX).collect();
        if some.is_empty() {
            return Ok(false);
        }
        let mut paths: Vec<String> = some.iter().map(|(_, path)| path.clone()).collect();
        paths.sort_unstable();
        paths.dedup();
        // Of the time of this request: while others are answered, slots leave an archive.
        let window = self.span.window(&self.archives, self.render.now_s());
        let SlotsRead { slots, unreadable, .. } = self.render.read(&paths, window).await?;
        for path in unreadable {
            let what = "its file cannot be read, as when carbon is killed while it makes one";
            self.damage.note(Damage::new(DamageKind::Unreadable, path, what));
        }
        let chunk = |(series, path): (SeriesId, String)| {
            let rows = slots.get(&path)?.iter();
            let rows = rows.map(|(start_s, value)| (Timestamp::from_secs(*start_s), *value));
            let (times, values): (Vec<_>, Vec<_>) = rows.filter(|(at, _)| self.range.contains(*at)).unzip();
            (!times.is_empty()).then_some(Chunk { series, times, values })
        };
        let chunks: Vec<Chunk> = some.into_iter().filter_map(chunk).collect();
        self.read = chunks.into_iter();
        Ok(true)
    }
}

impl QueryCursor for GraphiteCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.read.next() {
                return Ok(Some(chunk));
            }
            if !self.read_more().await? {
                return Ok(None);
            }
        }
    }
}
