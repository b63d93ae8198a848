//! The calls in Rust's types. What C needs is prepared here; only `ffi` calls it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::ffi;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// What librrd said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has the lock of the file.
    #[error("{0}")]
    Locked(String),
    /// A reading is not later than what the file has.
    #[error("{0}")]
    NotLater(String),
    /// Anything else, in librrd's words.
    #[error("{0}")]
    Librrd(String),
    /// A text with a zero byte, which C cannot be given.
    #[error("a zero byte in {0:?}")]
    ZeroByte(String),
}

impl Error {
    fn of(text: String) -> Self {
        // librrd has no codes for errors, only words.
        if text.contains("could not lock RRD") {
            Self::Locked(text)
        } else if text.contains("illegal attempt to update using time") {
            Self::NotLater(text)
        } else {
            Self::Librrd(text)
        }
    }
}

/// Rows of one archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fetched {
    /// The end of the first row, in seconds since the epoch.
    pub first_s: i64,
    /// From one row to the next.
    pub step_s: u64,
    /// Data sources: values of a row.
    pub sources: usize,
    /// Row after row; NaN is unknown.
    pub values: Vec<f64>,
}

/// Creates a file that takes updates after `start_s`; `definitions` are as for `rrdtool
/// create`, `DS:...` and `RRA:...`. A file that is there stays, and is an error.
pub fn create(path: &Path, step_s: u64, start_s: i64, definitions: &[String]) -> Result<()> {
    let definitions = texts(definitions)?;
    ffi::create(&c_path(path)?, step_s, start_s, &definitions).map_err(Error::of)
}

/// Gives a file some readings, `time:value[:value...]`, of which the first that is refused
/// ends the call: those before it are applied, those after it are not.
pub fn update<T: AsRef<str>>(path: &Path, readings: &[T]) -> Result<()> {
    let readings = texts(readings)?;
    ffi::update(&c_path(path)?, &readings).map_err(Error::of)
}

/// The time of the last update, in whole seconds.
pub fn last(path: &Path) -> Result<i64> {
    ffi::last(&c_path(path)?).map_err(Error::of)
}

/// The rows that end after `start_s`, up to `end_s`, of the archive that librrd finds to
/// match a consolidation function and step best; it may return a row more at either end.
pub fn fetch(path: &Path, function: &str, start_s: i64, end_s: i64, step_s: u64) -> Result<Fetched> {
    let function = text(function)?;
    ffi::fetch(&c_path(path)?, &function, start_s, end_s, step_s).map_err(Error::of)
}

/// The version of the library that is linked, such as `1.7.2`.
pub fn version() -> String {
    ffi::version()
}

fn c_path(path: &Path) -> Result<CString> {
    let bytes = path.as_os_str().as_bytes();
    CString::new(bytes).map_err(|_| Error::ZeroByte(path.display().to_string()))
}

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::ZeroByte(text.to_owned()))
}

fn texts<T: AsRef<str>>(list: &[T]) -> Result<Vec<CString>> {
    list.iter().map(|item| text(item.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions() -> Vec<String> {
        [
            "DS:a:GAUGE:20:U:U",
            "DS:b:COUNTER:20:0:U",
            "RRA:AVERAGE:0.5:1:30",
            "RRA:MAX:0.5:5:10",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    #[test]
    fn what_is_put_in_comes_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rrd");
        create(&path, 10, 1_700_000_000, &definitions()).unwrap();
        let readings: Vec<_> = (1..=8)
            .map(|n| format!("{}:{n}:{}", 1_700_000_000 + n * 10, n * 100))
            .collect();
        update(&path, &readings).unwrap();
        assert_eq!(last(&path), Ok(1_700_000_080));
        let fetched = fetch(&path, "AVERAGE", 1_700_000_030, 1_700_000_060, 10).unwrap();
        assert_eq!(
            (fetched.first_s, fetched.step_s, fetched.sources),
            (1_700_000_040, 10, 2)
        );
        assert_eq!(fetched.values[..6], [4.0, 10.0, 5.0, 10.0, 6.0, 10.0]);
        assert!(version().starts_with("1."), "{}", version());
    }

    #[test]
    fn errors_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rrd");
        assert!(matches!(update(&path, &["1:1"]), Err(Error::Librrd(_))));
        create(&path, 10, 1_700_000_000, &definitions()).unwrap();
        let again = create(&path, 10, 1_700_000_000, &definitions()).unwrap_err();
        assert!(again.to_string().contains("File exists"), "{again}");
        assert!(matches!(update(&path, &["1700000000:1:1"]), Err(Error::NotLater(_))));
        assert!(matches!(update(&path, &["1700000010:x:1"]), Err(Error::Librrd(_))));
        assert!(matches!(update(&path, &["17\x0000:x:1"]), Err(Error::ZeroByte(_))));
        let odd = create(&folder.path().join("b.rrd"), 10, 1_700_000_000, &["DS:a:b".to_owned()]);
        assert!(matches!(odd, Err(Error::Librrd(_))));
        assert!(matches!(fetch(&path, "MEDIAN", 0, 1, 10), Err(Error::Librrd(_))));
    }

    #[test]
    fn each_thread_has_its_own_errors() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = folder.path().join(format!("{thread}.rrd"));
                scope.spawn(move || {
                    create(&path, 10, 1_700_000_000, &definitions()).unwrap();
                    for n in 1..200 {
                        update(&path, &[format!("{}:{n}:{n}", 1_700_000_000 + n)]).unwrap();
                        let error = update(&path, &["1700000000:1:1"]).unwrap_err();
                        assert!(error.to_string().contains(&format!("{thread}.rrd")), "{error}");
                    }
                });
            }
        });
    }
}
