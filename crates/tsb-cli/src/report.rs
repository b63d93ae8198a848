//! `tsb report`: shows one report or the result of an experiment again, or several reports side by
//! side.

use std::path::Path;

use tsb_core::report::{Report, Run};

use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Target, first_failure, print, write_page};
use crate::run::check_labels;
use crate::{render, reports};

/// Runs the command.
pub fn command(args: &ReportArgs) -> Result<Exit, Failure> {
    if let [path] = args.reports.as_slice()
        && let Some(shown) = crate::reproduce::show(&reports::text(path)?, args)
    {
        return shown;
    }
    let mut all: Option<Report> = None;
    for path in &args.reports {
        let report = reports::read(path)?;
        match &mut all {
            Some(all) => all.runs.extend(report.runs),
            None => all = Some(report),
        }
    }
    let Some(mut report) = all else {
        return Err(Failure::usage("cannot show a report").because_of("none was named"));
    };
    label(&mut report.runs, args)?;
    let page = args.html.as_deref().map(Target::prepare).transpose()?;
    let tables = args.csv.as_deref().map(|dir| tables(&report, dir)).transpose()?;
    let page = page.map(|target| write_page(&report, &target));
    let tables = tables.unwrap_or_default().into_iter();
    let tables = tables.map(|(target, text)| target.write(text.as_bytes()));
    // Each is tried, whatever became of the others.
    let mut written: Vec<Result<(), Failure>> = page.into_iter().chain(tables).collect();
    written.push(render::bytes(&report, args.format).and_then(|bytes| print(&bytes)));
    first_failure(written.into_iter().filter_map(Result::err))?;
    Ok(Exit::Done)
}

/// Labels the runs: as the user says, else by file name if a store occurs more than once.
fn label(runs: &mut [Run], args: &ReportArgs) -> Result<(), Failure> {
    check_labels(args.label.len(), runs.len())?;
    for (run, label) in runs.iter_mut().zip(&args.label) {
        run.label = Some(label.clone());
    }
    let stems = args.reports.iter().filter_map(|path| path.file_stem()?.to_str());
    let stems: Vec<&str> = stems.collect();
    let is_one_each =
        stems.len() == runs.len() && (1..stems.len()).all(|index| !stems[..index].contains(&stems[index]));
    let stores: Vec<String> = runs.iter().map(|run| run.target.store.clone()).collect();
    let is_repeated = |index: usize| stores.iter().filter(|store| **store == stores[index]).count() > 1;
    for (index, run) in runs.iter_mut().enumerate() {
        if run.label.is_none() && is_one_each && is_repeated(index) {
            run.label = Some(stems[index].to_owned());
        }
    }
    Ok(())
}

/// The CSV tables of a report, and their files. A file keeps its contents until it is replaced.
///
/// # Errors
/// If one of the files cannot be written; none is written then.
fn tables(report: &Report, dir: &Path) -> Result<Vec<(Target, String)>, Failure> {
    std::fs::create_dir_all(dir)
        .map_err(|error| Failure::usage(format!("cannot write {}", dir.display())).because(&error))?;
    let tables = render::csv::tables(report).into_iter();
    tables
        .map(|(name, text)| Ok((Target::prepare(&dir.join(name))?, text)))
        .collect()
}
