//! The calls of librrd with Rust types. Arguments are converted to C here; only `ffi` makes the
//! calls.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::ffi;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of librrd.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process holds the lock of the file.
    #[error("{0}")]
    Locked(String),
    /// An update is not later than the last one in the file.
    #[error("{0}")]
    NotLater(String),
    /// Any other error, with librrd's message.
    #[error("{0}")]
    Librrd(String),
    /// A text with a zero byte, which cannot be passed to C.
    #[error("a zero byte in {0:?}")]
    ZeroByte(String),
}

impl Error {
    fn of(text: String) -> Self {
        // librrd has no error codes, only messages.
        if text.contains("could not lock RRD") {
            Self::Locked(text)
        } else if text.contains("illegal attempt to update using time") {
            Self::NotLater(text)
        } else {
            Self::Librrd(text)
        }
    }
}

/// Rows of one archive, as fetched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fetched {
    /// End of the first row, in seconds since the epoch.
    pub first_s: i64,
    /// Seconds from one row to the next.
    pub step_s: u64,
    /// Names of the data sources; each row has one value per source.
    pub sources: Vec<String>,
    /// The values, row by row; NaN is unknown.
    pub values: Vec<f64>,
}

/// One line of `rrdtool info`.
#[derive(Clone, Debug, PartialEq)]
pub enum InfoValue {
    /// A number; NaN is unknown.
    Value(f64),
    /// A count.
    Count(u64),
    /// A text.
    Text(String),
}

/// The definition of a new file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Creation<'a> {
    /// Seconds per step; 0: the template's, or 300.
    pub step_s: u64,
    /// The file accepts updates after this time, in seconds since the epoch; `None`: ten seconds
    /// ago, or after the last update of the sources.
    pub start_s: Option<i64>,
    /// Whether an existing file of this name is kept and reported as an error.
    pub keeps_old: bool,
    /// Files whose rows are copied into the new one.
    pub sources: &'a [PathBuf],
    /// A file whose data sources and archives are added to those defined here.
    pub template: Option<&'a Path>,
    /// As for `rrdtool create`: `DS:...` and `RRA:...`.
    pub definitions: &'a [String],
}

/// Creates a file.
pub fn create(path: &Path, creation: &Creation<'_>) -> Result<()> {
    let sources = creation.sources.iter().map(|source| c_path(source));
    let raw = ffi::CreateArgs {
        step_s: creation.step_s,
        start_s: creation.start_s.unwrap_or(-1),
        keeps_old: creation.keeps_old,
        sources: sources.collect::<Result<_>>()?,
        template: creation.template.map(c_path).transpose()?,
        definitions: texts(creation.definitions)?,
    };
    ffi::create(&c_path(path)?, &raw).map_err(Error::of)
}

/// Applies updates, `time:value[:value...]`, in order. The first that is refused ends the call:
/// those before it are applied, those after it are not.
pub fn update<T: AsRef<str>>(path: &Path, updates: &[T]) -> Result<()> {
    let updates = texts(updates)?;
    ffi::update(&c_path(path)?, &updates).map_err(Error::of)
}

/// Time of the last update, in whole seconds.
pub fn last(path: &Path) -> Result<i64> {
    ffi::last(&c_path(path)?).map_err(Error::of)
}

/// The rows that end after `start_s`, up to `end_s`, from the archive that librrd selects by
/// consolidation function and step. librrd may return one more row at either end.
pub fn fetch(path: &Path, function: &str, start_s: i64, end_s: i64, step_s: u64) -> Result<Fetched> {
    let function = text(function)?;
    ffi::fetch(&c_path(path)?, &function, start_s, end_s, step_s).map_err(Error::of)
}

/// End of the oldest row of an archive, in seconds since the epoch.
pub fn first(path: &Path, archive: u16) -> Result<i64> {
    ffi::first(&c_path(path)?, archive.into()).map_err(Error::of)
}

/// The output of `rrdtool info` for a file, in its order.
pub fn info(path: &Path) -> Result<Vec<(String, InfoValue)>> {
    ffi::info(&c_path(path)?).map_err(Error::of)
}

/// The file as XML, as `rrdtool dump` prints it; an error if that exceeds `limit` bytes.
pub fn dump(path: &Path, limit: usize) -> Result<Vec<u8>> {
    ffi::dump(&c_path(path)?, limit).map_err(Error::of)
}

