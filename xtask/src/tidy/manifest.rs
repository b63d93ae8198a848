//! Rules about manifests: where versions are stated, and that lints apply. Who may depend on whom is
//! in `house`.

use super::source::{Source, Tree};
use super::{Finding, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "one version",
        why: "a dependency is stated once, in the workspace manifest, with its reason",
        check: one_version,
    },
    Rule {
        name: "lints",
        why: "house rules that a lint checks are in the workspace manifest; a package that does not take them is checked for none",
        check: lints,
    },
    Rule {
        name: "fuzz targets",
        why: "each reader that the stable fuzzer knows is a target of cargo-fuzz, too, which follows what code an input reaches",
        check: fuzz_targets,
    },
];

/// One entry of a dependency section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    // Counted from 1.
    pub(super) line: usize,
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

/// The entries of every `[...dependencies]` section.
pub(super) fn dependencies(manifest: &Source) -> Vec<Entry<'_>> {
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

/// Manifests of the packages of the workspace: the fuzz package is a workspace of its own.
pub(super) fn members(tree: &Tree) -> impl Iterator<Item = &Source> {
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    manifests.filter(|manifest| !manifest.text.contains("[workspace]"))
}

/// Clippy's `multiple_crate_versions` looks at what is built, not at where it is stated.
fn one_version(tree: &Tree, found: &mut Vec<Finding>) {
    for manifest in members(tree) {
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

/// No lint looks for itself.
fn lints(tree: &Tree, found: &mut Vec<Finding>) {
    for manifest in members(tree).filter(|manifest| !manifest.text.contains("\n[lints]\nworkspace = true\n")) {
        found.push(Finding::new(&manifest.path, 0, "has no [lints] of the workspace"));
    }
}

/// Whether each entry in the list of the stable fuzzer has a binary in `fuzz`.
fn fuzz_targets(tree: &Tree, found: &mut Vec<Finding>) {
    let targets = tree.file("crates/tsb-core/examples/fuzz/targets.rs");
    let manifest = tree.file("fuzz/Cargo.toml").map_or("", |manifest| &manifest.text);
    for (index, line) in targets.into_iter().flat_map(|list| list.text.lines().enumerate()) {
        let name = line
            .trim()
            .strip_prefix("name: \"")
            .and_then(|rest| rest.strip_suffix("\","));
        if let Some(name) = name.filter(|name| !manifest.contains(&format!("[[bin]]\nname = \"{name}\"\n"))) {
            let path = "crates/tsb-core/examples/fuzz/targets.rs";
            found.push(Finding::new(
                path,
                index + 1,
                format!("{name} is no binary of fuzz/Cargo.toml"),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RULES;
    use crate::tidy::source::Tree;
    use crate::tidy::tests::findings;

    fn check(rule: &str, path: &str, text: &str, expected: &[&str]) {
        assert_eq!(findings(RULES, rule, path, text), expected, "{rule} on {path}:\n{text}");
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

    #[test]
    fn a_target_of_the_stable_fuzzer_without_a_binary_is_found() {
        let list = "    Target {\n        name: \"a\",\n    },\n    Target {\n        name: \"a-b\",\n    },\n";
        let path = "crates/tsb-core/examples/fuzz/targets.rs";
        let tree = Tree::of_texts(&[(path, list), ("fuzz/Cargo.toml", "[[bin]]\nname = \"a-b\"\n")]);
        let mut found = Vec::new();
        super::fuzz_targets(&tree, &mut found);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, [format!("{path}:2: a is no binary of fuzz/Cargo.toml")]);
    }

    #[test]
    fn every_package_takes_the_lints() {
        let path = "crates/a/Cargo.toml";
        check(
            "lints",
            path,
            "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n",
            &[],
        );
        check("lints", path, "[package]\n", &["0: has no [lints] of the workspace"]);
        check("lints", path, "[package]\n[workspace]\n", &[]);
    }
}
