//! Clients of real servers for `tsb`: the asynchronous contract ([`Client`]), the [`Bridge`] that
//! makes a blocking [`Store`](tsb_stores::Store) of a client, and one module per server. `http` is what
//! the clients of HTTP servers share; `dalmatiner` is a blocking store itself.
//!
//! A client keeps many requests in flight. The bridge makes it a store, so that the conformance
//! suite and a run treat it like any other. [`KeyedClient`] is the contract for keys, with the same
//! bridge. Each server has a feature, which adds its driver;
//! without features only the contract, the bridge and the [`Address`] are built.
//!
//! This crate does *not* parse specs such as `mongo://host/db` (`tsb-run` does), and it starts no
//! server; `exec` starts a program that a user named. Documents named `docs/...` are in the [repository](https://github.com/tsb-bench/tsb).

#[cfg(any(feature = "client", feature = "exec", feature = "dalmatiner"))]
mod acks;
mod address;
#[cfg(any(feature = "hawkular", feature = "prometheus"))]
mod admission;
mod bridge;
#[cfg(feature = "cassandra")]
pub mod cassandra;
#[cfg(feature = "clickhouse")]
pub mod clickhouse;
mod client;
#[cfg(feature = "dalmatiner")]
pub mod dalmatiner;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "exec")]
pub mod exec;
#[cfg(feature = "graphite")]
pub mod graphite;
#[cfg(feature = "hawkular")]
pub mod hawkular;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "influx")]
pub mod influx;
#[cfg(any(feature = "hawkular", feature = "kairosdb"))]
mod json_samples;
#[cfg(feature = "kairosdb")]
pub mod kairosdb;
mod keyed;
#[cfg(any(feature = "influx", feature = "questdb"))]
mod line_protocol;
#[cfg(feature = "mongo")]
pub mod mongo;
#[cfg(any(feature = "etcd", feature = "http"))]
mod no_answer;
#[cfg(any(feature = "clickhouse", feature = "questdb"))]
mod numbered_rows;
#[cfg(any(feature = "hawkular", feature = "kairosdb"))]
mod paged_series;
#[cfg(any(
    feature = "exec",
    feature = "hawkular",
    feature = "influx",
    feature = "mongo",
    feature = "victoriametrics"
))]
mod partly_sent;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "prometheus")]
pub mod prometheus;
#[cfg(feature = "questdb")]
pub mod questdb;
#[cfg(any(
    feature = "cassandra",
    feature = "clickhouse",
    feature = "etcd",
    feature = "influx",
    feature = "kairosdb",
    feature = "mongo",
    feature = "postgres",
    feature = "questdb"
))]
mod series_registry;
#[cfg(any(feature = "cassandra", feature = "kairosdb", feature = "postgres"))]
mod sorted_rows;
#[cfg(feature = "tls")]
mod tls;
#[cfg(any(feature = "graphite", feature = "kairosdb", feature = "victoriametrics"))]
mod unanswered;
#[cfg(feature = "victoriametrics")]
pub mod victoriametrics;

pub use address::{Address, host_with_port};
pub use bridge::Bridge;
pub use client::{Chunk, Client, QueryCursor};
pub use keyed::{KeyPage, KeyedClient};
#[cfg(feature = "tls")]
pub use tls::TlsOptions;
