//! `tsb report`: reports shown again, one or several side by side.

use std::fs::File;
use std::path::Path;

use tsb_core::report::Report;

use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::write_page;
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
    if let Some(path) = &args.html {
        let mut file = File::create(path)
            .map_err(|error| Failure::usage(format!("cannot write {}", path.display())).because(&error))?;
        write_page(&report, path, &mut file)?;
    }
    if let Some(dir) = &args.csv {
        write_tables(&report, dir)?;
    }
    render::report(&report, args.format, &mut std::io::stdout().lock())?;
    Ok(Exit::Done)
}

fn write_tables(report: &Report, dir: &Path) -> Result<(), Failure> {
    let failure =
        |path: &Path, error: &std::io::Error| Failure::usage(format!("cannot write {}", path.display())).because(error);
    std::fs::create_dir_all(dir).map_err(|error| failure(dir, &error))?;
    for (name, text) in render::csv::tables(report) {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| failure(&path, &error))?;
    }
    Ok(())
}
