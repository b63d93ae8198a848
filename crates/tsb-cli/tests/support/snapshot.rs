//! Texts of the program, compared with those that are kept in fixtures/.

use std::path::{Path, PathBuf};

/// A file of fixtures/.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// Compares with a file of fixtures/; with TSB_BLESS set, writes it.
pub(crate) fn is_as_kept(name: &str, text: &str) {
    let path = fixture(name);
    if std::env::var_os("TSB_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, text, "{name} differs; TSB_BLESS=1 cargo test writes it anew");
}
