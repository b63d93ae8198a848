//! Makes everything durable: a snapshot, which is deleted at once.

use std::sync::atomic::Ordering;

use serde::Deserialize;
use tsb_core::bytes::percent::encoded;
use tsb_core::time::{Clock, SECOND_NS};

use super::VictoriaClient;
use crate::http::Request;
use tsb_stores::error::Result;

/// How old the figures of the server's metrics may be: it computes them once a second, by a clock of
/// whole seconds.
const METRICS_AGE_NS: u64 = 2 * SECOND_NS;

/// The answer to making a snapshot.
#[derive(Debug, Deserialize)]
struct Made {
    status: String,
    #[serde(default)]
    snapshot: String,
}

impl VictoriaClient {
    /// For a snapshot the server writes all that it holds in memory to files, and syncs them.
    pub(super) async fn snapshot(&self) -> Result<()> {
        const ACTION: &str = "make a snapshot";
        let made = self
            .connection
            .ask(ACTION, &Request::post("/snapshot/create", ""))
            .await?;
        let made = serde_json::from_slice::<Made>(made.body()).ok();
        let Some(made) = made.filter(|made| made.status == "ok") else {
            return Err(self
                .connection
                .server()
                .failed(ACTION, "it does not say that there is one"));
        };
        let delete = Request::post(format!("/snapshot/delete?snapshot={}", encoded(&made.snapshot)), "");
        self.connection.ask("delete a snapshot", &delete).await?;
        self.shown_ns
            .fetch_max(self.clock.now() + METRICS_AGE_NS, Ordering::AcqRel);
        Ok(())
    }
}
