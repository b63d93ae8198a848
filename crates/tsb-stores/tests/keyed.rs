//! The conformance of every store of keys: one line each.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use tsb_stores::keyed::conformance::{KeyedFresh, trials};
use tsb_stores::keyed::{KeyedMemory, KeyedMemoryOptions};

fn memory() -> KeyedFresh {
    KeyedFresh::new("memory", |clock| {
        Ok(KeyedMemory::new(KeyedMemoryOptions::default(), clock))
    })
    .bounded(20, |clock| {
        Ok(KeyedMemory::new(KeyedMemoryOptions { max_keys: 20 }, clock))
    })
}

fn main() -> ExitCode {
    let all = trials(memory());
    libtest_mimic::run(&Arguments::from_args(), all).exit_code()
}
