//! `tsb report`: reports shown again, one or several side by side.

use std::path::Path;

use tsb_core::report::Report;

use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Target, first_failure, print, write_page};
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
    let Some(report) = all else {
        return Err(Failure::usage("cannot show a report").because_of("none was named"));
    };
    let page = args.html.as_deref().map(Target::prepare).transpose()?;
    let page = page.map(|target| write_page(&report, &target));
    let tables = args.csv.as_deref().map(|dir| write_tables(&report, dir));
    let stdout = render::bytes(&report, args.format).and_then(|bytes| print(&bytes));
    let all = [page, tables, Some(stdout)].into_iter().flatten();
    first_failure(all.filter_map(Result::err))?;
    Ok(Exit::Done)
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
