//! The files that tidy reads: what git knows of, as text.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::lexer::{self, Line};
use crate::shell;

/// One text file.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the root, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
    /// The lines of a Rust file; empty for any other.
    pub(super) lines: Vec<Line>,
}

impl Source {
    fn new(path: &str, text: String) -> Self {
        let mut source = Self {
            path: path.to_owned(),
            lines: Vec::new(),
            text,
        };
        if source.is_rust() {
            source.lines = lexer::lines(&source.text);
        }
        source
    }

    pub(super) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }

    pub(super) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    pub(super) fn is_markdown(&self) -> bool {
        self.has_extension("md")
    }

    /// Whether the whole file is a test, an example or a benchmark.
    pub(super) fn is_beside_the_library(&self) -> bool {
        self.is_test_file()
            || self.path.contains("/examples/")
            || self.path.starts_with("examples/")
            || self.path.starts_with("benches/")
            || self.path.starts_with("fuzz/")
    }

    /// Whether the whole file holds tests.
    pub(super) fn is_test_file(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/") || self.path.ends_with("_tests.rs")
    }

    /// Lines of the library itself, numbered from 1: no tests, examples or benchmarks.
    pub(super) fn library_lines(&self) -> impl Iterator<Item = (usize, &Line)> {
        let whole = !self.is_beside_the_library();
        let lines = self.lines.iter().enumerate();
        lines
            .filter(move |(_, line)| whole && !line.is_test)
            .map(|(index, line)| (index + 1, line))
    }
}

/// The text files of the repository.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<Source>,
    /// Every path, those of binary files too.
    pub(super) paths: Vec<String>,
}

impl Tree {
    /// Tracked files and new ones that are not ignored.
    pub(super) fn of_repository(root: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root);
        let list = shell::capture(&mut git).context("tidy asks git which files there are")?;
        let mut tree = Self::default();
        for path in list.lines() {
            // A tracked file may be deleted in the working folder.
            let Ok(bytes) = std::fs::read(root.join(path)) else {
                continue;
            };
            tree.paths.push(path.to_owned());
            if let Ok(text) = String::from_utf8(bytes) {
                tree.files.push(Source::new(path, text));
            }
        }
        Ok(tree)
    }

    /// A tree of given files, for tests.
    #[cfg(test)]
    pub(super) fn of_texts(files: &[(&str, &str)]) -> Self {
        Self {
            files: files
                .iter()
                .map(|&(path, text)| Source::new(path, text.to_owned()))
                .collect(),
            paths: files.iter().map(|&(path, _)| path.to_owned()).collect(),
        }
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(super) fn markdown(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.is_markdown())
    }

    pub(super) fn file(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a path names a file, or a folder with a file in it.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = format!("{path}/");
        self.paths
            .iter()
            .any(|known| known == path || known.starts_with(&below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_lists_its_own_files() {
        let tree = Tree::of_repository(&shell::root()).expect("git lists the files");
        assert!(tree.file("xtask/src/main.rs").is_some());
        assert!(tree.has("crates/tsb-core/"));
        assert!(!tree.has("crates/no-such-crate"));
    }

    #[test]
    fn tests_and_examples_are_beside_the_library() {
        let tree = Tree::of_texts(&[
            ("crates/a/src/x.rs", "fn x() {}\n#[cfg(test)]\nmod tests {}\n"),
            ("crates/a/src/x/tests.rs", "fn t() {}\n"),
            ("crates/a/examples/e.rs", "fn e() {}\n"),
        ]);
        let counts: Vec<usize> = tree.rust().map(|file| file.library_lines().count()).collect();
        assert_eq!(counts, [1, 0, 0]);
    }
}
