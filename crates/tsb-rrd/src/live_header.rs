//! The live part of the header: the bytes that an update changes, in the file's own format.

use crate::error::{Error, Result};
use crate::header::{get, put};
use crate::layout::{CDP_PREP, LIVE_HEAD, Layout, PDP_PREP, RRA_PTR, UNKNOWN};
use crate::parse::Moment;

/// Bytes kept of the last value's text, without the terminating zero.
const LAST_MAX: usize = 29;

// Offsets of the fields in the two kinds of state.
const PDP_UNKNOWN_S: usize = 32;
const PDP_VALUE: usize = 40;
const CDP_VALUE: usize = 0;
const CDP_UNKNOWN: usize = 8;
const CDP_PRIMARY: usize = 64;
const CDP_SECONDARY: usize = 72;

/// The bytes of the live part. Fields without an accessor stay as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveHeader {
    bytes: Vec<u8>,
    // Offsets of the open rows' state and of the newest rows' numbers.
    cells: usize,
    pointers: usize,
    sources: usize,
}

impl LiveHeader {
    /// The live part of a new file whose first update is after `start_s`.
    pub(crate) fn new(layout: &Layout, start_s: i64, rows: impl Iterator<Item = u64>) -> Self {
        let mut live = Self::default();
        live.shape(layout);
        live.bytes.resize(layout.live_len(), 0);
        put(&mut live.bytes, 0, start_s as u64);
        let open_s = start_s as u64 % layout.step_s;
        for source in 0..layout.sources.len() {
            live.set_last(source, b"U");
            live.set_unknown_s(source, open_s);
            live.set_pending(source, UNKNOWN);
        }
        for (index, archive) in layout.archives.iter().enumerate() {
            let span = layout.step_s.wrapping_mul(archive.steps).max(1);
            for mut cell in live.cells(index) {
                cell.set_value(UNKNOWN);
                cell.set_unknown((start_s as u64 - open_s) % span / layout.step_s);
            }
        }
        for (index, row) in rows.enumerate().take(layout.archives.len()) {
            live.set_row(index, row);
        }
        live
    }

    /// Replaces the contents by the live part of a header.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is too short or holds impossible values.
    pub fn load(&mut self, layout: &Layout, header: &[u8]) -> Result<()> {
        let (start, end) = (layout.live_offset(), layout.header_len());
        let Some(bytes) = header.get(start..end) else {
            return Err(Error::damaged(
                header.len(),
                format!("ends within its header of {end} bytes"),
            ));
        };
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.shape(layout);
        self.check(layout, start)
    }

    fn check(&self, layout: &Layout, start: usize) -> Result<()> {
        let newest = self.newest();
        if newest.seconds < 0 || !(0..1_000_000).contains(&newest.micros) {
            return Err(Error::damaged(start, format!("the last update was at {newest}")));
        }
        for (index, archive) in layout.archives.iter().enumerate() {
            let row = self.row(index);
            if row >= archive.rows {
                let what = format!("row {row} of {} is the newest of archive {index}", archive.rows);
                return Err(Error::damaged(start + self.pointers + index * RRA_PTR, what));
            }
        }
        Ok(())
    }

    fn shape(&mut self, layout: &Layout) {
        self.sources = layout.sources.len();
        self.cells = LIVE_HEAD + PDP_PREP * self.sources;
        self.pointers = self.cells + CDP_PREP * self.sources * layout.archives.len();
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The prefix of the bytes that an update within the open step changes.
    pub(crate) fn within_step(&self) -> &[u8] {
        &self.bytes[..self.cells]
    }

    /// Time of the last update.
    pub fn newest(&self) -> Moment {
        Moment {
            seconds: get(&self.bytes, 0) as i64,
            micros: get(&self.bytes, 8) as i64,
        }
    }

    pub(crate) fn set_newest(&mut self, at: Moment) {
        put(&mut self.bytes, 0, at.seconds as u64);
        put(&mut self.bytes, 8, at.micros as u64);
    }

    /// Number of the newest row of an archive.
    pub(crate) fn row(&self, archive: usize) -> u64 {
        get(&self.bytes, self.pointers + archive * RRA_PTR)
    }

    pub(crate) fn set_row(&mut self, archive: usize, row: u64) {
        let at = self.pointers + archive * RRA_PTR;
        put(&mut self.bytes, at, row);
    }

    /// Text of the last value.
    pub(crate) fn last(&self, source: usize) -> &[u8] {
        let bytes = &self.bytes[LIVE_HEAD + source * PDP_PREP..][..=LAST_MAX];
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        &bytes[..end]
    }

    pub(crate) fn set_last(&mut self, source: usize, text: &[u8]) {
        let place = &mut self.bytes[LIVE_HEAD + source * PDP_PREP..][..=LAST_MAX];
        place.fill(0);
        let length = text.len().min(LAST_MAX);
        place[..length].copy_from_slice(&text[..length]);
    }

    /// Unknown seconds in the open step.
    pub(crate) fn unknown_s(&self, source: usize) -> u64 {
        get(&self.bytes, LIVE_HEAD + source * PDP_PREP + PDP_UNKNOWN_S)
    }

    pub(crate) fn set_unknown_s(&mut self, source: usize, seconds: u64) {
        put(&mut self.bytes, LIVE_HEAD + source * PDP_PREP + PDP_UNKNOWN_S, seconds);
    }

    /// Rate times seconds, accumulated in the open step.
    pub(crate) fn pending(&self, source: usize) -> f64 {
        f64::from_bits(get(&self.bytes, LIVE_HEAD + source * PDP_PREP + PDP_VALUE))
    }

    pub(crate) fn set_pending(&mut self, source: usize, value: f64) {
        put(
            &mut self.bytes,
            LIVE_HEAD + source * PDP_PREP + PDP_VALUE,
            value.to_bits(),
        );
    }

    /// The open row of an archive: one cell per data source.
    pub(crate) fn cells(&mut self, archive: usize) -> impl Iterator<Item = CdpPrep<'_>> {
        let length = self.sources * CDP_PREP;
        let (cells, _) = self.bytes[self.cells + archive * length..][..length].as_chunks_mut();
        cells.iter_mut().map(CdpPrep)
    }

    /// The bytes of a completed row's value: for the first row of an update, or for later ones.
    pub(crate) fn row_value(&self, archive: usize, source: usize, is_first: bool) -> &[u8] {
        let field = if is_first { CDP_PRIMARY } else { CDP_SECONDARY };
        let at = self.cells + (archive * self.sources + source) * CDP_PREP + field;
        &self.bytes[at..at + 8]
    }
}

/// The open row of an archive for one data source.
pub(crate) struct CdpPrep<'a>(&'a mut [u8; CDP_PREP]);

impl CdpPrep<'_> {
    pub(crate) fn value(&self) -> f64 {
        f64::from_bits(get(self.0, CDP_VALUE))
    }

    pub(crate) fn set_value(&mut self, value: f64) {
        put(self.0, CDP_VALUE, value.to_bits());
    }

    /// Number of unknown steps.
    pub(crate) fn unknown(&self) -> u64 {
        get(self.0, CDP_UNKNOWN)
    }

    pub(crate) fn set_unknown(&mut self, steps: u64) {
        put(self.0, CDP_UNKNOWN, steps);
    }

    pub(crate) fn set_primary(&mut self, value: f64) {
        put(self.0, CDP_PRIMARY, value.to_bits());
    }

    pub(crate) fn set_secondary(&mut self, value: f64) {
        put(self.0, CDP_SECONDARY, value.to_bits());
    }
}
