//! Rules about imports between the files of one crate: no circle of them is longer than two.
//!
//! A path that begins with `crate`, `super`, `self` or a child module is resolved to the file that
//! defines the name, through re-exports. Macros and paths inside macro bodies count like any other
//! code; tests do not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::source::{Source, Tree};
use super::{Finding, Rule};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "circles",
    why: "files that import each other in a circle of three or more can only be understood, tested and moved together",
    check: circles,
}];

/// Re-exports are followed this far.
const HOPS_MAX: usize = 8;

/// A module of a crate, as the names from its root.
type Module = Vec<String>;

/// The files of one crate by their modules.
struct Package<'a> {
    files: BTreeMap<Module, &'a Source>,
    imports: BTreeMap<Module, Vec<Import>>,
}

/// A path of a `use` declaration.
struct Import {
    segments: Vec<String>,
    /// The name that the file knows it by.
    name: String,
}

/// No lint looks at more than one file.
fn circles(tree: &Tree, found: &mut Vec<Finding>) {
    for package in packages(tree) {
        for circle in long_circles(&package.graph()) {
            let names: Vec<&str> = circle.iter().map(|module| package.path(module)).collect();
            let first = names.first().copied().unwrap_or_default();
            found.push(Finding::new(
                first,
                0,
                format!("imports {} in a circle", names[1..].join(" -> ")),
            ));
        }
    }
}

/// The sources of each folder `src`.
fn packages(tree: &Tree) -> Vec<Package<'_>> {
    let mut by_root: BTreeMap<&str, BTreeMap<Module, &Source>> = BTreeMap::new();
    for file in tree.rust().filter(|file| !file.is_test_file()) {
        let Some((root, inside)) = file.path.split_once("/src/") else {
            continue;
        };
        by_root.entry(root).or_default().insert(module_of(inside), file);
    }
    let packages = by_root.into_values().map(|files| {
        let imports = files.iter().map(|(module, file)| (module.clone(), imports(file)));
        Package {
            imports: imports.collect(),
            files,
        }
    });
    packages.collect()
}

/// `a/b.rs` is the module `a::b`; `lib.rs` and `main.rs` are the root.
fn module_of(inside: &str) -> Module {
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    match inside {
        "lib" | "main" => Vec::new(),
        _ => inside.split('/').map(str::to_owned).collect(),
    }
}

/// What the `use` declarations of a file name.
fn imports(file: &Source) -> Vec<Import> {
    let (mut all, mut open) = (Vec::new(), None::<String>);
    for (_, line) in file.library_lines() {
        let code = line.code.trim();
        let mut text = match open.take() {
            Some(text) => text + code,
            None => match declaration(code) {
                Some(rest) => rest.to_owned(),
                None => continue,
            },
        };
        if let Some(end) = text.find(';') {
            text.truncate(end);
            expand(&text.replace(' ', "\u{1}"), &[], &mut all);
        } else {
            // `as` needs its blanks, the others are layout.
            text.push(' ');
            open = Some(text);
        }
    }
    all
}

/// What stands behind `use` at the beginning of a line, with or without a visibility.
fn declaration(code: &str) -> Option<&str> {
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => code,
    };
    code.strip_prefix("use ")
}

/// Spreads `a::{b, c as d}` into its paths. Blanks are marked by `\u{1}`.
fn expand(text: &str, prefix: &[String], all: &mut Vec<Import>) {
    let text = text.trim_matches(['\u{1}', ',']);
    if let Some((head, rest)) = text.split_once('{') {
        let mut prefix = prefix.to_vec();
        prefix.extend(segments(head));
        let inner = rest.strip_suffix('}').unwrap_or(rest);
        for part in parts(inner).into_iter().filter(|part| !part.is_empty()) {
            expand(part, &prefix, all);
        }
        return;
    }
    let (path, alias) = text.split_once("\u{1}as\u{1}").unwrap_or((text, ""));
    let mut full = prefix.to_vec();
    // `a::{self}` is `a`.
    let is_first = full.is_empty();
    full.extend(segments(path).filter(|segment| is_first || segment != "self"));
    let last = full.last().cloned().unwrap_or_default();
    if !last.is_empty() {
        all.push(Import {
            name: if alias.is_empty() { last } else { alias.to_owned() },
            segments: full,
        });
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::")
        .map(|segment| segment.trim_matches('\u{1}').to_owned())
        .filter(|segment| !segment.is_empty())
}

/// At the commas that stand in no braces.
fn parts(text: &str) -> Vec<&str> {
    let text = text.trim_matches('\u{1}').trim_end_matches(',');
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Paths in code outside of `use` declarations: `crate::a::b(...)`.
fn inline_paths(file: &Source) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (_, line) in file.library_lines() {
        for root in ["crate::", "super::"] {
            for (at, _) in line.code.match_indices(root) {
                let head = &line.code[..at];
                let before = head.chars().next_back();
                // A visibility, `pub(in crate::a)`, imports nothing.
                if head.ends_with("(in ") || before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue;
                }
                let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
                let path = line.code[at..].split(|c| !is_path(c)).next().unwrap_or_default();
                paths.push(segments(path).collect());
            }
        }
    }
    paths
}

