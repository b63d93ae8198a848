//! Measures the store alone: a loop that generates batches and writes them, minus the same loop
//! without the store. No clock is read inside either loop, and CPU caches are as full as in a
//! run.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use tsb_bench::store_driver::BASE;
use tsb_core::time::{process_cpu_ns, thread_cpu_ns};
use tsb_core::workload::{Workload, WorkloadSpec};
use tsb_run::spec;
use tsb_stores::{Refusals, Scope, Store};

use crate::cases::{self, Case};

/// CPU time per sample, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    /// In the thread that writes.
    pub(crate) write: f64,
    /// In the store's own threads, until its flush has returned.
    pub(crate) threads: f64,
    /// In the thread that flushes.
    pub(crate) flush: f64,
}

/// The first argument of a child process.
pub(crate) const WORD: &str = "alone";

/// Runs a case in a process of its own, whose memory is as fresh as that of `tsb run`; `words`
/// are the arguments of this program.
pub(crate) fn in_a_child(words: &[String], index: usize, number: usize) -> Alone {
    let program = std::env::current_exe().expect("this program has a path");
    let mongo = words.get(3).map_or("-", String::as_str);
    let (index, number) = (index.to_string(), number.to_string());
    let output = Command::new(program)
        .args([WORD, &words[1], mongo, &index, &number])
        .stderr(Stdio::inherit())
        .output()
        .expect("this program can be started");
    let text = String::from_utf8(output.stdout).expect("three numbers");
    let figures: Vec<f64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [write, threads, flush] = figures[..] else {
        panic!("the child printed {text:?}");
    };
    Alone { write, threads, flush }
}

/// The child process. Arguments: a folder, the address of MongoDB or `-`, the index of the case,
/// the number of the run.
pub(crate) fn child(words: &[String]) {
    let [folder, mongo, index, number] = words else {
        panic!("{WORD} is for this program itself");
    };
    let mongo = Some(mongo.as_str()).filter(|address| *address != "-");
    let cases = cases::all(Path::new(folder), mongo);
    let [index, number] = [index, number].map(|word| word.parse::<usize>().expect("a number"));
    let alone = run(&cases[index], number);
    println!("{} {} {}", alone.write, alone.threads, alone.flush);
}

/// Writes the ticks of a case into a new store.
pub(crate) fn run(case: &Case, number: usize) -> Alone {
    let store = spec::open(&case.spec(number)).expect("a store of the list");
    let workload = WorkloadSpec {
        // As in a run: timestamps at the store's resolution.
        resolution_ns: store.capabilities().resolution_ns as u64,
        ..case.workload()
    };
    let workload = Workload::new(&workload).expect("a fleet of the list");
    store.define(&workload.catalog().definitions()).expect("fresh series");
    let own = |store: &dyn Store| store.stats().own_cpu_ns.unwrap_or(0);
    let (generating, _) = spent(&workload, case.ticks, None);
    let before = own(&*store);
    let (together, samples) = spent(&workload, case.ticks, Some(&*store));
    let (process, threads) = (process_cpu_ns(), own(&*store));
    store
        .flush(Scope::All, store.capabilities().reaches)
        .expect("what was written can be flushed");
    let flush = (process_cpu_ns() - process).saturating_sub(own(&*store) - threads);
    let threads = own(&*store) - before;
    store.close().expect("a store that wrote can be closed");
    let per_sample = |ns: u64| ns as f64 / samples as f64;
    Alone {
        write: per_sample(together.saturating_sub(generating)),
        threads: per_sample(threads),
        flush: per_sample(flush),
    }
}

/// CPU time of this thread for generating some ticks of batches, and writing them if there is a
/// store; and the number of samples.
fn spent(workload: &Workload, ticks: u64, store: Option<&dyn Store>) -> (u64, u64) {
    let groups = workload.groups();
    let mut generator = workload.generator(0..groups.len(), BASE);
    // In order of due time within a tick.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&group| groups[group].phase_ns);
    let mut refused = Refusals::new();
    let mut samples = 0;
    let start = thread_cpu_ns();
    for tick in 0..ticks {
        for &group in &order {
            let batch = generator.operation(group, tick);
            samples += batch.len() as u64;
            match store {
                Some(store) => {
                    let _ack = store.write(&batch, &mut refused).expect("a write of defined series");
                }
                None => {
                    black_box(&batch);
                }
            }
        }
    }
    let spent = thread_cpu_ns() - start;
    assert!(refused.is_empty(), "refused: {:?}", refused.as_slice().first());
    (spent, samples)
}
