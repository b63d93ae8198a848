//! Compares random layouts with the installed rrdtool, byte for byte.
//!
//! `cargo run --release -p tsb-rrd --example differential -- 5000 1` takes 5,000 seeds from 1
//! on; a difference is reported with its seed.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

#[path = "../tests/support/oracle.rs"]
mod oracle;

/// Calls per layout.
const CALLS: u64 = 80;

fn main() -> Result<(), oracle::Failure> {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let layouts = words.next().transpose()?.unwrap_or(200);
    let first = words.next().transpose()?.unwrap_or(1);
    if let Some(why) = oracle::missing() {
        println!("not run: {why}");
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("tsb-rrd-differential-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut rrdtool = oracle::Rrdtool::start(&folder)?;
    let (mut readings, mut refused) = (0, 0);
    for seed in first..first + layouts {
        let compared = oracle::compare(&mut rrdtool, &folder, seed, CALLS)?;
        readings += compared.given;
        refused += compared.refused;
    }
    println!(
        "{layouts} layouts from seed {first}, {readings} readings, {refused} calls refused by both: no byte differs"
    );
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
