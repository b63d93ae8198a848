//! The readers of untrusted bytes for libFuzzer, which follows what code an input reaches. The
//! checks are those of the stable fuzzers, called by name; nothing of them is repeated here.
//!
//! Two are not among them. The fuzzer of SQLite's files damages databases that it makes itself, and
//! that of reports and plans changes trees of JSON, which bytes rarely stay.

#[path = "../../crates/tsb-rrd/tests/support/damage.rs"]
#[expect(dead_code, reason = "the corpus is in fixtures/")]
mod file;
#[path = "../../crates/tsb-rrdcached/tests/support/damage.rs"]
#[expect(dead_code, reason = "nothing is damaged at known places here")]
mod journal;
#[path = "../../crates/tsb-rrdcached/tests/support/lossy.rs"]
#[expect(dead_code, reason = "nothing cuts the power here")]
mod lossy;
#[path = "../../crates/tsb-core/examples/fuzz/targets.rs"]
mod wire;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Gives an input to the reader of that name, which panics if a guarantee is violated.
///
/// # Panics
///
/// Also if there is no reader of that name, or the temporary folder cannot be written to.
pub fn check(name: &str, bytes: &[u8]) {
    if let Some(target) = wire::TARGETS.iter().find(|target| target.name == name) {
        (target.check)(bytes);
    } else {
        match name {
            "rrd-file" => drop(file::check(folder(name), bytes).expect("the disk takes an RRD file")),
            "journal" => drop(journal::check(folder(name), bytes)),
            _ => panic!("no reader is called {name}"),
        }
    }
}

/// The folder of this process, with the RRD files that journals have readings for.
fn folder(name: &str) -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("tsb-fuzz-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        if name == "journal" {
            journal::corpus(&folder);
        }
        folder
    })
}
