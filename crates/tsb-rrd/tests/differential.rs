//! Our files beside those of the installed rrdtool, byte for byte, over random layouts and
//! updates. The seeds are the numbers; `examples/differential.rs` takes more of them.

#[path = "support/oracle.rs"]
mod oracle;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Calls for each layout.
const CALLS: u64 = 40;

fn seeds(range: std::ops::Range<u64>) -> Result<Completion, Failed> {
    if let Some(why) = oracle::missing() {
        return Ok(Completion::ignored_with(why));
    }
    let folder = tempfile::tempdir()?;
    let mut rrdtool = oracle::Rrdtool::start(folder.path()).map_err(|error| error.to_string())?;
    let (mut given, mut refused) = (0, 0);
    for seed in range {
        let compared = oracle::compare(&mut rrdtool, folder.path(), seed, CALLS).map_err(|error| error.to_string())?;
        given += compared.given;
        refused += compared.refused;
    }
    // Else the updates would have stopped meaning anything.
    if refused == 0 || refused > given / 2 {
        return Err(format!("{refused} calls of {given} readings were refused").into());
    }
    Ok(Completion::Completed)
}

fn main() {
    let trials = (0..4).map(|part: u64| {
        let range = part * 100..(part + 1) * 100;
        let name = format!("seeds_{}_to_{}_give_librrds_bytes", range.start, range.end - 1);
        Trial::ignorable_test(name, move || seeds(range.clone()))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
