//! `cargo xtask sanitize`: runs the tests of modules with `unsafe` under LLVM's address
//! sanitizer.
//!
//! It detects accesses outside allocations, after a free, or to a stack frame that has ended. It
//! does not detect invalid references or data races: Miri and the thread sanitizer would, and
//! CONTRIBUTING.md says how to run Miri. Leaks are ignored: they are safe, and the test media
//! leak on purpose.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::ci::{counted, has_librrd};
use crate::shell::{Stopwatch, capture, cargo, root, target_folder};
use crate::table::Table;

/// Tests of one package that go through its `unsafe` code.
struct Job {
    package: &'static str,
    /// The files with that code.
    covers: &'static [&'static str],
    /// What cargo is told to test, and which tests.
    arguments: &'static [&'static str],
    needs_librrd: bool,
}

const JOBS: &[Job] = &[
    Job {
        package: "tsb-core",
        covers: &["crates/tsb-core/src/wire/simd/sse2.rs"],
        arguments: &["--lib", "--test", "fuzz_corpus", "--", "wire", "corpus"],
        needs_librrd: false,
    },
    Job {
        package: "tsb-core",
        covers: &["crates/tsb-core/tests/no_allocation.rs"],
        arguments: &["--test", "no_allocation"],
        needs_librrd: false,
    },
    Job {
        package: "tsb-run",
        covers: &["crates/tsb-run/tests/no_allocation.rs"],
        arguments: &["--test", "no_allocation"],
        needs_librrd: false,
    },
    Job {
        package: "tsb-rrd",
        covers: &["crates/tsb-rrd/src/system.rs"],
        arguments: &["--lib", "--test", "fuzz_files"],
        needs_librrd: false,
    },
    Job {
        package: "tsb-stores",
        covers: &["crates/tsb-stores/src/machine.rs", "crates/tsb-rrd/src/system.rs"],
        arguments: &["--lib", "--", "block", "machine", "memory", "rrd", "write_cache"],
        needs_librrd: false,
    },
    Job {
        package: "tsb-stores",
        covers: &["crates/tsb-stores/tests/crash/medium.rs"],
        arguments: &["--test", "crash"],
        needs_librrd: false,
    },
    Job {
        package: "tsb-librrd",
        covers: &["crates/tsb-librrd/src/ffi.rs"],
        arguments: &["--lib", "--features", "librrd"],
        needs_librrd: true,
    },
];

/// Runs the tests, and fails if one fails or the sanitizer stops one.
pub(crate) fn run() -> Result<()> {
    let host = host()?;
    let mut table = Table::new(&["tests of", "unsafe code in", ">seconds", "result"]);
    let mut failed = Vec::new();
    for job in JOBS {
        let covers = job.covers.join(", ");
        if job.needs_librrd && !has_librrd() {
            table.row(&[
                job.package,
                &covers,
                "",
                "NOT RUN: librrd-dev or libclang-dev is not installed",
            ]);
            continue;
        }
        let watch = Stopwatch::start();
        let ended = command(job, &host).and_then(|mut command| counted(&mut command));
        let seconds = format!("{:.0}", watch.elapsed().as_secs_f64());
        let note = match ended {
            Ok(count) => count.note(),
            Err(error) => {
                failed.push(format!("{}: {error:#}", job.package));
                "FAILED".to_owned()
            }
        };
        table.row(&[job.package, &covers, &seconds, &note]);
    }
    println!("\n{}", table.render());
    if !failed.is_empty() {
        bail!(
            "sanitize: {} of {} failed\n{}",
            failed.len(),
            JOBS.len(),
            failed.join("\n")
        );
    }
    Ok(())
}

/// The tests of a job, built with the sanitizer into a folder of their own.
fn command(job: &Job, host: &str) -> Result<Command> {
    let mut command = cargo(&["test", "--package", job.package, "--target", host]);
    command.args(job.arguments);
    command.env("CARGO_TARGET_DIR", target_folder()?.join("sanitize"));
    // The flag is for nightly compilers, and the runtime comes with the stable one.
    command.env("RUSTC_BOOTSTRAP", "1");
    command.env("RUSTFLAGS", "-Zsanitizer=address");
    command.env(
        "ASAN_OPTIONS",
        "detect_leaks=0:detect_stack_use_after_return=1:halt_on_error=1",
    );
    command.env("PROPTEST_RNG_SEED", "1");
    Ok(command)
}

/// The target that the compiler builds for by itself. It has to be named, or build scripts
/// and macros, which are loaded into the compiler, would be built with the sanitizer, too.
fn host() -> Result<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = capture(Command::new(compiler).arg("-vV").current_dir(root()))?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

/// The files that some job covers.
pub(crate) fn covered() -> BTreeSet<&'static str> {
    JOBS.iter().flat_map(|job| job.covers.iter().copied()).collect()
}
