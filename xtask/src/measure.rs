//! `cargo xtask measure [NAME...]`: produces the figures of docs/measurements.md, one section
//! per name, and says what that takes before it starts.
//!
//! `measure speed COMMIT` is apart: it compares two commits and writes no page unless asked. So is
//! `measure servers`, which has a page of its own.

mod cost;
mod known_ratios;
mod page;
mod regressions;
mod sections;
mod servers;
mod speed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench;
use crate::shell::{Stopwatch, capture, cargo, empty_folder, root, run, spell, succeeds, target_folder};
use crate::table::Table;
use sections::{Excerpt, Program, SECTIONS, Section, Step};

const PAGE: &str = "docs/measurements.md";

/// Measures what is named, or lists what can be.
pub(crate) fn command(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["speed", old, rest @ ..] => speed::measure(old, rest),
        ["servers", rest @ ..] => servers::measure(rest),
        ["speed"] => bail!("measure: speed COMMIT [--only TABLE] [--row NAME] [--rounds N] [--out FILE]"),
        _ => measure(&Options::parse(arguments)?),
    }
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    names: Vec<String>,
    /// Run the shortest form of each command, and leave the page alone.
    is_quick: bool,
    /// Empty the sections that another machine measured.
    is_new_machine: bool,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self {
            names: Vec::new(),
            is_quick: false,
            is_new_machine: false,
        };
        for &argument in arguments {
            match argument {
                "--quick" => options.is_quick = true,
                "--new-machine" => options.is_new_machine = true,
                "all" => options
                    .names
                    .extend(SECTIONS.iter().map(|section| section.name.to_owned())),
                name if SECTIONS.iter().any(|section| section.name == name) => options.names.push(name.to_owned()),
                other => bail!("measure: no section is called {other}; cargo xtask measure lists them"),
            }
        }
        Ok(options)
    }

    fn sections(&self) -> Vec<&'static Section> {
        let is_wanted = |section: &&Section| self.names.iter().any(|name| name == section.name);
        SECTIONS.iter().filter(is_wanted).collect()
    }
}

fn measure(options: &Options) -> Result<()> {
    let chosen = options.sections();
    if chosen.is_empty() {
        println!("{}", requirements(&SECTIONS.iter().collect::<Vec<_>>()));
        println!("cargo xtask measure NAME... runs those sections and writes them into {PAGE}; all runs each of them.");
        println!(
            "cargo xtask measure servers writes {}, and says what that takes when it begins.",
            servers::PAGE
        );
        return Ok(());
    }
    println!("{}", requirements(&chosen));
    if options.is_quick {
        println!("--quick: the shortest form of each command, from a debug build; its figures mean nothing.");
    }
    let is_ready = |section: &&Section| options.is_quick || missing(section).is_empty();
    let (chosen, lacking): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_ready);
    let path = root().join(PAGE);
    // Asked before the page changes, which would count as a change of the sources.
    let commit = commit()?;
    if !options.is_quick {
        prepare_page(&path, options.is_new_machine)?;
    }
    for section in chosen {
        println!("\n=== {} ===", section.name);
        let clock = Stopwatch::start();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let outputs = outputs(section, options.is_quick)?;
        if options.is_quick {
            continue;
        }
        let minutes = clock.elapsed().as_secs().div_ceil(60);
        let text = read_page(&path)?;
        let block = block_of(section.name, &commit, minutes, load.trim(), &outputs);
        fs::write(&path, page::replace(&text, section.name, &block)?).context("cannot write the page")?;
    }
    if !lacking.is_empty() {
        let names: Vec<&str> = lacking.iter().map(|section| section.name).collect();
        bail!("not measured, because packages are missing: {}", names.join(", "));
    }
    Ok(())
}

/// What each section takes: time, disk, and what has to be installed.
fn requirements(listed: &[&Section]) -> String {
    let mut table = Table::new(&["name", "what", ">minutes", ">disk MB", "needs"]);
    for section in listed {
        let gone = missing(section);
        let needs = section.needs.iter().map(|need| {
            let sign = if gone.contains(&need.package) { " (missing)" } else { "" };
            format!("{}{sign}", need.package)
        });
        let needs: Vec<String> = needs.collect();
        let (minutes, disk) = (section.minutes.to_string(), section.disk_mb.to_string());
        table.row(&[section.name, section.what, &minutes, &disk, &needs.join(", ")]);
    }
    let (minutes, disk) = listed.iter().fold((0, 0), |(minutes, disk), section| {
        (minutes + section.minutes, disk.max(section.disk_mb))
    });
    format!(
        "{}\nIn all about {minutes} minutes (estimated, on two cores) and {disk} MB of disk at a time, \
         after release builds, which take about ten minutes the first time.",
        table.render()
    )
}