impl Package<'_> {
    fn path(&self, module: &Module) -> &str {
        self.files.get(module).map_or("", |file| &file.path)
    }

    /// Which files each file imports, but for those below it: `a.rs` and the folder `a` are one
    /// module, which others import by `a.rs`.
    fn graph(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let edges = self.files.iter().map(|(module, file)| {
            let declared = self.imports[module].iter().map(|import| import.segments.clone());
            let all = declared.chain(inline_paths(file));
            let targets = all.filter_map(|path| self.resolve(module, &path, HOPS_MAX));
            (
                module.clone(),
                targets.filter(|target| !target.starts_with(module)).collect(),
            )
        });
        edges.collect()
    }

    /// The file that defines what a path in a module names; `None` for other crates.
    fn resolve(&self, module: &Module, path: &[String], hops: usize) -> Option<Module> {
        let mut at = module.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|first| first == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            child => {
                let mut below = at.clone();
                below.push(child.to_owned());
                self.files.get(&below)?;
            }
        }
        while let Some(name) = rest.first() {
            let mut below = at.clone();
            below.push(name.clone());
            if !self.files.contains_key(&below) {
                break;
            }
            at = below;
            rest = &rest[1..];
        }
        let passed_on = rest.first().and_then(|name| self.passed_on(&at, name));
        match passed_on {
            Some(path) if hops > 0 && path != rest => self.resolve(&at, path, hops - 1).or(Some(at)),
            _ => self.files.contains_key(&at).then_some(at),
        }
    }

    /// The path under which a module imports a name that it may pass on.
    fn passed_on(&self, module: &Module, name: &str) -> Option<&[String]> {
        let found = self.imports.get(module)?.iter().find(|import| import.name == name);
        found.map(|import| import.segments.as_slice())
    }
}

/// One circle of three files or more for each group of files that has one: the shortest.
fn long_circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let mut circles: Vec<Vec<Module>> = Vec::new();
    for (from, targets) in graph {
        for to in targets {
            let Some(way_back) = way(graph, to, from) else { continue };
            let circle: Vec<Module> = [from.clone()].into_iter().chain(way_back).collect();
            circles.push(circle);
        }
    }
    circles.sort_by_key(Vec::len);
    let mut seen: BTreeSet<Module> = BTreeSet::new();
    circles.retain(|circle| {
        let is_new = !circle.iter().any(|module| seen.contains(module));
        if is_new {
            seen.extend(circle.iter().cloned());
        }
        is_new
    });
    circles
}

/// The shortest way from one file back to another that is not their direct import.
fn way(graph: &BTreeMap<Module, BTreeSet<Module>>, from: &Module, to: &Module) -> Option<Vec<Module>> {
    let mut before: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for next in graph.get(at).into_iter().flatten() {
            if (at == from && next == to) || before.contains_key(next) || next == from {
                continue;
            }
            before.insert(next, at);
            if next == to {
                let steps = std::iter::successors(Some(to), |at| before.get(*at).copied());
                let mut steps: Vec<Module> = steps.cloned().collect();
                steps.reverse();
                return Some(steps);
            }
            queue.push_back(next);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut found = Vec::new();
        circles(&Tree::of_texts(files), &mut found);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_of_three_is_found_with_its_files() {
        let files = [
            ("p/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("p/src/a.rs", "use crate::b::B;\npub struct A;\n"),
            ("p/src/b.rs", "use super::c::{self, C as D};\npub struct B;\n"),
            ("p/src/c.rs", "fn c() { crate::a::f() }\npub struct C;\n"),
        ];
        assert_eq!(
            found(&files),
            ["p/src/a.rs: imports p/src/b.rs -> p/src/c.rs -> p/src/a.rs in a circle"]
        );
    }

    #[test]
    fn pairs_tests_comments_and_other_crates_are_no_circles() {
        let files = [
            ("p/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
            ("p/src/a.rs", "use crate::b::B;\nuse std::fmt;\npub struct A;\n"),
            ("p/src/b.rs", "use crate::A;\n// crate::c::C\npub struct B;\n"),
            (
                "p/src/c.rs",
                "use crate::b::B;\npub(in crate::a) fn c() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            ),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn a_name_that_is_passed_on_leads_to_the_file_that_defines_it() {
        // By the face of the folder, `two` imports `one`, and not the folder.
        let files = [
            ("p/src/lib.rs", "mod folder;\n"),
            (
                "p/src/folder.rs",
                "mod one;\nmod two;\npub use one::One;\nuse two::Two;\n",
            ),
            ("p/src/folder/one.rs", "pub struct One;\n"),
            ("p/src/folder/two.rs", "use super::One;\npub struct Two;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn declarations_over_several_lines_are_read() {
        let tree = Tree::of_texts(&[(
            "p/src/a.rs",
            "pub(crate) use crate::{\n    b::{B, C},\n    d as e,\n};\n",
        )]);
        let all = tree.rust().flat_map(imports);
        let all: Vec<String> = all
            .map(|import| format!("{}={}", import.name, import.segments.join("::")))
            .collect();
        assert_eq!(all, ["B=crate::b::B", "C=crate::b::C", "e=crate::d"]);
    }
}
