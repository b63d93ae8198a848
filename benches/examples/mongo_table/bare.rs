//! Runs the driver alone: `insert_many` of documents that were made in advance.

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, Document, RawDocumentBuf, doc};
use mongodb::{Client, Collection, Database};
use tokio::runtime::{Builder, Runtime};

use crate::Server;
use crate::cells::{GROUP, Load, Request, time};
use crate::timing::{self, Measured};

/// The documents of each worker, by request.
type Requests = Vec<Vec<Vec<RawDocumentBuf>>>;

/// The documents that our layouts write.
pub(crate) fn documents(load: &Load) -> Requests {
    let mut tried = 0;
    let mut of_request = |request: &Request| {
        let first = tried;
        tried += request.values.len() as i64;
        let documents = match load.cell.layout {
            "ticks" => columns(request, first),
            layout => singles(load, request, first, layout == "rows"),
        };
        let raw = documents.map(|document| RawDocumentBuf::try_from(&document).expect("a document"));
        raw.collect::<Vec<_>>()
    };
    let workers = load.workers.iter();
    workers
        .map(|requests| requests.iter().map(&mut of_request).collect())
        .collect()
}

fn singles<'a>(
    load: &'a Load,
    request: &'a Request,
    first: i64,
    is_rows: bool,
) -> Box<dyn Iterator<Item = Document> + 'a> {
    let series = load.cell.series() as usize;
    Box::new((0_i64..).zip(&request.values).map(move |(index, &value)| {
        let number = request.first as i32 + (index as usize % series) as i32;
        let at = time(request.first_tick + (index as usize / series) as u64);
        if is_rows {
            doc! { "_id": { "s": number, "t": at.as_nanos(), "i": first + index }, "v": value }
        } else {
            let date = DateTime::from_millis(at.as_nanos() / 1_000_000);
            doc! { "t": date, "s": number, "v": value }
        }
    }))
}

fn columns(request: &Request, first: i64) -> Box<dyn Iterator<Item = Document> + '_> {
    let at = time(request.first_tick).as_nanos();
    let groups = (0_i32..).zip(request.values.chunks(GROUP as usize));
    Box::new(groups.map(move |(group, values)| {
        let lo = group * GROUP as i32;
        let binary = |bytes| Binary {
            subtype: BinarySubtype::Generic,
            bytes,
        };
        let v = binary(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        let order = first + i64::from(lo);
        let mut key = group.to_be_bytes().to_vec();
        key.push(0);
        key.extend((at ^ i64::MIN).to_be_bytes());
        key.extend(order.to_be_bytes());
        key.extend([0; 4]);
        let count = values.len() as i64;
        doc! { "_id": binary(key), "lo": lo, "hi": lo + count as i32 - 1, "a": at, "n": count, "v": v }
    }))
}

/// The same runtime as our client's: one thread for the sockets besides the callers' threads.
fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime")
}

async fn empty(database: &Database, layout: &str) {
    database.drop().await.expect("a database of its own");
    let commands = if layout == "series" {
        let shape = doc! { "timeField": "t", "metaField": "s", "granularity": "seconds" };
        let index = doc! { "key": { "meta": 1, "control.min.t": 1 }, "name": "series" };
        vec![
            doc! { "create": "samples", "timeseries": shape },
            doc! { "createIndexes": "system.buckets.samples", "indexes": [index] },
        ]
    } else {
        vec![doc! { "create": "samples", "clusteredIndex": { "key": { "_id": 1 }, "unique": true } }]
    };
    for command in commands {
        database.run_command(command).await.expect("a collection");
    }
}

pub(crate) fn run(server: &Server, load: &Load, documents: &Requests) -> Measured {
    let runtime = runtime();
    let address = format!("mongodb://{}/?directConnection=true&retryWrites=false", server.address);
    let client = runtime
        .block_on(Client::with_uri_str(&address))
        .expect("a server that answers");
    let database = client.database("tsb-trial-driver");
    runtime.block_on(empty(&database, load.cell.layout));
    let samples: Collection<RawDocumentBuf> = database.collection("samples");
    let workers = documents.iter().map(|requests| {
        let (runtime, samples) = (&runtime, &samples);
        move || {
            for documents in requests {
                let insert = samples.insert_many(documents).ordered(false);
                let inserted = runtime.block_on(insert.into_future()).expect("an insert");
                assert_eq!(inserted.inserted_ids.len(), documents.len(), "nothing is refused");
            }
        }
    });
    let mut measured = timing::run(server.pid, load.samples(), workers.collect());
    measured.bytes = runtime.block_on(async {
        let counted = samples.count_documents(doc! {}).await.expect("a count");
        let per_document = u64::from(load.cell.samples_per_document());
        assert_eq!(counted * per_document, load.samples(), "the server counts them");
        let admin = client.database("admin");
        admin.run_command(doc! { "fsync": 1 }).await.expect("a checkpoint");
        let stats = doc! { "dbStats": 1, "freeStorage": 1 };
        let stats = database.run_command(stats).await.expect("sizes");
        let bytes = |name: &str| stats.get_f64(name).unwrap_or(f64::NAN);
        let free = bytes("freeStorageSize") + bytes("indexFreeStorageSize");
        (bytes("storageSize") + bytes("indexSize") - free) as u64
    });
    measured
}