/// The packages that a section lacks here.
fn missing(section: &Section) -> Vec<&'static str> {
    let is_missing = |probe: &[&str]| match probe {
        [program, arguments @ ..] => !succeeds(Command::new(program).args(arguments)),
        [] => false,
    };
    let lacking = section.needs.iter().filter(|need| is_missing(need.probe));
    lacking.map(|need| need.package).collect()
}

fn read_page(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Sees to it that the page is about this machine.
fn prepare_page(path: &Path, is_new_machine: bool) -> Result<()> {
    let mut text = read_page(path)?;
    let record = bench::record()?;
    let (here, there) = (
        page::processor(&record),
        page::processor(page::block(&text, page::MACHINE)?),
    );
    if here == there {
        return Ok(());
    }
    if !is_new_machine {
        bail!(
            "{PAGE} holds figures of one machine ({}), and this is another ({}); --new-machine begins anew here",
            there.unwrap_or("not named"),
            here.unwrap_or("not named")
        );
    }
    for section in SECTIONS {
        text = page::replace(&text, section.name, &page::unmeasured(section.name))?;
    }
    let kept = record
        .lines()
        .filter(|line| !line.starts_with("commit") && !line.starts_with("load"));
    let kept: Vec<&str> = kept.collect();
    text = page::replace(&text, page::MACHINE, &format!("```text\n{}\n```", kept.join("\n")))?;
    fs::write(path, text).context("cannot write the page")
}

fn commit() -> Result<String> {
    let record = bench::record()?;
    let line = record.lines().find_map(|line| line.strip_prefix("commit: "));
    Ok(line.unwrap_or("unknown").to_owned())
}

/// A section's block: how it was made, then each command with what it printed.
fn block_of(name: &str, commit: &str, minutes: u64, load: &str, outputs: &[(String, String)]) -> String {
    let made = format!(
        "`cargo xtask measure {name}` at commit {commit}; it took {minutes} min, and the load before was {load}.\n"
    );
    let fences = outputs
        .iter()
        .map(|(command, output)| format!("\n```text\n$ {command}\n{}\n```\n", output.trim_end()));
    std::iter::once(made).chain(fences).collect()
}

/// The commands of a section, as one would type them, and what each printed.
fn outputs(section: &Section, is_quick: bool) -> Result<Vec<(String, String)>> {
    let folder = folder(section.name)?;
    let mut outputs = Vec::new();
    for step in section.steps {
        let arguments = if is_quick { step.quick } else { Some(step.arguments) };
        let Some(arguments) = arguments else { continue };
        let (command, output) = carry_out(step, arguments, &folder, is_quick)?;
        let output = kept(&step.excerpt, &output);
        println!("$ {command}\n{output}");
        if !output.trim().is_empty() {
            outputs.push((command, output));
        }
    }
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    Ok(outputs)
}

/// Runs one step, and says it with `FOLDER` for the folder.
fn carry_out(step: &Step, arguments: &[&str], folder: &Path, is_quick: bool) -> Result<(String, String)> {
    let profile: &[&str] = if is_quick { &[] } else { &["--release"] };
    let tsb = [
        "run",
        "--workload",
        "mix",
        "--batch",
        "tick",
        "--transport",
        "tcp",
        "--rate",
        "max",
    ];
    let mut command = match step.program {
        Program::Cost => return Ok((cost::COMMAND.to_owned(), cost::table(cost::ROUNDS)?)),
        Program::Regressions => return Ok((regressions::COMMAND.to_owned(), regressions::table()?)),
        Program::EqualSides => return Ok((known_ratios::EQUAL_COMMAND.to_owned(), known_ratios::equal_table()?)),
        Program::SlowedStore => return Ok((known_ratios::SLOWED_COMMAND.to_owned(), known_ratios::slowed_table()?)),
        Program::Example(name, features) => {
            let mut command = cargo(&["run", "--package", "tsb-bench", "--example", name]);
            command.args(profile);
            if !features.is_empty() {
                command.args(["--features", features]);
            }
            command.arg("--");
            command
        }
        Program::Bench(name) => cargo(&["bench", "--package", "tsb-bench", "--bench", name, "--"]),
        Program::Tsb => {
            let mut command = cargo(&["run", "--package", "tsb-cli"]);
            command.args(profile).arg("--").args(tsb);
            command
        }
        Program::Run => {
            let mut command = cargo(&["run", "--package", "tsb-cli"]);
            command.args(profile).args(["--", "run"]);
            command
        }
        Program::Job => cargo(&["xtask"]),
    };
    // The table of rates runs the program itself.
    if arguments.first() == Some(&"rates") {
        run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
    }
    for &argument in arguments {
        match argument {
            "@" => command.arg(folder),
            // A stream of queries has its rate behind the same sign.
            word if word.contains(":@") => command.arg(word.replace('@', &folder.display().to_string())),
            word => command.arg(word),
        };
    }
    let spelled = spell(&command).replace(&folder.display().to_string(), "FOLDER");
    Ok((spelled, capture(&mut command)?))
}

/// What of an output goes on the page.
fn kept(keep: &Excerpt, output: &str) -> String {
    let lines = output.lines();
    let kept: Vec<&str> = match *keep {
        Excerpt::All => lines.collect(),
        Excerpt::From(words) => lines.skip_while(|line| !line.contains(words)).collect(),
        Excerpt::Paragraph(words) => lines
            .skip_while(|line| !line.contains(words))
            .take_while(|line| !line.trim().is_empty())
            .collect(),
        Excerpt::Lines(words) => lines
            .filter(|line| words.iter().any(|words| line.contains(words)))
            .collect(),
    };
    kept.join("\n")
}

/// An empty folder of this job's own below cargo's target folder.
fn folder(name: &str) -> Result<PathBuf> {
    empty_folder(target_folder()?.join("measure").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood_or_refused() {
        let options = Options::parse(&["pacing", "--quick"]).expect("it is known");
        let names: Vec<&str> = options.sections().iter().map(|section| section.name).collect();
        assert_eq!(
            (names, options.is_quick, options.is_new_machine),
            (vec!["pacing"], true, false)
        );
        let all = Options::parse(&["all"]).expect("it is known");
        assert_eq!(all.sections().len(), SECTIONS.len());
        assert!(Options::parse(&[]).expect("it lists").sections().is_empty());
        assert!(Options::parse(&["wirez"]).is_err());
    }

    #[test]
    fn every_section_has_a_block_on_the_page() {
        let text = read_page(&root().join(PAGE)).expect("the page");
        assert!(page::processor(page::block(&text, page::MACHINE).expect("a machine")).is_some());
        for section in SECTIONS {
            let block = page::block(&text, section.name).expect("a block");
            assert!(
                block.contains(&format!("cargo xtask measure {}`", section.name)),
                "{}",
                section.name
            );
        }
        assert_eq!(text.matches("<!-- measured: ").count(), SECTIONS.len() + 1);
    }

    #[test]
    fn the_plan_names_time_disk_and_packages() {
        let plan = requirements(&SECTIONS.iter().collect::<Vec<_>>());
        assert!(plan.contains("rrdcached") && plan.contains("minutes"), "{plan}");
    }

    #[test]
    fn only_the_table_of_an_output_is_kept() {
        let output = "noise\nhead a\n1\n\n2\n";
        for (keep, wanted) in [
            (Excerpt::All, "noise\nhead a\n1\n\n2"),
            (Excerpt::From("head"), "head a\n1\n\n2"),
            (Excerpt::Paragraph("head"), "head a\n1"),
            (Excerpt::Lines(&["1", "2"]), "1\n2"),
        ] {
            assert_eq!(kept(&keep, output), wanted);
        }
    }

    #[test]
    fn a_block_holds_commands_and_outputs() {
        let outputs = [("cargo run".to_owned(), "1 2\n".to_owned())];
        let block = block_of("pacing", "abc", 2, "0.1", &outputs);
        assert!(
            block.starts_with("`cargo xtask measure pacing` at commit abc; it took 2 min"),
            "{block}"
        );
        assert!(block.ends_with("\n```text\n$ cargo run\n1 2\n```\n"), "{block}");
    }
}
