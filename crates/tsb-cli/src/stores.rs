//! `tsb stores`: what can be driven, with which options, and what an ack is worth.

use std::fmt::Write as _;

use serde_json::json;
use tsb_stores::spec::{Place, StoreInfo, known};

use crate::args::{Format, StoresArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;

/// Runs the command.
pub fn command(args: &StoresArgs) -> Result<Exit, Failure> {
    let text = match args.format {
        Format::Text => text(),
        Format::Json => format!(
            "{:#}\n",
            json!({ "schema_version": 1, "stores": known().iter().map(value).collect::<Vec<_>>() })
        ),
        Format::Csv => csv(),
    };
    print(text.as_bytes())?;
    Ok(Exit::Done)
}

fn name(store: &StoreInfo) -> String {
    match (store.is_wrapper, store.place) {
        (true, _) => format!("{}+STORE", store.scheme),
        (false, Place::Path | Place::Address) => format!("{}:PATH", store.scheme),
        (false, Place::Nowhere) => format!("{}:", store.scheme),
    }
}

fn text() -> String {
    let mut out = String::new();
    for store in known().iter().filter(|store| store.is_built()) {
        let _ = writeln!(
            out,
            "{:<16} {}\n{:<16} durability: {}",
            name(store),
            store.what,
            "",
            store.durability
        );
        for option in store.options {
            let default = option
                .default
                .map_or(String::new(), |value| format!(" (default {value})"));
            let _ = writeln!(
                out,
                "{:<16}   ?{}={}  {}{default}",
                "",
                option.name,
                option.kind.form(),
                option.what
            );
        }
    }
    let _ = writeln!(out, "\nNot in this build:");
    for store in known().iter().filter(|store| !store.is_built()) {
        let _ = writeln!(out, "{:<16} {}", name(store), store.what);
    }
    out
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

fn value(store: &StoreInfo) -> serde_json::Value {
    let options = store.options.iter().map(|option| {
        json!({ "name": option.name, "form": option.kind.form(), "default": option.default, "what": option.what })
    });
    json!({
        "scheme": store.scheme,
        "what": store.what,
        "durability": store.durability,
        "built": store.is_built(),
        "feature": store.feature,
        "wrapper": store.is_wrapper,
        "takes_path": store.place != Place::Nowhere,
        "options": options.collect::<Vec<_>>(),
    })
}
