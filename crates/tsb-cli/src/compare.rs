//! `tsb compare`: stores that do the same work in rounds, or two reports; and whether a side is
//! worse than allowed.

mod files;
mod live;
mod matched;

use std::path::Path;

use tsb_run::spec::Typed;

use crate::args::{CompareArgs, SidesArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Target;
use crate::{hosts, thresholds};

/// Runs the command: on reports if an argument is a file, or is named like one, and no store.
pub fn command(args: &CompareArgs) -> Result<Exit, Failure> {
    if let Some(file) = args.sides.iter().find(|side| is_file(side)) {
        return of_files(file, args);
    }
    let results = live::Results {
        format: args.format,
        out: args.out.as_deref().map(Target::prepare).transpose()?,
        page: args.stores.html.as_deref().map(Target::prepare).transpose()?,
    };
    let thresholds = thresholds::read(&args.fail_if, &args.fail_unless)?;
    let maker = hosts::maker(&args.hosts)?;
    live::command((&args.sides, &*maker), &args.stores, &thresholds, &results)
}

fn is_file(side: &Typed) -> bool {
    let path = Path::new(side.expose());
    side.spec().is_err() && (path.exists() || path.extension().is_some_and(|extension| extension == "json"))
}

fn of_files(file: &Typed, args: &CompareArgs) -> Result<Exit, Failure> {
    let [a, b] = args.sides.as_slice() else {
        return Err(
            Failure::usage(format!("cannot compare {} sides", args.sides.len())).because_of(format!(
                "{file} is a report, and two reports are compared with each other"
            )),
        );
    };
    if args.stores != SidesArgs::default() || args.hosts.is_shared() {
        return Err(Failure::usage(format!("cannot run anything for {a} and {b}"))
            .because_of(format!("{file} is a report, and the options of a run are for stores"))
            .hint("leave them out, or name stores: tsb stores lists them"));
    }
    files::compare(Path::new(a.expose()), Path::new(b.expose()), args)
}
