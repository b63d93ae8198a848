//! Requests to one server, for one place.

use super::DEFAULT_PORT;
use super::names::place_selector;
use super::options::VictoriaOptions;
use super::times::retention_ms;
use crate::Address;
use crate::http::{Access, Answer, BodyChunks, HttpServer, Request};
use tsb_stores::error::{Error, Result};

/// Rows of a line of an export.
const LINE_ROWS: &str = "10000";

/// One place of a server.
#[derive(Debug)]
pub(super) struct VictoriaConnection {
    server: HttpServer,
    place: String,
}

/// What the server's own metrics say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerState {
    /// How long it keeps samples, in milliseconds.
    pub(super) retention_ms: Option<i64>,
    /// Bytes of all its files.
    pub(super) bytes: u64,
}

impl VictoriaConnection {
    /// Sends nothing yet.
    pub(super) fn new(address: &Address, options: &VictoriaOptions) -> Result<Self> {
        if address.hosts().contains(',') {
            return Err(spec_error("one host is written to, and several are named".to_owned()));
        }
        let access = Access::of(address, options.tls.clone(), options.timeout)?;
        Ok(Self {
            server: HttpServer::new("VictoriaMetrics", address.hosts(), DEFAULT_PORT, access)?,
            place: address.place().to_owned(),
        })
    }

    pub(super) fn server(&self) -> &HttpServer {
        &self.server
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Makes a request that must succeed.
    pub(super) async fn ask(&self, action: &str, request: &Request) -> Result<Answer> {
        let answer = self.server.ask(action, request).await?;
        if answer.status().is_success() {
            Ok(answer)
        } else {
            Err(self.server.refused(action, &answer))
        }
    }

    /// Checks that a VictoriaMetrics answers, and reads its state from its own metrics.
    pub(super) async fn state(&self) -> Result<ServerState> {
        const ACTION: &str = "ask for its metrics";
        let answer = self.ask(ACTION, &Request::get("/metrics")).await?;
        let text = String::from_utf8_lossy(answer.body());
        if !text.contains("vm_app_version") {
            return Err(spec_error(format!(
                "{} is no VictoriaMetrics: its /metrics do not have vm_app_version",
                self.server.name()
            )));
        }
        Ok(parsed(&text))
    }

    /// Asks about series of selectors in a range, and leaves the answer to be read.
    pub(super) async fn export(
        &self,
        action: &str,
        selectors: &[String],
        range: &(String, String),
    ) -> Result<BodyChunks> {
        let mut fields = vec![
            ("start", range.0.as_str()),
            ("end", range.1.as_str()),
            ("max_rows_per_line", LINE_ROWS),
        ];
        fields.extend(selectors.iter().map(|selector| ("match[]", selector.as_str())));
        self.server
            .rows(action, &Request::form("/api/v1/export", &fields).reading())
            .await
    }

    /// The newest sample of each series of selectors, as lines of text.
    pub(super) async fn newest(
        &self,
        action: &str,
        selectors: &[String],
        range: &(String, String),
    ) -> Result<BodyChunks> {
        let mut fields = vec![("start", range.0.as_str()), ("end", range.1.as_str())];
        fields.extend(selectors.iter().map(|selector| ("match[]", selector.as_str())));
        self.server
            .rows(action, &Request::form("/federate", &fields).reading())
            .await
    }

    /// Deletes all series of the place; what was written last is not deleted before it is visible.
    pub(super) async fn delete(&self) -> Result<()> {
        let flush = Request::get("/internal/force_flush");
        self.ask("make all visible", &flush).await?;
        let selector = place_selector(&self.place);
        let request = Request::form("/api/v1/admin/tsdb/delete_series", &[("match[]", &selector)]);
        self.ask("remove the series of the label", &request).await.map(drop)
    }
}

/// The state in a page of metrics.
fn parsed(text: &str) -> ServerState {
    let mut state = ServerState::default();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("flag{name=\"retentionPeriod\", value=\"") {
            state.retention_ms = rest.split_once('"').and_then(|(value, _)| retention_ms(value));
        } else if line.starts_with("vm_data_size_bytes{") {
            let value = line.rsplit_once(' ').and_then(|(_, value)| value.parse::<f64>().ok());
            state.bytes += value.unwrap_or(0.0) as u64;
        }
    }
    state
}

pub(super) fn spec_error(what: String) -> Error {
    Error::Spec {
        spec: "victoriametrics:".to_owned(),
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_in_the_metrics() {
        let text = "vm_data_size_bytes{type=\"indexdb\"} 40\nvm_data_size_bytes{type=\"storage/small\"} 2\n\
                    flag{name=\"retentionPeriod\", value=\"1d\", is_set=\"true\"} 1\n";
        let expected = ServerState {
            retention_ms: Some(86_400_000),
            bytes: 42,
        };
        assert_eq!(parsed(text), expected);
        assert_eq!(parsed(""), ServerState::default());
    }
}
