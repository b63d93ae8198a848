//! The page of `tsb reproduce records`: the story, for somebody who has not read the document.

mod charts;

use tsb_core::report::experiment::records::{BatchFigures, RecordsDetails, Reproduction, Spread};
use tsb_run::units;

use super::frame::{begin_page, begin_story, end_page, list_wrong, mistakes, published};
use crate::render::experiment_figures::{dash, mean_and_half, mean_and_sigma};
use crate::render::html::markup::Markup;
use crate::render::html::{PLOT_STYLE, STYLE};
use crate::render::keyed_names::KeyedNames;

const TITLE: &str = "How fast does a store of keys take records?";
/// The links to the sections.
const BAR: &str = "<header class=\"bar\"><nav aria-label=\"Sections\"><a href=\"#story\">Story</a><a href=\"#stores\">Stores</a><a href=\"#records\">Records</a><a href=\"#apps\">Apps</a><a href=\"#published\">Published</a><a href=\"#mistakes\">Mistakes</a></nav></header>\n";
const STORY: [&str; 4] = [
    "HM9000 was the health manager of Cloud Foundry. It keeps what runs where as small records in a store of keys. The repository of its benchmark also holds an older program of 2013, which compares two such stores, etcd and ZooKeeper: with one to seven nodes, one to thirty requests in flight, and records of 128 to 4,096 bytes.",
    "For each combination it writes 512 records of random letters as one batch and then reads all of them with one request. It does so five times and prints mean and standard deviation. A second program writes the heartbeat of 30 to 10,000 apps with two instances each, reads it, and deletes it.",
    "A batch of 512 records is over in a moment, and the moment is what was measured. What came back was counted and not looked at, nothing says whether a record had reached a disk when it was acknowledged, and all nodes shared one machine with the client. The results themselves were not published: only the program that plots them was.",
    "Here each combination has one sample per round, in random order and in a fresh place, so that a disturbance does not fall on one of them alone. Every value that comes back is compared with the one that was written, each rate has a 95 % interval, and the level of durability stands beside each store. Batches shorter than 100 ms are marked.",
];

/// The whole page.
pub fn page(result: &Reproduction) -> String {
    let experiment = &result.experiment;
    let mut page = begin_page(TITLE, &[PLOT_STYLE, "\n", STYLE], BAR);
    let names = KeyedNames::new(&experiment.details.stores);
    story(result, &names, &mut page);
    stores(&experiment.details, &names, &mut page);
    records(result, &names, &mut page);
    apps(result, &names, &mut page);
    published(
        "Etcd and ZooKeeper in 2013, of which no figures were published, and this machine.",
        &experiment.rows,
        &mut page,
    );
    mistakes("What the original got wrong", &experiment.mistakes, &mut page);
    let seed = Some(result.plan.asked.seed);
    end_page(&result.written, seed, result.took_seconds, page)
}

fn story(result: &Reproduction, names: &KeyedNames<'_>, page: &mut Markup) {
    let details = &result.experiment.details;
    begin_story(&STORY, page);
    let mut found = Vec::new();
    let taken = details.samples.len() + details.app_samples.len();
    if details.is_right() && taken > 0 {
        found.push(format!(
            "In {} samples everything that was written came back, with the right value.",
            units::count(taken as u64)
        ));
    }
    found.extend(
        details
            .stores
            .iter()
            .filter_map(|store| of_store(details, names, &store.store)),
    );
    let writes: Vec<BatchFigures> = details.cells.iter().filter_map(|cell| cell.write).collect();
    let short = writes.iter().filter(|write| write.is_short()).count();
    if short > 0 {
        found.push(format!(
            "In {short} of {} cells of records the write took less than 100 ms: a delay of 10 ms is a tenth of it or more.",
            writes.len()
        ));
    }
    found.extend(details.absent.iter().map(|absent| format!("Not run: {absent}.")));
    found.extend(details.failures.iter().map(|failure| format!("Failed: {failure}.")));
    if result.experiment.is_quick {
        found.push(
            "This is the quick version: fewer sizes, and fewer numbers of requests in flight and of apps.".to_owned(),
        );
    }
    if result.experiment.is_debug_build {
        found.push("The build is not optimized: stores in the process are slower.".to_owned());
    }
    if details.interrupted {
        found.push("Interrupted: not everything was measured.".to_owned());
    }
    page.list(&found);
    list_wrong(details.wrong(), page);
    page.end_section();
}

