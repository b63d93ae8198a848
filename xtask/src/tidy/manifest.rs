//! Rules about manifests: who may depend on whom.

use super::source::{Source, Tree};
use super::{Finding, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "direction",
        why: "imports run one way, tsb-cli and tsb-bench -> tsb-run -> tsb-remote and tsb-rrdcached -> tsb-stores -> tsb-core, so that each can be embedded without those that use it",
        check: direction,
    },
    Rule {
        name: "one version",
        why: "a dependency is stated once, in the workspace manifest, with its reason",
        check: one_version,
    },
];

/// Each package and those of ours that it may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("crates/tsb-core", &[]),
    ("crates/tsb-rrd", &[]),
    ("crates/tsb-librrd", &[]),
    ("crates/tsb-stores", &["tsb-core", "tsb-rrd", "tsb-librrd"]),
    (
        "crates/tsb-rrdcached",
        &["tsb-core", "tsb-stores", "tsb-rrd", "tsb-librrd"],
    ),
    ("crates/tsb-remote", &["tsb-core", "tsb-stores"]),
    (
        "crates/tsb-run",
        &["tsb-core", "tsb-stores", "tsb-rrdcached", "tsb-remote"],
    ),
    (
        "crates/tsb-cli",
        &["tsb-core", "tsb-stores", "tsb-rrd", "tsb-rrdcached", "tsb-run"],
    ),
    (
        "benches",
        &[
            "tsb-core",
            "tsb-stores",
            "tsb-rrd",
            "tsb-librrd",
            "tsb-rrdcached",
            "tsb-run",
        ],
    ),
    ("examples/own-database", &["tsb-core", "tsb-stores", "tsb-run"]),
    ("xtask", &[]),
];

/// One entry of a dependency section.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    // Counted from 1.
    line: usize,
    name: &'a str,
    value: &'a str,
}

/// The entries of every `[...dependencies]` section.
fn dependencies(manifest: &Source) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.trim_end_matches(']').ends_with("dependencies");
        } else if inside
            && !line.starts_with('#')
            && let Some((name, value)) = line.split_once('=')
        {
            entries.push(Entry {
                line: index + 1,
                name: name.trim().trim_end_matches(".workspace"),
                value: line[line.len() - value.len()..].trim(),
            });
        }
    }
    entries
}

fn direction(tree: &Tree, found: &mut Vec<Finding>) {
    for &(package, allowed) in MAY_IMPORT {
        let Some(manifest) = tree.file(&format!("{package}/Cargo.toml")) else {
            continue;
        };
        for entry in dependencies(manifest) {
            let ours = entry.name.starts_with("tsb-");
            // Dev-dependencies on itself (with other features) are no direction.
            let itself = package.ends_with(entry.name);
            if ours && !itself && !allowed.contains(&entry.name) {
                found.push(Finding::new(
                    &manifest.path,
                    entry.line,
                    format!("{package} imports {}", entry.name),
                ));
            }
        }
    }
}

fn one_version(tree: &Tree, found: &mut Vec<Finding>) {
    let members = MAY_IMPORT.iter().map(|(package, _)| format!("{package}/Cargo.toml"));
    for manifest in members.filter_map(|path| tree.file(&path)) {
        // The fuzz package is a workspace of its own.
        if manifest.text.contains("[workspace]") {
            continue;
        }
        for entry in dependencies(manifest) {
            let shared = entry.value == "true" || entry.value.contains("workspace = true");
            if !shared && !entry.name.starts_with("tsb-") {
                found.push(Finding::new(
                    &manifest.path,
                    entry.line,
                    format!("{} has a version of its own", entry.name),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RULES;
    use crate::tidy::tests::findings;

    fn check(rule: &str, path: &str, text: &str, expected: &[&str]) {
        assert_eq!(findings(RULES, rule, path, text), expected, "{rule} on {path}:\n{text}");
    }

    #[test]
    fn imports_run_one_way() {
        let text = "[dependencies]\ntsb-stores.workspace = true\n";
        check(
            "direction",
            "crates/tsb-core/Cargo.toml",
            text,
            &["2: crates/tsb-core imports tsb-stores"],
        );
        check("direction", "crates/tsb-cli/Cargo.toml", text, &[]);
        let text = "[dev-dependencies]\ntsb-core = { workspace = true, features = [\"net\"] }\n";
        check("direction", "xtask/Cargo.toml", text, &["2: xtask imports tsb-core"]);
        check("direction", "crates/tsb-core/Cargo.toml", text, &[]);
    }

    #[test]
    fn versions_are_stated_once() {
        let text = "[dependencies]\nserde = \"1.0\"\nanyhow.workspace = true\ntoml = { workspace = true }\n";
        check(
            "one version",
            "xtask/Cargo.toml",
            text,
            &["2: serde has a version of its own"],
        );
    }
}
