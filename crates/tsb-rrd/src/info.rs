//! The contents of a file's header, as `rrdtool info` reports them.

use crate::error::Result;
use crate::file::{RrdFile, Session};
use crate::layout::Layout;
use crate::live::Live;

/// The value of one line of `rrdtool info`.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
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
pub fn info(file: &RrdFile, session: &mut Session) -> Result<Vec<(String, Fact)>> {
    file.shared(|| file.load(session))?;
    let (layout, live) = (file.layout(), &mut session.live);
    let mut facts = Vec::new();
    let version = layout.statics.get(4..8).unwrap_or_default();
    let version = String::from_utf8_lossy(version).into_owned();
    facts.push(("rrd_version".to_owned(), Fact::Text(version)));
    facts.push(("step".to_owned(), Fact::Count(layout.step_s)));
    facts.push(("last_update".to_owned(), Fact::Count(live.newest().seconds as u64)));
    facts.push(("header_size".to_owned(), Fact::Count(layout.header_len() as u64)));
    for index in 0..layout.sources.len() {
        of_source(layout, live, index, &mut facts);
    }
    for index in 0..layout.archives.len() {
        of_archive(layout, live, index, &mut facts);
    }
    Ok(facts)
}

fn of_source(layout: &Layout, live: &Live, index: usize, facts: &mut Vec<(String, Fact)>) {
    let source = &layout.sources[index];
    let mut say = |what: &str, fact| facts.push((format!("ds[{}].{what}", source.name), fact));
    let last = String::from_utf8_lossy(live.last(index)).into_owned();
    say("index", Fact::Count(index as u64));
    say("type", Fact::Text(source.kind.name().to_owned()));
    say("minimal_heartbeat", Fact::Count(source.heartbeat_s));
    say("min", Fact::Value(source.min));
    say("max", Fact::Value(source.max));
    say("last_ds", Fact::Text(last));
    say("value", Fact::Value(live.pending(index)));
    say("unknown_sec", Fact::Count(live.unknown_s(index)));
}

fn of_archive(layout: &Layout, live: &mut Live, index: usize, facts: &mut Vec<(String, Fact)>) {
    let archive = &layout.archives[index];
    let mut say = |what: &str, fact| facts.push((format!("rra[{index}].{what}"), fact));
    say("cf", Fact::Text(archive.cf.name().to_owned()));
    say("rows", Fact::Count(archive.rows));
    say("cur_row", Fact::Count(live.row(index)));
    say("pdp_per_row", Fact::Count(archive.steps));
    say("xff", Fact::Value(archive.xff));
    for (source, cell) in live.cells(index).enumerate() {
        say(&format!("cdp_prep[{source}].value"), Fact::Value(cell.value()));
        say(
            &format!("cdp_prep[{source}].unknown_datapoints"),
            Fact::Count(cell.unknown()),
        );
    }
}
