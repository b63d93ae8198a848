//! The table entry of programs that speak the protocol of `docs/formats/exec.md`, and the
//! conversion of its options.

#[cfg(feature = "exec")]
use super::Make;
use super::{Keeps, Kind, MAX_SERIES, NamedBy, OptionInfo, PathKind, StoreInfo, option};
use crate::spec::kept::{EXEC_FILES, KeptFiles};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "exec",
    what: "your own database, in any language: PROGRAM ARGUMENTS is started and asked over its input and output",
    durability: "as the program says",
    feature: Some("exec"),
    is_wrapper: false,
    path: PathKind::Path,
    options: &OPTIONS,
    #[cfg(feature = "exec")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "exec"))]
    make: None,
    list: None,
    keeps: Keeps::Files {
        find: |_, values| {
            let folder = values.word("place").ok().flatten()?;
            Some(KeptFiles::folder(&folder, EXEC_FILES))
        },
        named_by: NamedBy::Option("place"),
    },
};

static OPTIONS: [OptionInfo; 3] = [
    option(
        "place",
        Kind::Checked("a folder", |text| !text.is_empty()),
        None,
        "folder of its own that the program finds in the variable TSB_PLACE; without it, the variable is not set",
    ),
    option(
        "timeout",
        Kind::Duration,
        Some("30s"),
        "longest wait for the greeting, each answer, and the end of the program",
    ),
    MAX_SERIES,
];

#[cfg(feature = "exec")]
mod client {
    use crate::spec::Values;
    use tsb_remote::exec::{self, ExecOptions};
    use tsb_stores::AsyncStore;
    use tsb_stores::error::Result;

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        let default = ExecOptions::new(path)?;
        let options = ExecOptions {
            place: values.word("place")?.map(Into::into),
            timeout: values.duration_or("timeout", default.timeout)?,
            max_series: values.usize_or("max_series", default.max_series)?,
            ..default
        };
        Ok(Box::new(exec::open(&options)?))
    }
}
