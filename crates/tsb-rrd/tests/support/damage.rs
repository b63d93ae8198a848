//! What any bytes at all must not do to us when they call themselves an RRD file.

use std::path::Path;

use tsb_rrd::{Archive, Cf, DataSource, DsKind, ExclusiveFile, Layout, RrdFile, Session, rows};

const START_S: i64 = 1_700_000_000;

/// What went wrong around the test, not in it.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Sound files of several layouts, some of them updated.
pub(crate) fn corpus(folder: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let mut files = Vec::new();
    for (index, kind) in DsKind::ALL.into_iter().enumerate() {
        let sources = vec![DataSource::new("a", kind, 20), DataSource::new("b", DsKind::Gauge, 20)];
        let archives = Cf::ALL.map(|cf| Archive::new(cf, 0.5, 1 + index as u64, 7));
        let layout = Layout::new(10, sources, archives.to_vec())?;
        let path = folder.join(format!("corpus-{index}"));
        let _ = std::fs::remove_file(&path);
        tsb_rrd::create(&path, &layout, START_S, index as u64)?;
        let file = RrdFile::open(&path)?;
        let updates: Vec<_> = (1..index as i64 * 5)
            .map(|n| format!("{}:{n}:{n}.5", START_S + n * 4))
            .collect();
        file.update(&mut Session::default(), &updates)?;
        files.push(std::fs::read(&path)?);
    }
    Ok(files)
}

/// Opens, reads and updates `bytes` as a file: no panic, no growth, and what is refused
/// stays as it was. True where it was taken for a sound file.
pub(crate) fn check(folder: &Path, bytes: &[u8]) -> Result<bool, Failure> {
    let path = folder.join("damaged");
    std::fs::write(&path, bytes)?;
    let Ok(file) = RrdFile::open(&path) else {
        assert!(std::fs::read(&path)? == bytes, "a refused file was changed");
        return Ok(false);
    };
    let mut session = Session::default();
    let count = file.layout().archives().len().min(20);
    for archive in 0..=count {
        for (from_s, to_s) in [(i64::MIN, i64::MAX), (START_S, START_S + 50), (i64::MAX, i64::MIN)] {
            let _ = rows(&file, &mut session, archive, from_s, to_s);
        }
    }
    let values = ":1".repeat(file.layout().sources().len());
    let updates = [START_S + 1000, START_S + 1001, START_S + 90_000].map(|at| format!("{at}{values}"));
    let updated = file.update(&mut session, &updates);
    if updated.is_err() {
        assert!(std::fs::read(&path)? == bytes, "a failed pass changed the file");
    }
    if let Ok(mut exclusive) = ExclusiveFile::open(&path, file.layout()) {
        let _ = exclusive.update(&mut session, &[format!("{}{values}", START_S + 200_000)]);
    }
    let length = std::fs::metadata(&path)?.len();
    assert_eq!(length, bytes.len() as u64, "the file has grown");
    Ok(true)
}
