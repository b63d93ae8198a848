//! Reads a file's layout and series, without opening it as a store.

use std::path::Path;

use rusqlite::Connection;
use tsb_core::SeriesKey;

use super::Layout;
use super::file::Database;
use crate::error::Result;
use crate::numbers::key_of;

/// The layout of a file, and its series in the order of their numbers. The file may be open as a
/// store; what that has not committed is not visible.
///
/// # Errors
/// [`Error::Backend`](crate::Error::Backend) for a file that cannot be read or belongs to another
/// program, [`Error::Corrupt`](crate::Error::Corrupt) for a damaged one.
pub fn catalog(path: &Path) -> Result<(Layout, Vec<SeriesKey>)> {
    let (database, reader) = Database::open_to_read(path)?;
    let layout = match database.layout(&reader)?.as_str() {
        "rows" => Layout::Rows,
        "mohawk" => Layout::Mohawk,
        _ => Layout::Ticks,
    };
    let read = match layout {
        Layout::Mohawk => names(&reader),
        Layout::Ticks | Layout::Rows => named_with_labels(&reader),
    };
    let pairs = database.done("read the series of", read)?;
    let keys = pairs.iter().map(|(name, labels)| {
        let key = key_of(name, labels);
        key.ok_or_else(|| database.corrupt(&format!("labels {labels:?} of series {name:?} cannot be read")))
    });
    Ok((layout, keys.collect::<Result<_>>()?))
}

/// In Mohawk's layout the name includes the labels.
fn names(reader: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = reader.prepare("SELECT id FROM ids ORDER BY rowid")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, "{}".to_owned())))?;
    rows.collect()
}

fn named_with_labels(reader: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = reader.prepare("SELECT name, labels FROM series ORDER BY number")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use tsb_core::{Batch, SeriesId, Timestamp};

    use super::*;
    use crate::sqlite::{SqliteOptions, open};
    use crate::store::Refusals;

    #[test]
    fn the_series_of_every_layout_are_listed_without_changing_the_file() {
        let dir = tempfile::tempdir().unwrap();
        for (layout, labels) in [(Layout::Ticks, true), (Layout::Rows, true), (Layout::Mohawk, false)] {
            let path = dir.path().join(format!("{layout:?}.db"));
            let key = if labels {
                SeriesKey::with_labels("b\"", [("host", "a,b")])
            } else {
                SeriesKey::new("b")
            };
            let keys = [SeriesKey::new("c"), key];
            let store = open(&path, layout, SqliteOptions::default()).unwrap();
            let pairs: Vec<_> = (0..).map(SeriesId).zip(keys.iter().cloned()).collect();
            store.define(&pairs).unwrap();
            let batch = Batch::tick(SeriesId(0), Timestamp(1_000_000_000), &[1.0, 2.0]);
            assert_eq!(store.write(&batch, &mut Refusals::default()).unwrap().accepted, 2);
            store.close().unwrap();
            let before = std::fs::read(&path).unwrap();
            assert_eq!(catalog(&path).unwrap(), (layout, keys.to_vec()));
            assert_eq!(std::fs::read(&path).unwrap(), before);
        }
        let foreign = dir.path().join("foreign.db");
        std::fs::write(&foreign, "not a database at all, but long enough to be one".repeat(40)).unwrap();
        assert!(catalog(&foreign).is_err());
    }
}
