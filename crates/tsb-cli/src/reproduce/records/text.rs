//! Formats the result as text.

use std::fmt::Write;

use tsb_core::report::experiment::records::{BatchFigures, RecordsDetails, Reproduction, Spread};
use tsb_run::units;

use crate::render::experiment_figures::{mean, mean_and_half, mean_and_sigma};
use crate::render::keyed_names::KeyedNames;
use crate::reproduce::{published, sentences};

/// The least width of the column of stores, in characters.
const WIDTH_MIN: usize = 8;

/// The whole text.
pub(in crate::reproduce) fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let (details, plan) = (&experiment.details, &result.plan.asked);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "How fast does a store of keys take records, by nodes, requests in flight and size?"
    );
    if experiment.is_debug_build {
        let _ = writeln!(out, "A build without optimization: stores in this process are slower.");
    }
    let names = KeyedNames::new(&details.stores);
    let widths = details
        .stores
        .iter()
        .map(|store| names.of(&store.store).chars().count());
    let width = widths.max().unwrap_or(0).max(WIDTH_MIN);
    stores(&mut out, details, &names, width);
    records(&mut out, result, &names, width);
    apps(&mut out, result, &names, width);
    published(
        &mut out,
        "etcd and ZooKeeper of one to seven nodes, 2013",
        &experiment.rows,
    );
    sentences(
        &mut out,
        "What the original got wrong, or left unmeasured",
        &experiment.mistakes,
    );
    sentences(&mut out, "Not run", &details.absent);
    sentences(&mut out, "Failed", &details.failures);
    sentences(&mut out, "Wrong", &details.wrong().collect::<Vec<_>>());
    let ended = if details.interrupted {
        "interrupted after"
    } else {
        "took"
    };
    let _ = writeln!(
        out,
        "\n{ended} {:.0} s; seed {}; samples: {}",
        result.took_seconds, plan.seed, plan.samples
    );
    out
}

fn stores(out: &mut String, details: &RecordsDetails, names: &KeyedNames<'_>, width: usize) {
    let _ = writeln!(
        out,
        "\nThe stores\n{:width$}  {:>5}  {:10}  {:>6}  {:>12}  how a batch becomes requests",
        "store", "nodes", "durability", "copies", "this machine"
    );
    for store in &details.stores {
        let _ = writeln!(
            out,
            "{:width$}  {:>5}  {:10}  {:>6}  {:>12}  {}",
            names.of(&store.store),
            store.nodes,
            store.durability,
            store.copies,
            if store.is_local { "yes" } else { "no" },
            store.requests
        );
    }
    for store in details
        .stores
        .iter()
        .filter(|store| names.of(&store.store) != store.store)
    {
        let _ = writeln!(out, "{:width$}  is {}", names.of(&store.store), store.store);
    }
    let _ = writeln!(
        out,
        "durability, copies: of an acknowledged key, and on how many machines. this machine: whether store and client share it."
    );
}

fn records(out: &mut String, result: &Reproduction, names: &KeyedNames<'_>, width: usize) {
    let (details, plan) = (&result.experiment.details, &result.plan.asked);
    let _ = writeln!(
        out,
        "\nold/phd: {} records of random letters in one batch, then one read of all, each value compared.\n\
         {:width$}  {:>9}  {:>5}  {:>17}  {:>8}  {:>7}  {:>7}  {:>9}  {:>19}  {:>9}  {:>7}  {:>7}  {:>9}  {:>5}",
        units::count(plan.records as u64),
        "store",
        "in flight",
        "bytes",
        "written/s",
        "sigma",
        "MiB/s",
        "sigma",
        "took ms",
        "read/s",
        "sigma",
        "MiB/s",
        "sigma",
        "took ms",
        "right"
    );
    for cell in &details.cells {
        let [write, write_sigma, write_mib, write_mib_sigma, write_ms] = columns(cell.write);
        let [read, read_sigma, read_mib, read_mib_sigma, read_ms] = columns(cell.read);
        let _ = writeln!(
            out,
            "{:width$}  {:>9}  {:>5}  {write:>17}  {write_sigma:>8}  {write_mib:>7}  {write_mib_sigma:>7}  {write_ms:>9}  \
             {read:>19}  {read_sigma:>9}  {read_mib:>7}  {read_mib_sigma:>7}  {read_ms:>9}  {:>5}",
            names.of(&cell.store),
            cell.in_flight,
            cell.size,
            format!("{}/{}", cell.samples_right, cell.samples),
        );
    }
    let _ = writeln!(
        out,
        "+-: half of the 95 % interval over the samples; sigma: their standard deviation. MiB: 1,048,576 bytes of records, \
         without keys, which the original calls MB. ~: less than 100 ms, so that a delay of 10 ms is a tenth of it or more. \
         read: with a copy of every value, as a client returns it. right: samples in which every key came back with its value."
    );
}

/// Records per second, their sigma, MiB per second, their sigma, and milliseconds.
fn columns(figures: Option<BatchFigures>) -> [String; 5] {
    let records = figures.map(|figures| figures.records_per_second);
    let (_, sigma) = mean_and_sigma(records, 0);
    let (mib, mib_sigma) = mean_and_sigma(figures.map(|figures| figures.mib_per_second), 2);
    let took = mean(figures.map(|figures| figures.seconds.figure.scaled(1e3)), 1);
    let mark = if figures.is_some_and(|figures| figures.is_short()) {
        "~"
    } else {
        ""
    };
    [
        mean_and_half(records.map(|records| records.figure), 0),
        sigma,
        mib,
        mib_sigma,
        format!("{mark}{took}"),
    ]
}

fn apps(out: &mut String, result: &Reproduction, names: &KeyedNames<'_>, width: usize) {
    let (details, plan) = (&result.experiment.details, &result.plan.asked);
    let _ = writeln!(
        out,
        "\nold/phdaws: a heartbeat of two instances per app, {} in flight, then one read of all, each value compared, then the deletion of all.\n\
         {:width$}  {:>9}  {:>17}  {:>9}  {:>17}  {:>9}  {:>17}  {:>9}  {:>5}",
        plan.apps_in_flight, "store", "apps", "WRITE ms", "sigma", "READ ms", "sigma", "DELETE ms", "sigma", "right"
    );
    let columns = |seconds: Option<Spread>| {
        let ms = seconds.map(|seconds| seconds.scaled(1e3));
        let (_, sigma) = mean_and_sigma(ms, 1);
        (mean_and_half(ms.map(|ms| ms.figure), 1), sigma)
    };
    for cell in &details.app_cells {
        let [write, read, delete] = [cell.write_seconds, cell.read_seconds, cell.delete_seconds].map(columns);
        let _ = writeln!(
            out,
            "{:width$}  {:>9}  {:>17}  {:>9}  {:>17}  {:>9}  {:>17}  {:>9}  {:>5}",
            names.of(&cell.store),
            units::count(cell.apps as u64),
            write.0,
            write.1,
            read.0,
            read.1,
            delete.0,
            delete.1,
            format!("{}/{}", cell.samples_right, cell.samples),
        );
    }
}
