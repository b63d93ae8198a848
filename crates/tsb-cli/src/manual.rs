//! Completion scripts and manual pages, generated from the command line's description.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Failure;

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tsb", &mut script);
    print(&script)
}

/// Prints the manual page of `tsb`, or writes one page per command into `dir`.
pub fn pages(dir: Option<&Path>) -> Result<Exit, Failure> {
    if let Some(dir) = dir {
        let failure = || Failure::usage(format!("cannot write manual pages into {}", dir.display()));
        std::fs::create_dir_all(dir).map_err(|error| failure().because(&error))?;
        clap_mangen::generate_to(Cli::command(), dir).map_err(|error| failure().because(&error))?;
        return Ok(Exit::Done);
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
    rendered.map_err(|error| Failure::new(Exit::Bug, "cannot render the manual page").because(&error))?;
    print(&page)
}

fn print(bytes: &[u8]) -> Result<Exit, Failure> {
    crate::output::print(bytes)?;
    Ok(Exit::Done)
}
