//! The entry of `mstore:`, with the conversion of its options.

use std::path::Path;

use super::super::kept::{KeptFiles, MSTORE_FILES};
use super::super::{Kind, Values};
use super::{Keeps, Make, NamedBy, PathKind, StoreInfo, option};
use tsb_stores::error::Result;
use tsb_stores::mstore::{self, CachePolicy, MstoreOptions, MstoreStore};
use tsb_stores::store::Store;

pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "mstore",
    what: "DalmatinerDB's files behind its write caches: one point per step at a place of its own",
    durability: "volatile; a flush makes it synced; cache=off: buffered",
    feature: None,
    is_wrapper: false,
    path: PathKind::Path,
    options: &[
        option(
            "step",
            Kind::Duration,
            None,
            "length of a point; without it, that of the files, or 1s for new ones",
        ),
        option(
            "points_per_file",
            Kind::Count,
            None,
            "points of a series in one file; without it, that of the files, or 604800 for new ones",
        ),
        option(
            "cache",
            Kind::Word(&["round2", "round1", "off"]),
            Some("round2"),
            "which points wait: a window in any order, an unbroken block, none",
        ),
        option(
            "cache_points",
            Kind::Count,
            Some("120"),
            "points of a series that wait at most",
        ),
        option(
            "defect",
            Kind::Number,
            Some("0"),
            "1: a late point forgets those behind it, as round 2 did",
        ),
        option(
            "max_files",
            Kind::Count,
            Some("1024"),
            "most files of points; samples that need one more are refused as full",
        ),
        option(
            "max_series",
            Kind::Count,
            Some("1000000"),
            "most series; beyond it, a run cannot define more",
        ),
    ],
    make: Some(Make::Store(open)),
    list: Some(|path, _| Ok(mstore::catalog(Path::new(path))?.1)),
    keeps: Keeps::Files {
        find: |path, _| Some(KeptFiles::folder(path, MSTORE_FILES)),
        named_by: NamedBy::Path('-'),
    },
};

fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn Store>> {
    let folder = Path::new(path);
    let made = mstore::made_with(folder)?.unwrap_or_default();
    let options = MstoreOptions {
        step_ns: values.duration_ns("step")?.unwrap_or(made.step_ns),
        points_per_file: match values.count("points_per_file")? {
            Some(points) => i64::try_from(points).unwrap_or(i64::MAX),
            None => made.points_per_file,
        },
        cache: match values.word("cache")?.as_deref() {
            Some("off") => CachePolicy::Off,
            Some("round1") => CachePolicy::Round1,
            _ => CachePolicy::Round2,
        },
        cache_points: values.usize_or("cache_points", made.cache_points)?,
        has_defect: values.count("defect")?.unwrap_or(0) != 0,
        max_files: values.usize_or("max_files", made.max_files)?,
        max_series: values.usize_or("max_series", made.max_series)?,
    };
    Ok(Box::new(MstoreStore::open(folder, options)?))
}
