//! The emitter's end of an HTTP interface with several requests outstanding: connections that many
//! writes share, one request at a time on each.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::address::Address;
use super::error::NetError;
use super::http_connection::{HttpConnection, PoolSettings};
use super::http_exchange::{RequestEncoder, outcome};
use super::options::EmitOptions;
use super::parker::{Interrupter, Interruption};
use super::runtime::Runtime;
use super::target::TargetReport;
use crate::batch::Batch;
use crate::emit::Outcome;
use crate::time::Clock;
use crate::wire::Encoder;
use crate::wire::http::Client;

/// Connections for writes over HTTP, and the thread that serves them.
///
/// Each write is one request. It takes the connection that has been free for longest, and waits for
/// one if all are in use. A lost connection is made again only with
/// [`EmitOptions::reconnect_after`]; when none is left, writes are shed.
pub struct HttpPool {
    sender: HttpSender,
    runtime: Runtime,
}

/// Sends the writes of a task. Clones share the connections of their pool.
#[derive(Clone)]
pub struct HttpSender(Arc<Shared>);

struct Shared {
    settings: Arc<PoolSettings>,
    client: Client,
    encoder: Mutex<RequestEncoder>,
    connections: Mutex<Connections>,
    /// Signalled when a connection becomes free, and to all when the last one is lost.
    freed: Notify,
    interruption: Arc<Interruption>,
    /// Signalled to all when an [`Interrupter`] ends all waits.
    interrupted: Notify,
}

#[derive(Debug, Default)]
struct Connections {
    free: VecDeque<HttpConnection>,
    lost: Vec<HttpConnection>,
    in_use: usize,
    /// Samples of writes for which there was no connection.
    shed_samples: u64,
}

impl HttpPool {
    /// Makes `connections` connections to `address`, and sends the request that the protocol needs
    /// before the first write. Must not be called on a tokio thread.
    ///
    /// # Errors
    /// [`NetError::Connect`], [`NetError::Start`] when there is no thread or file descriptor to
    /// spare, or an error of the first request, such as [`NetError::Answered`] when the server does
    /// not agree.
    pub fn connect(
        address: &Address,
        connections: usize,
        options: EmitOptions,
        client: Client,
        encoder: Box<dyn Encoder>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, NetError> {
        let runtime = Runtime::start()?;
        let settings = Arc::new(PoolSettings {
            address: address.clone(),
            options,
            clock,
        });
        let free = runtime
            .handle()
            .block_on(open(&settings, &client, connections.max(1)))?;
        let shared = Arc::new(Shared {
            settings,
            encoder: Mutex::new(RequestEncoder::new(&client, encoder)),
            client,
            connections: Mutex::new(Connections {
                free,
                ..Connections::default()
            }),
            freed: Notify::new(),
            interruption: Arc::default(),
            interrupted: Notify::new(),
        });
        let sender = HttpSender(shared);
        let watched = Arc::downgrade(&sender.0);
        let interruption = Arc::clone(&sender.0.interruption);
        runtime.handle().spawn(async move {
            interruption.wait().await;
            if let Some(shared) = watched.upgrade() {
                shared.interrupted.notify_waiters();
            }
        });
        Ok(Self { sender, runtime })
    }

    /// Where the tasks that write have to run.
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// The writing end for a task.
    pub fn sender(&self) -> HttpSender {
        self.sender.clone()
    }

    /// A handle that ends all waits from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::new(Arc::clone(&self.sender.0.interruption))
    }

    /// Closes the connections that are not in use: every write should have ended by now. Returns a
    /// report for each, and the CPU time of the pool's thread in nanoseconds.
    pub fn finish(self) -> (Vec<TargetReport>, u64) {
        let shared = &self.sender.0;
        let left = std::mem::take(&mut *shared.connections());
        let limit_ns = shared.settings.options.close_timeout.as_nanos() as u64;
        let until = shared.settings.clock.now().saturating_add(limit_ns);
        let mut reports = Vec::new();
        self.runtime.handle().block_on(async {
            for connection in left.free.into_iter().chain(left.lost) {
                reports.push(connection.close(until).await);
            }
        });
        if let Some(first) = reports.first_mut() {
            first.shed_samples += left.shed_samples;
        }
        (reports, self.runtime.stop())
    }
}

async fn open(
    settings: &Arc<PoolSettings>,
    client: &Client,
    count: usize,
) -> Result<VecDeque<HttpConnection>, NetError> {
    let mut all = VecDeque::with_capacity(count);
    for _ in 0..count {
        let mut connection = HttpConnection::new(settings);
        connection.connect().await?;
        all.push_back(connection);
    }
    let Some((prelude, first)) = client.prelude().zip(all.front_mut()) else {
        return Ok(all);
    };
    first.request.extend_from_slice(prelude.as_bytes());
    let answer = first.exchange().await?;
    if (200..300).contains(&answer.status) {
        Ok(all)
    } else {
        Err(first.answered(answer.summary()))
    }
}

