//! Tests of the rules on ARCHITECTURE.md, on small trees that are made up.

use super::*;

const STORES: &str = "[package]\nname = \"tsb-stores\"\n[dependencies]\ntsb-core.workspace = true\nserde = \"1\"\n";

/// A tree of two packages whose page is right.
const SOUND: &[(&str, &str)] = &[
    (
        "ARCHITECTURE.md",
        "## Crates\n```text\ntsb-stores -> tsb-core\ntsb-core\n```\n## Code map\n\
         ### `crates/tsb-core`\n| room | what |\n| --- | --- |\n| `batch`, `time` | data |\n\
         | `net` (feature `net`) | sockets (`parker`), `f64` and `Batch` |\n\
         ### `crates/tsb-stores`\n| `store` | the contract |\n\
         ### The rest\n| `docs/` | words |\n## Next\n| `none` | |\n",
    ),
    ("Cargo.toml", "[workspace]\n[workspace.dependencies]\nserde = \"1\"\n"),
    ("crates/tsb-core/Cargo.toml", "[package]\nname = \"tsb-core\"\n"),
    ("crates/tsb-core/src/batch.rs", ""),
    ("crates/tsb-core/src/lib.rs", ""),
    ("crates/tsb-core/src/net.rs", ""),
    ("crates/tsb-core/src/net/parker.rs", ""),
    ("crates/tsb-core/src/time.rs", ""),
    ("crates/tsb-stores/Cargo.toml", STORES),
    ("crates/tsb-stores/src/store.rs", "use tsb_core::batch::Batch;\n"),
    ("docs/x.md", ""),
];

/// What both rules find in the sound tree after `change`: the file, a text in it, and what stands
/// there instead.
fn found(change: (&str, &str, &str)) -> Vec<String> {
    let (path, old, new) = change;
    let texts: Vec<(&str, String)> = SOUND
        .iter()
        .map(|&(name, text)| {
            (
                name,
                if name == path {
                    text.replacen(old, new, 1)
                } else {
                    text.to_owned()
                },
            )
        })
        .collect();
    assert!(
        texts.iter().zip(SOUND).any(|(new, old)| new.1 != old.1) || old == new,
        "{old} is not there"
    );
    found_in(
        &texts
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect::<Vec<_>>(),
    )
}

fn found_in(texts: &[(&str, &str)]) -> Vec<String> {
    let (tree, mut found) = (Tree::of_texts(texts), Vec::new());
    drawing(&tree, &mut found);
    code_map(&tree, &mut found);
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_page_that_says_what_is_there_is_sound() {
    assert_eq!(found((PAGE, "", "")), [""; 0]);
    let itself = "[dev-dependencies]\ntsb-stores = { path = \".\" }\ntsb-core = { workspace = true }\n";
    assert_eq!(
        found(("crates/tsb-stores/Cargo.toml", "serde = \"1\"\n", itself)),
        [""; 0]
    );
}

#[test]
fn packages_that_are_not_drawn_or_not_there_are_found() {
    assert_eq!(
        found((PAGE, "\ntsb-core\n```", "\ntsb-core\ntsb-rrd\ntsb-core\n```")),
        [
            "ARCHITECTURE.md:5: no package tsb-rrd",
            "ARCHITECTURE.md:6: tsb-core is drawn twice"
        ]
    );
    assert_eq!(
        found((PAGE, "tsb-stores -> tsb-core\n", "")),
        ["crates/tsb-stores/Cargo.toml: tsb-stores is not in the drawing"]
    );
    let without_page = found_in(&SOUND[1..3]);
    assert_eq!(without_page.len(), 2, "{without_page:?}");
}

#[test]
fn an_import_that_only_the_drawing_or_only_the_manifest_has_is_found() {
    assert_eq!(
        found((PAGE, "tsb-stores -> tsb-core", "tsb-stores")),
        ["crates/tsb-stores/Cargo.toml:4: tsb-stores imports tsb-core, which is not drawn"]
    );
    assert_eq!(
        found(("crates/tsb-stores/Cargo.toml", "tsb-core.workspace = true\n", "")),
        ["ARCHITECTURE.md:3: tsb-stores does not import tsb-core"]
    );
    assert_eq!(
        found(("crates/tsb-stores/src/store.rs", "tsb_core", "tsb_core_of_others")),
        ["crates/tsb-stores/Cargo.toml:4: no code of tsb-stores names tsb-core"]
    );
}

#[test]
fn an_import_that_only_a_feature_brings_has_a_question_mark() {
    let optional = (
        "crates/tsb-stores/Cargo.toml",
        "core.workspace = true",
        "core = { optional = true }",
    );
    let expected = "Cargo.toml:4: a question mark in the drawing says that only a feature brings tsb-core";
    assert_eq!(found(optional), [format!("crates/tsb-stores/{expected}")]);
    assert_eq!(
        found((PAGE, "-> tsb-core", "-> tsb-core?")),
        [format!("crates/tsb-stores/{expected}")]
    );
}

#[test]
fn an_import_from_above_is_found() {
    assert_eq!(
        found((
            PAGE,
            "tsb-stores -> tsb-core\ntsb-core\n",
            "tsb-core\ntsb-stores -> tsb-core\n"
        )),
        ["ARCHITECTURE.md:4: tsb-core is not drawn below tsb-stores"]
    );
}

#[test]
fn rooms_that_are_not_there_are_found() {
    assert_eq!(
        found((PAGE, "`batch`, `time`", "`batch`, `time`, `clock`")),
        ["ARCHITECTURE.md:10: no module crates/tsb-core/src/clock"]
    );
    assert_eq!(
        found((PAGE, "`parker`", "`parking`")),
        ["ARCHITECTURE.md:11: no module parking in crates/tsb-core/src/net"]
    );
    assert_eq!(
        found((PAGE, "| `docs/` |", "| `docs/`, `papers/` |")),
        ["ARCHITECTURE.md:15: no such path: papers/"]
    );
}

#[test]
fn modules_and_folders_without_a_room_are_found() {
    assert_eq!(
        found((PAGE, ", `time`", "")),
        ["ARCHITECTURE.md: crates/tsb-core/src/time is not in the code map"]
    );
    assert_eq!(
        found((PAGE, "| `docs/` | words |\n", "")),
        ["ARCHITECTURE.md: docs/ is not in the code map"]
    );
    // A package may be one row of the rest.
    let row = "| `docs/`, `crates/tsb-stores/` | words |";
    assert_eq!(
        found((PAGE, "### `crates/tsb-stores`\n| `store` | the contract |\n", "")).len(),
        1
    );
    let page = SOUND[0]
        .1
        .replace("### `crates/tsb-stores`\n| `store` | the contract |\n", "");
    let page = page.replace("| `docs/` | words |", row);
    let mut texts = SOUND.to_vec();
    texts[0].1 = &page;
    assert_eq!(found_in(&texts), [""; 0]);
}
