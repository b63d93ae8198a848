//! The connection through the driver: a deadline on every request, and the driver's errors as
//! ours.

use std::future::Future;
use std::time::Duration;

use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::error::{Error as DriverError, ErrorKind};
use mongodb::options::{ClientOptions, Tls, TlsOptions};
use mongodb::{Client, Cursor, Database};

use super::options::MongoOptions;
use crate::Address;
use tsb_stores::error::{Error, Result};

/// Codes that mean only that the server is going away or is no longer primary: the operation may
/// have been applied. From MongoDB's list of retryable errors.
const OUTCOME_UNKNOWN_CODES: [i32; 11] = [6, 7, 89, 91, 189, 262, 9_001, 10_107, 11_600, 11_602, 13_435];

/// The address in the driver's form, with credentials.
fn uri(address: &Address) -> Result<String> {
    if ["admin", "local", "config"].contains(&address.place()) {
        return Err(Error::Spec {
            spec: "mongo:".to_owned(),
            what: "admin, local and config are the server's own; name a database of your own".to_owned(),
        });
    }
    let hosts = address.hosts();
    Ok(match address.credentials() {
        Some(credentials) => format!("mongodb://{}@{hosts}/", credentials.in_address()),
        None => format!("mongodb://{hosts}/"),
    })
}

/// One database.
#[derive(Debug)]
pub(super) struct MongoConnection {
    database: Database,
    timeout: Duration,
    /// The address without credentials, for errors.
    name: String,
}

/// Whether a request may change something, which decides what a missing answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Reads,
    Writes,
}

impl MongoConnection {
    /// Connects to the servers; asks nothing of the database yet.
    pub(super) async fn open(address: &Address, options: &MongoOptions) -> Result<Self> {
        let wrong = |error: DriverError| Error::Spec {
            spec: "mongo:".to_owned(),
            // The driver's message may quote the address.
            what: if address.credentials().is_some() {
                "the driver cannot read the address".to_owned()
            } else {
                error.to_string()
            },
        };
        let mut driver = ClientOptions::parse(uri(address)?).await.map_err(wrong)?;
        driver.app_name = Some("tsb".to_owned());
        driver.connect_timeout = Some(options.timeout);
        // Ends before the deadline of the request: what was never sent is then said to be unreachable,
        // and not unanswered.
        driver.server_selection_timeout = Some(options.timeout * 9 / 10);
        driver.max_pool_size = Some(options.pool);
        // A repeated write would be counted twice.
        driver.retry_writes = Some(false);
        driver.repl_set_name.clone_from(&options.replica_set);
        if let Some(credential) = &mut driver.credential
            && let Some(database) = &options.auth_database
        {
            credential.source = Some(database.clone());
        }
        driver.direct_connection = Some(options.replica_set.is_none() && !address.hosts().contains(','));
        driver.tls = options.tls.then(|| {
            let mut tls = TlsOptions::default();
            tls.ca_file_path.clone_from(&options.tls_ca);
            Tls::Enabled(tls)
        });
        let client = Client::with_options(driver).map_err(wrong)?;
        Ok(Self {
            database: client.database(address.place()),
            timeout: options.timeout,
            name: address.to_string(),
        })
    }

    /// Deadline of a request.
    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The name of the database.
    pub(super) fn database(&self) -> &str {
        self.database.name()
    }

    /// Runs a command that changes nothing.
    pub(super) async fn ask(&self, action: &str, command: Document) -> Result<Document> {
        self.with_deadline(action, Effect::Reads, self.database.run_command(command).into_future())
            .await
    }

    /// The first document that a `find` returns.
    pub(super) async fn find_one(&self, action: &str, find: Document) -> Result<Option<Document>> {
        let answer = self.ask(action, find).await?;
        let batch = answer
            .get_document("cursor")
            .and_then(|cursor| cursor.get_array("firstBatch"));
        Ok(batch.ok().and_then(|batch| batch.first()?.as_document().cloned()))
    }

    /// Runs a command of the server, not of the database.
    pub(super) async fn ask_server(&self, action: &str, command: Document) -> Result<Document> {
        let server = self.database.client().database("admin");
        self.with_deadline(action, Effect::Reads, server.run_command(command).into_future())
            .await
    }