impl HttpSender {
    /// Writes one batch as one request. The status of the answer decides the outcome, as for
    /// [`HttpTarget`](super::HttpTarget); a time-out, a lost connection and an interruption after
    /// the request was begun make it unknown, and without a connection it is shed.
    pub async fn write(&self, batch: &Batch<'_>) -> Outcome {
        let shared = &*self.0;
        let samples = batch.len() as u64;
        let Some(connection) = shared.take().await else {
            shared.connections().shed_samples += samples;
            return Outcome::Shed;
        };
        let mut taken = Taken {
            shared,
            connection: Some(connection),
        };
        let outcome = match &mut taken.connection {
            Some(connection) => shared.request(connection, batch, samples).await,
            None => Outcome::Shed,
        };
        if let Some(connection) = taken.connection.take() {
            shared.put_back(connection);
        }
        outcome
    }
}

/// A connection in use. If it is dropped before its request has ended, the connection is lost.
struct Taken<'a> {
    shared: &'a Shared,
    connection: Option<HttpConnection>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.lose(self.shared.was_interrupted());
            self.shared.put_back(connection);
        }
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free connection. `None` if there is none any more, or after an interruption.
    async fn take(&self) -> Option<HttpConnection> {
        loop {
            // Created before the check, so no signal is missed.
            let freed = self.freed.notified();
            {
                let mut connections = self.connections();
                let next = connections
                    .free
                    .pop_front()
                    .or_else(|| self.due_again(&mut connections));
                if next.is_some() {
                    connections.in_use += 1;
                    return next;
                }
                if connections.in_use == 0 {
                    return None;
                }
            }
            self.unless_interrupted(freed).await?;
        }
    }

    /// The output of a future; `None` if an [`Interrupter`] ended it.
    async fn unless_interrupted<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        // Created before the check, so no signal is missed.
        let interrupted = self.interrupted.notified();
        if self.interruption.is_wanted() {
            return None;
        }
        tokio::select! {
            biased;
            done = future => Some(done),
            () = interrupted => None,
        }
    }

    /// A lost connection that may be made again now.
    fn due_again(&self, connections: &mut Connections) -> Option<HttpConnection> {
        let pause_ns = self.settings.options.reconnect_after?.as_nanos() as u64;
        let now = self.settings.clock.now();
        let mut lost = connections.lost.iter();
        let is_due = |one: &HttpConnection| one.lost_at.is_none_or(|at| now.saturating_sub(at) >= pause_ns);
        let index = lost.position(is_due)?;
        Some(connections.lost.swap_remove(index))
    }

    async fn request(&self, connection: &mut HttpConnection, batch: &Batch<'_>, samples: u64) -> Outcome {
        let connected = self.unless_interrupted(connection.connect()).await;
        if let Err(error) = connected.unwrap_or_else(|| Err(self.was_interrupted())) {
            connection.report.shed_samples += samples;
            connection.lose(error);
            return Outcome::Shed;
        }
        let report = &mut connection.report;
        report.operations += 1;
        report.samples += samples;
        let left_out = {
            let mut encoder = self.encoder.lock().unwrap_or_else(PoisonError::into_inner);
            encoder.encode(&self.client, batch, &mut connection.request)
        };
        report.skipped_samples += left_out;
        if connection.request.is_empty() {
            return Outcome::Done {
                accepted: 0,
                rejected: samples as u32,
            };
        }
        let answer = self.unless_interrupted(connection.exchange()).await;
        match answer.unwrap_or_else(|| Err(self.was_interrupted())) {
            Ok(answer) => {
                let (outcome, is_as_asked) = outcome(&self.client, &answer, samples, left_out);
                if !is_as_asked {
                    let error = connection.answered(answer.summary());
                    connection.report.keep(error);
                }
                outcome
            }
            Err(error) => {
                connection.lose(error);
                Outcome::Unknown
            }
        }
    }

    fn was_interrupted(&self) -> NetError {
        let address = self.settings.address.clone();
        NetError::Interrupted { address }
    }

    fn put_back(&self, connection: HttpConnection) {
        let mut connections = self.connections();
        connections.in_use -= 1;
        if connection.lost_at.is_none() {
            connections.free.push_back(connection);
            drop(connections);
            self.freed.notify_one();
            return;
        }
        connections.lost.push(connection);
        let is_last = connections.in_use == 0;
        drop(connections);
        if is_last {
            self.freed.notify_waiters();
        }
    }
}

impl fmt::Debug for HttpPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpPool")
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSender")
            .field("address", &self.0.settings.address)
            .finish_non_exhaustive()
    }
}
