//! Messages to and from the browser: JSON, each ended by a zero byte.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Timeout for a message of the browser.
const PATIENCE: Duration = Duration::from_mins(1);

/// Both pipes, and the events received so far.
pub(super) struct Pipe {
    to: File,
    messages: Receiver<Value>,
    next_id: u64,
    pub(super) session: Option<String>,
    pub(super) events: Vec<Value>,
}

impl Pipe {
    /// Opens both named pipes; the browser opens them in the same order.
    pub(super) fn open(to: &Path, from: &Path) -> Result<Self> {
        let writing = OpenOptions::new()
            .write(true)
            .open(to)
            .context("cannot write to the browser")?;
        let reading = File::open(from).context("cannot read from the browser")?;
        let (sender, messages) = sync_channel(4096);
        std::thread::spawn(move || {
            for message in BufReader::new(reading).split(0) {
                let parsed = message.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                let Some(value) = parsed else { break };
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            to: writing,
            messages,
            next_id: 0,
            session: None,
            events: Vec::new(),
        })
    }

    fn receive(&self) -> Result<Value> {
        self.messages
            .recv_timeout(PATIENCE)
            .context("the browser does not answer")
    }

    /// Calls a method and waits for its answer; events on the way are kept.
    pub(super) fn call(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.next_id += 1;
        let mut message = json!({ "id": self.next_id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        self.to.write_all(&bytes).context("the browser is gone")?;
        loop {
            let answer = self.receive()?;
            if answer.get("id").is_none() {
                self.events.push(answer);
            } else if answer["id"] == self.next_id {
                if let Some(error) = answer.get("error") {
                    bail!("{method} failed: {error}");
                }
                return Ok(answer["result"].clone());
            }
        }
    }

    /// Waits for an event after the first `begun` ones.
    pub(super) fn wait_for(&mut self, method: &str, begun: usize) -> Result<()> {
        while !self.events.iter().skip(begun).any(|event| event["method"] == method) {
            let event = self.receive()?;
            self.events.push(event);
        }
        Ok(())
    }
}
