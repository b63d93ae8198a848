//! The contents of a file's header, as `rrdtool info` reports them.

use crate::error::Result;
use crate::file::{RrdFile, Session};
use crate::layout::Layout;
use crate::live_header::LiveHeader;

/// The value of one line of `rrdtool info`.
#[derive(Clone, Debug, PartialEq)]
pub enum InfoValue {
    /// A number; NaN is unknown.
    Value(f64),
    /// An integer.
    Count(u64),
    /// A string.
    Text(String),
}

/// Everything in the header, under rrdtool's names and in its order. The caller adds the line with
/// the file's name.
///
/// # Errors
/// As for an update; [`Error::Locked`](crate::Error::Locked) while another process writes.
pub fn info(file: &RrdFile, session: &mut Session) -> Result<Vec<(String, InfoValue)>> {
    file.shared(|| file.load(session))?;
    let (layout, live) = (file.layout(), &mut session.live);
    let mut lines = Vec::new();
    let version = layout.statics.get(4..8).unwrap_or_default();
    let version = String::from_utf8_lossy(version).into_owned();
    lines.push(("rrd_version".to_owned(), InfoValue::Text(version)));
    lines.push(("step".to_owned(), InfoValue::Count(layout.step_s)));
    lines.push(("last_update".to_owned(), InfoValue::Count(live.newest().seconds as u64)));
    lines.push(("header_size".to_owned(), InfoValue::Count(layout.header_len() as u64)));
    for index in 0..layout.sources.len() {
        source_info(layout, live, index, &mut lines);
    }
    for index in 0..layout.archives.len() {
        archive_info(layout, live, index, &mut lines);
    }
    Ok(lines)
}

fn source_info(layout: &Layout, live: &LiveHeader, index: usize, lines: &mut Vec<(String, InfoValue)>) {
    let source = &layout.sources[index];
    let mut add = |what: &str, value| lines.push((format!("ds[{}].{what}", source.name), value));
    let last = String::from_utf8_lossy(live.last(index)).into_owned();
    add("index", InfoValue::Count(index as u64));
    add("type", InfoValue::Text(source.kind.name().to_owned()));
    add("minimal_heartbeat", InfoValue::Count(source.heartbeat_s));
    add("min", InfoValue::Value(source.min));
    add("max", InfoValue::Value(source.max));
    add("last_ds", InfoValue::Text(last));
    add("value", InfoValue::Value(live.pending(index)));
    add("unknown_sec", InfoValue::Count(live.unknown_s(index)));
}

fn archive_info(layout: &Layout, live: &mut LiveHeader, index: usize, lines: &mut Vec<(String, InfoValue)>) {
    let archive = &layout.archives[index];
    let mut add = |what: &str, value| lines.push((format!("rra[{index}].{what}"), value));
    add("cf", InfoValue::Text(archive.cf.name().to_owned()));
    add("rows", InfoValue::Count(archive.rows));
    add("cur_row", InfoValue::Count(live.row(index)));
    add("pdp_per_row", InfoValue::Count(archive.steps));
    add("xff", InfoValue::Value(archive.xff));
    for (source, cell) in live.cells(index).enumerate() {
        add(&format!("cdp_prep[{source}].value"), InfoValue::Value(cell.value()));
        add(
            &format!("cdp_prep[{source}].unknown_datapoints"),
            InfoValue::Count(cell.unknown()),
        );
    }
}
