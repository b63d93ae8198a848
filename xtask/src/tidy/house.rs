//! Rules that compare ARCHITECTURE.md with the tree: its drawing of packages with manifests and
//! code, its code map with files. What a room is for is left to reviewers.

use std::collections::BTreeMap;

use super::manifest::{Entry, dependencies, members};
use super::rules::has_word;
use super::source::{Source, Tree};
use super::{Finding, Rule};

/// The document that the rules read.
const PAGE: &str = "ARCHITECTURE.md";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "drawing",
        why: "the drawing of packages in ARCHITECTURE.md is what manifests and code say, and each package imports only from below it, so that each can be embedded without those that use it",
        check: drawing,
    },
    Rule {
        name: "code map",
        why: "the code map in ARCHITECTURE.md names every room that exists and no other, so that a reader finds the file by the map",
        check: code_map,
    },
];

/// A package of the repository.
struct Package<'a> {
    folder: &'a str,
    name: &'a str,
    manifest: &'a Source,
}

/// Every package of the workspace.
fn packages(tree: &Tree) -> Vec<Package<'_>> {
    let manifests = members(tree).filter_map(|manifest| {
        let folder = manifest.path.strip_suffix("/Cargo.toml")?;
        let (_, package) = manifest.text.split_once("[package]")?;
        let name = package
            .lines()
            .find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))?;
        Some(Package { folder, name, manifest })
    });
    manifests.collect()
}

impl Package<'_> {
    /// The dependencies on packages of ours other than itself, by name, with whether only a
    /// feature brings them.
    fn imports(&self, ours: &[Package<'_>]) -> BTreeMap<&str, Import> {
        let mut imports: BTreeMap<&str, Import> = BTreeMap::new();
        let is_other = |entry: &Entry<'_>| entry.name != self.name && ours.iter().any(|other| other.name == entry.name);
        for entry in dependencies(self.manifest).into_iter().filter(is_other) {
            let is_optional = entry.value.contains("optional = true");
            let import = imports.entry(entry.name).or_insert(Import {
                line: entry.line,
                is_optional,
            });
            import.is_optional &= is_optional;
        }
        imports
    }

    /// Whether any code of the package names another package.
    fn names(&self, tree: &Tree, other: &str) -> bool {
        let root = other.replace('-', "_");
        let below = format!("{}/", self.folder);
        let mut files = tree.rust().filter(|file| file.path.starts_with(&below));
        files.any(|file| file.lines.iter().any(|line| has_word(&line.code, &root)))
    }
}

/// One dependency on a package of ours.
#[derive(Debug)]
struct Import {
    // Of the first entry in the manifest, counted from 1.
    line: usize,
    is_optional: bool,
}

/// One line of the drawing: `name -> import import?`.
struct Drawn<'a> {
    // Counted from 1.
    line: usize,
    name: &'a str,
    /// With whether a question mark follows it.
    imports: Vec<(&'a str, bool)>,
}

/// The numbered lines of a section of the page, up to the next one.
fn section<'a>(tree: &'a Tree, title: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = tree
        .file(PAGE)
        .into_iter()
        .flat_map(|page| page.text.lines().enumerate());
    let from = lines.skip_while(move |(_, line)| line.strip_prefix("## ") != Some(title));
    let inside = from.skip(1).take_while(|(_, line)| !line.starts_with("## "));
    inside.map(|(index, line)| (index + 1, line))
}

/// The first fenced block of the section on crates.
fn drawn(tree: &Tree) -> Vec<Drawn<'_>> {
    let fenced = section(tree, "Crates").skip_while(|(_, line)| !line.starts_with("```"));
    let inside = fenced.skip(1).take_while(|(_, line)| !line.starts_with("```"));
    let drawn = inside.filter_map(|(line, text)| {
        let mut words = text.split_whitespace();
        let name = words.next()?;
        let imports = words.filter(|&word| word != "->");
        let imports = imports.map(|word| word.strip_suffix('?').map_or((word, false), |name| (name, true)));
        Some(Drawn {
            line,
            name,
            imports: imports.collect(),
        })
    });
    drawn.collect()
}

fn drawing(tree: &Tree, found: &mut Vec<Finding>) {
    let (packages, drawn) = (packages(tree), drawn(tree));
    for package in &packages {
        match drawn.iter().position(|drawn| drawn.name == package.name) {
            Some(at) => compare(tree, &packages, package, &drawn[at..], found),
            None => found.push(Finding::new(
                &package.manifest.path,
                0,
                format!("{} is not in the drawing", package.name),
            )),
        }
    }
    for (index, line) in drawn.iter().enumerate() {
        if !packages.iter().any(|package| package.name == line.name) {
            found.push(Finding::new(PAGE, line.line, format!("no package {}", line.name)));
        }
        if drawn[..index].iter().any(|other| other.name == line.name) {
            found.push(Finding::new(PAGE, line.line, format!("{} is drawn twice", line.name)));
        }
    }
}

