//! `tsb stores`: lists the stores, their options, and the durability of their acknowledgements.

use std::fmt::Write as _;

use tsb_core::report::Written;
use tsb_core::report::listing::{ListedOption, ListedStore, Listing};
use tsb_run::spec::{PathKind, StoreInfo, known};

use crate::args::{Format, StoresArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{document, print};
use crate::render::lines::{Lines, terminal_width};

/// Runs the command.
pub fn command(args: &StoresArgs) -> Result<Exit, Failure> {
    let text = match args.format {
        Format::Text => text(terminal_width()),
        Format::Json => document(&Listing {
            written: Written::here(),
            stores: known().iter().map(listed).collect(),
        })?,
        Format::Csv => csv(),
    };
    print(text.as_bytes())?;
    Ok(Exit::Done)
}

fn name(store: &StoreInfo) -> String {
    match (store.is_wrapper, store.path) {
        (true, _) => format!("{}+STORE", store.scheme),
        (false, PathKind::Path | PathKind::Address { .. }) => format!("{}:PATH", store.scheme),
        (false, PathKind::Nowhere) => format!("{}:", store.scheme),
    }
}

/// Width of the store names.
const NAMES: usize = 17;

fn text(width: Option<usize>) -> String {
    let mut lines = Lines::new(width);
    let start = |name: &str| format!("{name:<NAMES$}");
    for store in known().iter().filter(|store| store.is_built()) {
        lines.hang(&start(&name(store)), store.what, NAMES);
        lines.hang(&start(""), &format!("durability: {}", store.durability), NAMES + 2);
        for option in store.options {
            let default = option
                .default
                .map_or(String::new(), |value| format!(" (default {value})"));
            let text = format!("?{}={}  {}{default}", option.name, option.kind.form(), option.what);
            lines.hang(&start("  "), &text, NAMES + 4);
        }
    }
    lines.heading("Not in this build:");
    for store in known().iter().filter(|store| !store.is_built()) {
        lines.hang(&start(&name(store)), store.what, NAMES);
    }
    lines.finish()
}

fn csv() -> String {
    let mut out = "scheme,built,wrapper,durability,what\n".to_owned();
    for store in known() {
        let _ = writeln!(
            out,
            "{},{},{},\"{}\",\"{}\"",
            store.scheme,
            store.is_built(),
            store.is_wrapper,
            store.durability,
            store.what.replace('"', "\"\"")
        );
    }
    out
}

fn listed(store: &StoreInfo) -> ListedStore {
    let options = store.options.iter().map(|option| ListedOption {
        name: option.name.to_owned(),
        form: option.kind.form().into_owned(),
        default: option.default.map(str::to_owned),
        what: option.what.to_owned(),
    });
    ListedStore {
        scheme: store.scheme.to_owned(),
        what: store.what.to_owned(),
        durability: store.durability.to_owned(),
        built: store.is_built(),
        feature: store.feature.map(str::to_owned),
        wrapper: store.is_wrapper,
        takes_path: store.path != PathKind::Nowhere,
        options: options.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_fits_80_columns_and_is_whole_in_a_file() {
        let (narrow, whole) = (text(Some(80)), text(None));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&narrow), words(&whole));
        for store in known() {
            assert!(
                whole.contains(&name(store)) && whole.contains(store.what),
                "{}",
                store.scheme
            );
        }
    }
}