/// Changes a file as `rrdtool tune` does.
///
/// librrd would flush the file through the daemon that an option or `RRDCACHED_ADDRESS` names.
/// Here it never talks to a daemon: the environment variable is overridden, and an option that
/// names one is an error.
pub fn tune(path: &Path, options: &[String]) -> Result<()> {
    let is_daemon = |option: &&String| option.starts_with("-D") || option.starts_with("--daemon");
    if let Some(option) = options.iter().find(is_daemon) {
        return Err(Error::Librrd(format!("unknown option '{option}'")));
    }
    let mut arguments = texts(&["tune", "--daemon", ""])?;
    arguments.push(c_path(path)?);
    arguments.extend(texts(options)?);
    ffi::tune(&arguments).map_err(Error::of)
}

/// Version of the linked library, such as `1.7.2`.
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

    fn started(definitions: &[String]) -> Creation<'_> {
        Creation {
            step_s: 10,
            start_s: Some(1_700_000_000),
            keeps_old: true,
            definitions,
            ..Creation::default()
        }
    }

    fn info_value(path: &Path, key: &str) -> Option<InfoValue> {
        let facts = info(path).unwrap();
        facts.into_iter().find_map(|(name, fact)| (name == key).then_some(fact))
    }

    #[test]
    fn a_file_is_described_changed_dumped_and_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rrd");
        let mut all = definitions();
        all.push("DS:sum:COMPUTE:a,b,+".to_owned());
        create(&path, &started(&all)).unwrap();
        update(&path, &["1700000010:5:7", "1700000020:6:27"]).unwrap();
        assert_eq!(
            info_value(&path, "ds[sum].type"),
            Some(InfoValue::Text("COMPUTE".to_owned()))
        );
        assert_eq!(info_value(&path, "step"), Some(InfoValue::Count(10)));
        assert_eq!(
            info_value(&path, "ds[a].min").map(|value| matches!(value, InfoValue::Value(v) if v.is_nan())),
            Some(true)
        );
        assert_eq!(first(&path, 0), Ok(1_700_000_020 - 29 * 10));
        assert!(matches!(first(&path, 9), Err(Error::Librrd(_))));
        tune(&path, &["--minimum".to_owned(), "a:3".to_owned()]).unwrap();
        assert_eq!(info_value(&path, "ds[a].min"), Some(InfoValue::Value(3.0)));
        let refused = tune(&path, &["--daemon=/tmp/x.sock".to_owned()]).unwrap_err();
        assert!(refused.to_string().contains("--daemon"), "{refused}");
        let xml = String::from_utf8(dump(&path, 1 << 20).unwrap()).unwrap();
        assert!(xml.starts_with("<?xml") && xml.trim_end().ends_with("</rrd>"), "{xml}");
        assert!(dump(&path, 100).is_err());
        let copy = folder.path().join("b.rrd");
        let from = Creation {
            sources: std::slice::from_ref(&path),
            template: Some(&path),
            ..Creation::default()
        };
        create(&copy, &from).unwrap();
        let rows = |path: &Path| fetch(path, "AVERAGE", 1_700_000_010, 1_700_000_020, 10).unwrap();
        assert_eq!(rows(&copy).values[..3], [6.0, 2.0, 8.0]);
        assert_eq!(rows(&copy).values[..3], rows(&path).values[..3]);
    }

    #[test]
    fn written_values_are_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rrd");
        create(&path, &started(&definitions())).unwrap();
        let updates: Vec<_> = (1..=8)
            .map(|n| format!("{}:{n}:{}", 1_700_000_000 + n * 10, n * 100))
            .collect();
        update(&path, &updates).unwrap();
        assert_eq!(last(&path), Ok(1_700_000_080));
        let fetched = fetch(&path, "AVERAGE", 1_700_000_030, 1_700_000_060, 10).unwrap();
        assert_eq!(
            (fetched.first_s, fetched.step_s, fetched.sources.as_slice()),
            (1_700_000_040, 10, ["a", "b"].map(str::to_owned).as_slice())
        );
        assert_eq!(fetched.values[..6], [4.0, 10.0, 5.0, 10.0, 6.0, 10.0]);
        assert!(version().starts_with("1."), "{}", version());
    }

    #[test]
    fn errors_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rrd");
        assert!(matches!(update(&path, &["1:1"]), Err(Error::Librrd(_))));
        create(&path, &started(&definitions())).unwrap();
        let again = create(&path, &started(&definitions())).unwrap_err();
        assert!(again.to_string().contains("File exists"), "{again}");
        assert!(matches!(update(&path, &["1700000000:1:1"]), Err(Error::NotLater(_))));
        assert!(matches!(update(&path, &["1700000010:x:1"]), Err(Error::Librrd(_))));
        assert!(matches!(update(&path, &["17\x0000:x:1"]), Err(Error::ZeroByte(_))));
        let odd = create(&folder.path().join("b.rrd"), &started(&["DS:a:b".to_owned()]));
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
                    create(&path, &started(&definitions())).unwrap();
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
