//! What only an administrator does, by MongoDB's own driver.

use std::future::Future;

use tsb_remote::mongo::driver::Client;
use tsb_remote::mongo::driver::bson::{Document, doc};
use tsb_stores::conformance::libtest_mimic::Failed;

use crate::daemon::until;

/// Runs a future to its end, on a runtime of its own.
fn wait<T>(future: impl Future<Output = Result<T, tsb_remote::mongo::driver::error::Error>>) -> Result<T, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future)?)
}

fn ask(port: u16, options: &str, command: &Document) -> Result<Document, Failed> {
    ask_as("", port, options, "admin", command)
}

/// The same as `NAME:PASSWORD@`, of a database.
fn ask_as(user: &str, port: u16, options: &str, database: &str, command: &Document) -> Result<Document, Failed> {
    let fixed = "directConnection=true&serverSelectionTimeoutMS=2000&authSource=admin";
    let uri = format!("mongodb://{user}127.0.0.1:{port}/?{fixed}{options}");
    wait(async {
        let client = Client::with_uri_str(uri).await?;
        client.database(database).run_command(command.clone()).await
    })
}

/// Removes a database.
pub(crate) fn drop_database(port: u16, database: &str) -> Result<(), Failed> {
    ask_as("", port, "", database, &doc! { "dropDatabase": 1 }).map(drop)
}

/// Makes a replica set of them, which needs two seconds to miss its primary instead of ten,
/// and waits until one leads and the others have what it has.
pub(crate) fn initiate(ports: &[u16]) -> Result<(), Failed> {
    let members: Vec<Document> = (0_i32..)
        .zip(ports)
        .map(|(number, port)| doc! { "_id": number, "host": format!("127.0.0.1:{port}") })
        .collect();
    let settings = doc! { "electionTimeoutMillis": 2_000, "heartbeatIntervalMillis": 500 };
    let config = doc! { "_id": "hazard", "members": members, "settings": settings };
    ask(ports[0], "", &doc! { "replSetInitiate": config })?;
    until("all members are there", || {
        let status = ask(ports[0], "", &doc! { "replSetGetStatus": 1 })?;
        let states = status.get_array("members")?.iter().filter_map(|member| {
            let member = member.as_document()?;
            member.get_i32("state").ok()
        });
        let states: Vec<i32> = states.collect();
        let count = |wanted: i32| states.iter().filter(|state| **state == wanted).count();
        // Primary and secondary.
        if (count(1), count(2)) == (1, ports.len() - 1) {
            Ok(())
        } else {
            Err(format!("states {states:?}").into())
        }
    })
}

/// Which of them leads.
pub(crate) fn primary(ports: &[u16]) -> Result<usize, Failed> {
    for (place, port) in ports.iter().enumerate() {
        let hello = ask(*port, "", &doc! { "hello": 1 })?;
        if hello.get_bool("isWritablePrimary")? {
            return Ok(place);
        }
    }
    Err("nobody leads".into())
}

/// The first user may be made by whoever is on the same machine; `tls` are options of the URI.
pub(crate) fn create_root(port: u16, tls: &str, (name, password): (&str, &str)) -> Result<(), Failed> {
    let user = doc! { "createUser": name, "pwd": password, "roles": ["root"] };
    ask(port, tls, &user).map(drop)
}

/// A user who may write to one database and no other, made by `root`.
pub(crate) fn create_writer(
    port: u16,
    root: (&str, &str),
    (name, password): (&str, &str),
    database: &str,
) -> Result<(), Failed> {
    let role = doc! { "role": "readWrite", "db": database };
    let user = doc! { "createUser": name, "pwd": password, "roles": [role] };
    ask_as(&format!("{}:{}@", root.0, root.1), port, "", "admin", &user).map(drop)
}

/// The keys of the indexes of a collection, as a user of its database sees them.
pub(crate) fn index_keys(
    port: u16,
    (name, password): (&str, &str),
    database: &str,
    collection: &str,
) -> Result<Vec<Document>, Failed> {
    let list = doc! { "listIndexes": collection };
    let listed = ask_as(&format!("{name}:{password}@"), port, "", database, &list)?;
    let indexes = listed.get_document("cursor")?.get_array("firstBatch")?;
    let keys = indexes
        .iter()
        .filter_map(|index| index.as_document()?.get_document("key").ok());
    Ok(keys.cloned().collect())
}