    /// Runs a command that changes something, and returns its reply.
    pub(super) async fn write(&self, action: &str, command: RawDocumentBuf) -> Result<Document> {
        self.with_deadline(
            action,
            Effect::Writes,
            self.database.run_raw_command(command).into_future(),
        )
        .await
    }

    /// As [`MongoConnection::write`]; returns an error if any part failed.
    pub(super) async fn change(&self, action: &str, command: Document) -> Result<Document> {
        let command = RawDocumentBuf::try_from(&command).map_err(|error| self.failed(action, error))?;
        let reply = self.write(action, command).await?;
        match reply.get_array("writeErrors").ok().and_then(|errors| errors.first()) {
            None => Ok(reply),
            Some(error) => Err(self.failed(action, error.to_string())),
        }
    }

    /// The documents that a pipeline computes from a collection.
    pub(super) async fn aggregate(
        &self,
        action: &str,
        collection: &str,
        pipeline: Vec<Document>,
    ) -> Result<Cursor<RawDocumentBuf>> {
        let collection = self.database.collection::<Document>(collection);
        let aggregate = collection.aggregate(pipeline).allow_disk_use(true);
        let cursor = aggregate.with_type::<RawDocumentBuf>().into_future();
        self.with_deadline(action, Effect::Reads, cursor).await
    }

    /// Moves a cursor forward. Returns whether there is a document.
    pub(super) async fn advance(&self, action: &str, cursor: &mut Cursor<RawDocumentBuf>) -> Result<bool> {
        self.with_deadline(action, Effect::Reads, cursor.advance()).await
    }

    /// The names of the collections of the database.
    pub(super) async fn collections(&self) -> Result<Vec<String>> {
        let list = self.database.list_collection_names().into_future();
        self.with_deadline("list the collections", Effect::Reads, list).await
    }

    /// Removes the database.
    pub(super) async fn drop_database(&self) -> Result<()> {
        let drop = self.database.drop().into_future();
        self.with_deadline("drop the database", Effect::Writes, drop).await
    }

    /// Number of members of the replica set; 1 without one.
    pub(super) async fn members(&self) -> Result<u32> {
        let hello = self.ask_server("ask who it is", doc! { "hello": 1 }).await?;
        Ok(hello.get_array("hosts").map_or(1, |hosts| hosts.len() as u32))
    }

    /// An error that was not caused by the network.
    pub(super) fn failed(&self, action: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Backend {
            action: self.full_action(action),
            source: source.into(),
        }
    }

    /// An error that leaves open whether the request was applied.
    pub(super) fn unknown(&self, action: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Unknown {
            action: self.full_action(action),
            source: source.into(),
        }
    }

    fn full_action(&self, action: &str) -> String {
        format!("{action} (MongoDB at {})", self.name)
    }

    async fn with_deadline<T>(
        &self,
        action: &str,
        effect: Effect,
        request: impl Future<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.classify(action, effect, error)),
            Err(_) => {
                let why = format!("no answer within {:?}", self.timeout);
                Err(self.no_answer(action, effect, why))
            }
        }
    }

    fn classify(&self, action: &str, effect: Effect, error: DriverError) -> Error {
        let is_lost = match error.kind.as_ref() {
            ErrorKind::ServerSelection { .. } => {
                return Error::Unreachable {
                    action: self.full_action(action),
                    source: error.into(),
                };
            }
            ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } | ErrorKind::InvalidResponse { .. } => true,
            ErrorKind::Command(command) => OUTCOME_UNKNOWN_CODES.contains(&command.code),
            _ => false,
        };
        if is_lost {
            self.no_answer(action, effect, error)
        } else {
            self.failed(action, error)
        }
    }

    /// The error for a missing answer.
    fn no_answer(
        &self,
        action: &str,
        effect: Effect,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        match effect {
            Effect::Writes => self.unknown(action, source),
            Effect::Reads => Error::Unanswered {
                action: self.full_action(action),
                source: source.into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_gets_credentials_and_no_database_of_the_servers() {
        let of = |path: &str| uri(&Address::parse("mongo", "database", path).unwrap());
        assert_eq!(of("//me:p%40ss@a:1,b/runs").unwrap(), "mongodb://me:p%40ss@a:1,b/");
        assert_eq!(of("//a/runs").unwrap(), "mongodb://a/");
        let error = of("//a/admin").unwrap_err().to_string();
        assert!(error.contains("server's own"), "{error}");
    }
}