/// What more requests in flight gained one store.
fn of_store(details: &RecordsDetails, names: &KeyedNames<'_>, store: &str) -> Option<String> {
    let mut cells = details.cells.iter().filter(|cell| cell.store == store);
    let first = cells.next()?;
    let last = cells.rfind(|cell| cell.size == first.size)?;
    let rate = |figures: Option<BatchFigures>| Some(figures?.records_per_second.figure.mean);
    let (one, many) = (rate(first.write)?, rate(last.write)?);
    Some(format!(
        "{} took {} records of {} bytes per second with {} in flight, and {} with {}.",
        names.of(store),
        units::count(one as u64),
        first.size,
        first.in_flight,
        units::count(many as u64),
        last.in_flight
    ))
}

fn stores(details: &RecordsDetails, names: &KeyedNames<'_>, page: &mut Markup) {
    page.section(
        "stores",
        "The stores",
        "Levels of durability differ: a store that is faster may promise less.",
    );
    let rows = details.stores.iter().map(|store| {
        vec![
            names.of(&store.store).to_owned(),
            store.store.clone(),
            store.nodes.to_string(),
            store.durability.clone(),
            store.copies.to_string(),
            if store.is_local { "yes" } else { "no" }.to_owned(),
            store.requests.clone(),
        ]
    });
    let columns = [
        "store",
        "address",
        "nodes",
        "durability",
        "copies",
        "on this machine",
        "how a batch becomes requests",
    ];
    page.table("the stores", &columns, rows);
    page.end_section();
}

fn records(result: &Reproduction, names: &KeyedNames<'_>, page: &mut Markup) {
    let (details, plan) = (&result.experiment.details, &result.plan.asked);
    let about = format!(
        "{} records of random letters in one batch, then one read of all; each mark is the mean of up to {} samples, with its 95 % interval, red where a value was wrong. MiB: 1,048,576 bytes of records, without keys.",
        units::count(plan.records as u64),
        plan.samples
    );
    page.section("records", "A batch of records, and a read of all", &about);
    charts::of_records(&details.cells, names, page);
    let rows = details.cells.iter().map(|cell| {
        let mut row = vec![
            names.of(&cell.store).to_owned(),
            cell.in_flight.to_string(),
            cell.size.to_string(),
        ];
        row.extend(columns(cell.write));
        row.extend(columns(cell.read));
        row.push(format!("{}/{}", cell.samples_right, cell.samples));
        row
    });
    let head = [
        "store",
        "in flight",
        "bytes",
        "written/s",
        "sigma",
        "MiB/s",
        "sigma",
        "took",
        "read/s",
        "sigma",
        "MiB/s",
        "sigma",
        "took",
        "right",
    ];
    page.table("all cells of records", &head, rows);
    page.end_section();
}

/// Records per second, their sigma, MiB per second, their sigma, and the duration.
fn columns(figures: Option<BatchFigures>) -> [String; 5] {
    let records = figures.map(|figures| figures.records_per_second);
    let (_, sigma) = mean_and_sigma(records, 0);
    let (mib, mib_sigma) = mean_and_sigma(figures.map(|figures| figures.mib_per_second), 2);
    let took = figures.map_or_else(dash, |figures| {
        let mark = if figures.is_short() { "~" } else { "" };
        format!("{mark}{:.1} ms", figures.seconds.figure.mean * 1e3)
    });
    [
        mean_and_half(records.map(|records| records.figure), 0),
        sigma,
        mib,
        mib_sigma,
        took,
    ]
}

fn apps(result: &Reproduction, names: &KeyedNames<'_>, page: &mut Markup) {
    let (details, plan) = (&result.experiment.details, &result.plan.asked);
    let about = format!(
        "Two instances of each app by the keys and values of HM9000, written with {} requests in flight, read with one request, and deleted. Times are in milliseconds.",
        plan.apps_in_flight
    );
    page.section("apps", "A heartbeat: write, read, delete", &about);
    charts::of_apps(&details.app_cells, names, page);
    let rows = details.app_cells.iter().map(|cell| {
        let mut row = vec![names.of(&cell.store).to_owned(), units::count(cell.apps as u64)];
        for seconds in [cell.write_seconds, cell.read_seconds, cell.delete_seconds] {
            let ms = seconds.map(|seconds: Spread| seconds.scaled(1e3));
            row.push(mean_and_half(ms.map(|ms| ms.figure), 1));
            row.push(mean_and_sigma(ms, 1).1);
        }
        row.push(format!("{}/{}", cell.samples_right, cell.samples));
        row
    });
    let head = [
        "store", "apps", "WRITE", "sigma", "READ", "sigma", "DELETE", "sigma", "right",
    ];
    page.table("all numbers of apps", &head, rows);
    page.end_section();
}

#[cfg(test)]
mod tests;
