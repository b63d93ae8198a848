//! Is the cost that `tsb run` reports the cost of the store?
//!
//! `cost_table TSB FOLDER [ROUNDS [MONGO|- [STORE]]]` runs each store twice per round, in
//! alternating order, each time fresh and with the same batches of the `mix` fleet: with `tsb
//! run --rate max` in process, whose report divides the process's CPU time into parts; and
//! alone, through the public trait, as a loop that generates the batches and writes them, minus
//! the same loop without the store. It prints medians: the parts, their sum next to the process
//! total, and the store's part next to the store alone.
//!
//! `TSB` is the program (`target/release/tsb`), `FOLDER` is where stores with files are created
//! and removed, `MONGO` is the address of a server (`127.0.0.1:27017`), `STORE` selects one
//! store. Without arguments it times a few ticks of the embedded stores alone, for a quick look.

#![expect(clippy::print_stdout, reason = "the table is this program's result")]
#![expect(clippy::expect_used, reason = "a table that cannot be made has nothing to say")]

mod alone;
mod cases;
mod reported;
mod row;

use std::path::Path;

use cases::Case;
use row::Row;

const ROUNDS: usize = 3;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize| words.get(index).map(String::as_str);
    let Some(program) = word(0) else {
        return look();
    };
    if program == alone::WORD {
        return alone::child(&words[1..]);
    }
    let folder = Path::new(word(1).expect("a folder behind the program"));
    let rounds = word(2).map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    println!("{}", Row::heading());
    let mongo = word(3).filter(|address| *address != "-");
    let cases = cases::all(folder, mongo);
    let wanted = |case: &Case| word(4).is_none_or(|only| only == case.name);
    let runs = std::process::id() as usize * 100;
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| wanted(case)) {
        let mut row = Row::default();
        for run in 0..2 * rounds {
            case.prepare(runs + run);
            // The order alternates: reported, alone; alone, reported; and so on.
            if (run / 2 + run) % 2 == 0 {
                row.reported.push(reported::run(program, case, runs + run));
            } else {
                row.alone.push(alone::in_a_child(&words, index, runs + run));
            }
        }
        println!("{}", row.line(case));
    }
    cases.iter().for_each(Case::clear);
}

/// A few ticks of the embedded stores.
fn look() {
    let folder = std::env::temp_dir().join(format!("tsb-cost-table-{}", std::process::id()));
    println!("store               samples/batch  store alone, ns of CPU a sample");
    for case in cases::all(&folder, None) {
        case.prepare(0);
        let small = case.small();
        let alone = alone::run(&small, 0);
        println!(
            "{:18}  {:13}  {:9.1}",
            small.name,
            small.batch,
            alone.write + alone.threads
        );
        small.clear();
    }
}