/// Compares a package with its line, the first of `drawn`; the others are those below it.
fn compare(tree: &Tree, all: &[Package<'_>], package: &Package<'_>, drawn: &[Drawn<'_>], found: &mut Vec<Finding>) {
    let [line, below @ ..] = drawn else { return };
    let imports = package.imports(all);
    let name = package.name;
    for (&other, import) in &imports {
        let at_manifest = |what| Finding::new(&package.manifest.path, import.line, what);
        match line.imports.iter().find(|(drawn, _)| *drawn == other) {
            None => found.push(at_manifest(format!("{name} imports {other}, which is not drawn"))),
            Some((_, is_optional)) if *is_optional != import.is_optional => {
                found.push(at_manifest(format!(
                    "a question mark in the drawing says that only a feature brings {other}"
                )));
            }
            Some(_) => {}
        }
        if !package.names(tree, other) {
            found.push(at_manifest(format!("no code of {name} names {other}")));
        }
    }
    for (other, _) in &line.imports {
        let at_page = |what| Finding::new(PAGE, line.line, what);
        if !imports.contains_key(other) {
            found.push(at_page(format!("{name} does not import {other}")));
        }
        if !below.iter().any(|line| line.name == *other) {
            found.push(at_page(format!("{other} is not drawn below {name}")));
        }
    }
}

/// A row of the code map.
struct Room<'a> {
    // Counted from 1.
    line: usize,
    /// The folder of the package whose section it stands in; `None` in the section on the rest.
    home: Option<&'a str>,
    /// The first cell: modules of the package, or paths of the repository.
    names: Vec<&'a str>,
    /// Words of the other cells that are written as modules.
    inner: Vec<&'a str>,
}

/// The code spans of a text.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn rooms(tree: &Tree) -> Vec<Room<'_>> {
    let (mut rooms, mut home) = (Vec::new(), None);
    for (line, text) in section(tree, "Code map") {
        if text.starts_with("### ") {
            home = spans(text).next();
        } else if let Some((first, others)) = text.strip_prefix('|').and_then(|row| row.split_once('|')) {
            // In parentheses stands the feature that a room needs.
            let names = spans(first.split('(').next().unwrap_or_default());
            let is_module = |span: &&str| span.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            rooms.push(Room {
                line,
                home,
                names: names.collect(),
                inner: spans(others).filter(is_module).collect(),
            });
        }
    }
    rooms
}

/// Whether a folder has a module of that name, as a file or as a folder.
fn has_module(tree: &Tree, folder: &str, name: &str) -> bool {
    tree.has(&format!("{folder}/{name}.rs")) || tree.has(&format!("{folder}/{name}"))
}

fn code_map(tree: &Tree, found: &mut Vec<Finding>) {
    let rooms = rooms(tree);
    for room in &rooms {
        existing(tree, room, found);
    }
    let rest = || {
        rooms
            .iter()
            .filter(|room| room.home.is_none())
            .flat_map(|room| &room.names)
    };
    let is_covered = |folder: &str| rest().any(|path| path.trim_end_matches('/') == folder);
    for package in packages(tree).iter().filter(|package| !is_covered(package.folder)) {
        let mapped = rooms.iter().filter(|room| room.home == Some(package.folder));
        let mapped: Vec<&str> = mapped.flat_map(|room| room.names.iter().copied()).collect();
        let source = format!("{}/src", package.folder);
        for name in top_modules(tree, &source).filter(|name| !mapped.contains(name)) {
            found.push(Finding::new(PAGE, 0, format!("{source}/{name} is not in the code map")));
        }
    }
    let mut folders: Vec<&str> = tree
        .paths
        .iter()
        .filter_map(|path| Some(path.split_once('/')?.0))
        .collect();
    folders.dedup();
    for folder in folders.into_iter().filter(|folder| !folder.starts_with('.')) {
        let below = format!("{folder}/");
        let homes = rooms.iter().filter_map(|room| room.home);
        if !homes.chain(rest().copied()).any(|path| path.starts_with(&below)) {
            found.push(Finding::new(PAGE, 0, format!("{below} is not in the code map")));
        }
    }
}

/// Reports what a row names and the tree does not have.
fn existing(tree: &Tree, room: &Room<'_>, found: &mut Vec<Finding>) {
    let Some(home) = room.home else {
        for path in room.names.iter().filter(|path| !tree.has(path)) {
            found.push(Finding::new(PAGE, room.line, format!("no such path: {path}")));
        }
        return;
    };
    let source = format!("{home}/src");
    for name in room.names.iter().filter(|name| !has_module(tree, &source, name)) {
        found.push(Finding::new(PAGE, room.line, format!("no module {source}/{name}")));
    }
    let mut folders: Vec<String> = room.names.iter().map(|name| format!("{source}/{name}")).collect();
    folders.push(source);
    for inner in &room.inner {
        if !folders.iter().any(|folder| has_module(tree, folder, inner)) {
            let what = format!("no module {inner} in {}", folders[0]);
            found.push(Finding::new(PAGE, room.line, what));
        }
    }
}

/// The modules at the root of a folder `src`.
fn top_modules<'a>(tree: &'a Tree, source: &str) -> impl Iterator<Item = &'a str> {
    let below = format!("{source}/");
    let sources = tree.rust().filter_map(|file| file.path.split_once(&below));
    let inside = sources
        .filter(|(before, _)| before.is_empty())
        .map(|(_, inside)| inside);
    let mut names: Vec<&str> = inside
        .map(|inside| inside.split(['/', '.']).next().unwrap_or_default())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter(|name| !["lib", "main"].contains(name))
}

#[cfg(test)]
mod tests;
