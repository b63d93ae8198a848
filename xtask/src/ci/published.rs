//! Checks that every published package contains licences, a readme, metadata, and all files that
//! its sources name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Outcome;
use crate::shell::{capture, cargo};

/// Files that every package has.
const FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// What every manifest says.
const SAID: &[&str] = &[
    "description",
    "license",
    "repository",
    "readme",
    "keywords",
    "categories",
];
/// Papers of the project that readers of the documentation do not have.
const UNKNOWN_TO_READERS: &[&str] = &["DESIGN.md", "STYLE.md"];

/// Checks every package that is not kept from being published.
pub(super) fn check() -> Result<Outcome> {
    let metadata = capture(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let published: Vec<&Value> = packages.iter().filter(|package| package["publish"].is_null()).collect();
    let mut found = Vec::new();
    for package in &published {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().context("a manifest in a folder")?;
        let list = capture(&mut cargo(&["package", "--list", "--allow-dirty", "--package", name]))?;
        let files: BTreeSet<PathBuf> = list.lines().map(PathBuf::from).collect();
        let problems = problems(package, &files, |file| fs::read_to_string(folder.join(file)).ok());
        found.extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    if !found.is_empty() {
        bail!("{} problems in packages:\n{}", found.len(), found.join("\n"));
    }
    Ok(Outcome::Passed(format!("{} packages", published.len())))
}

/// What is wrong with a package that holds `files`.
fn problems(package: &Value, files: &BTreeSet<PathBuf>, read: impl Fn(&Path) -> Option<String>) -> Vec<String> {
    let missing = FILES.iter().filter(|file| !files.contains(Path::new(file)));
    let mut found: Vec<String> = missing.map(|file| format!("{file} is not in the package")).collect();
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let unsaid = SAID.iter().filter(|field| is_empty(&package[**field]));
    found.extend(unsaid.map(|field| format!("the manifest has no {field}")));
    if package["metadata"]["docs"]["rs"].is_null() {
        found.push("the manifest has no [package.metadata.docs.rs]".to_owned());
    }
    let sources = files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    for source in sources {
        let text = read(source).unwrap_or_default();
        for named in named_files(source, &text) {
            if !files.contains(&named) {
                found.push(format!(
                    "{} needs {}, which is not in it",
                    source.display(),
                    named.display()
                ));
            }
        }
        for paper in UNKNOWN_TO_READERS.iter().filter(|paper| text.contains(*paper)) {
            found.push(format!("{} cites {paper}, which no reader has", source.display()));
        }
    }
    found
}

/// The files that a source is compiled from beside itself, as paths in the package.
fn named_files(source: &Path, text: &str) -> Vec<PathBuf> {
    let folder = source.parent().unwrap_or(Path::new(""));
    let after = |mark: &str| {
        let ends: Vec<usize> = text.match_indices(mark).map(|(at, _)| at + mark.len()).collect();
        ends.into_iter()
            .filter_map(|at| Some(text[at..].split_once('"')?.0.to_owned()))
            .collect::<Vec<_>>()
    };
    ["include_str!(\"", "include_bytes!(\"", "#[path = \""]
        .into_iter()
        .flat_map(after)
        .map(|name| normal(&folder.join(name)))
        .collect()
}

/// A path without `..` where that is possible: one that leaves the package keeps it.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if normal.file_name().is_some() => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn whole() -> Value {
        json!({
            "description": "x", "license": "MIT", "repository": "x", "readme": "README.md",
            "keywords": ["x"], "categories": ["x"], "metadata": { "docs": { "rs": { "features": [] } } }
        })
    }

    fn check(package: &Value, files: &[&str], text: &str) -> Vec<String> {
        let files = files.iter().map(PathBuf::from).collect();
        problems(package, &files, |_| Some(text.to_owned()))
    }

    const HELD: [&str; 5] = [
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "src/a/tests.rs",
        "data/x.txt",
    ];

    #[test]
    fn a_whole_package_has_no_problems_and_each_thing_that_lacks_is_named() {
        let include = "include_str!(\"../../data/x.txt\")";
        assert_eq!(check(&whole(), &HELD, include), Vec::<String>::new());
        assert_eq!(
            check(&whole(), &HELD[1..], ""),
            ["LICENSE-APACHE is not in the package"]
        );
        let mut bare = whole();
        bare["metadata"] = Value::Null;
        bare["keywords"] = json!([]);
        let found = check(&bare, &HELD, "");
        assert_eq!(
            found,
            [
                "the manifest has no keywords",
                "the manifest has no [package.metadata.docs.rs]"
            ]
        );
    }

    #[test]
    fn a_source_that_needs_or_cites_what_is_elsewhere_is_named() {
        let found = check(&whole(), &HELD, "include_bytes!(\"../../../y.txt\")");
        assert_eq!(found, ["src/a/tests.rs needs ../y.txt, which is not in it"]);
        let found = check(&whole(), &HELD, "#[path = \"other.rs\"] mod other; // see DESIGN.md");
        assert_eq!(
            found,
            [
                "src/a/tests.rs needs src/a/other.rs, which is not in it",
                "src/a/tests.rs cites DESIGN.md, which no reader has"
            ]
        );
    }
}
