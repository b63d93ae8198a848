//! `tsb report`: reports shown again, one or several side by side.

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
    let page = page.map(|target| write_page(&report, &target));
    let tables = args.csv.as_deref().map(|dir| write_tables(&report, dir));
    let stdout = render::bytes(&report, args.format).and_then(|bytes| print(&bytes));
    let all = [page, tables, Some(stdout)].into_iter().flatten();
    first_failure(all.filter_map(Result::err))?;
    Ok(Exit::Done)
}

/// Names the runs: as the user says, else as their files where one store runs more than once.
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

fn write_tables(report: &Report, dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir)
        .map_err(|error| Failure::usage(format!("cannot write {}", dir.display())).because(&error))?;
    for (name, text) in render::csv::tables(report) {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| Failure::unwritten(path.display(), &error))?;
    }
    Ok(())
}
