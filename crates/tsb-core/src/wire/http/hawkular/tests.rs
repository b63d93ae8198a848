//! The requests of the original client byte for byte, and the tables of Mohawk's interface.

use std::collections::BTreeMap;

use super::*;
use crate::series::SeriesKey;
use crate::time::Timestamp;
use crate::time::{ManualClock, SECOND_NS};
use crate::wire::Take;
use crate::wire::testing::Heap;
use crate::wire::{Decoder, Next, NotAdmitted, Peer, Sink};
use crate::{Batch, SeriesId};

mod backends;
mod interface;

/// Samples by series, in the order of time: the store of these tests.
#[derive(Debug, Default)]
struct Samples(Mutex<BTreeMap<SeriesKey, BTreeMap<Timestamp, f64>>>);

impl Samples {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SeriesKey, BTreeMap<Timestamp, f64>>> {
        self.0.lock().unwrap()
    }
}

#[derive(Debug)]
struct ModelReader {
    samples: Arc<Samples>,
    fails: bool,
}

impl SampleReader for ModelReader {
    fn samples(
        &mut self,
        key: &SeriesKey,
        start: Timestamp,
        end: Timestamp,
        take: &mut Take<'_>,
    ) -> Result<(), String> {
        if self.fails {
            return Err("the disk is gone".to_owned());
        }
        for (at, value) in self.samples.lock().entry(key.clone()).or_default().range(start..end) {
            if take(&[*at], &[*value]).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn newest(&mut self, keys: &[SeriesKey]) -> Result<Vec<Option<Timestamp>>, String> {
        let mut samples = self.samples.lock();
        let newest = |key: &SeriesKey| samples.entry(key.clone()).or_default().keys().next_back().copied();
        Ok(keys.iter().map(newest).collect())
    }

    fn keys(&self) -> Vec<SeriesKey> {
        self.samples.lock().keys().cloned().collect()
    }
}

/// A sink that writes into the model, and refuses one value.
#[derive(Debug)]
struct ModelSink {
    samples: Arc<Samples>,
    heap: Heap,
}

/// A value that the model's store rejects.
const REJECTED: f64 = -404.0;

impl Sink for ModelSink {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.heap.series(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        for (id, at, value) in batch.iter().filter(|sample| sample.2 != REJECTED) {
            let key = self.heap.catalog.key(id).unwrap().clone();
            self.samples.lock().entry(key).or_default().insert(at, value);
        }
        self.heap.batch(batch);
    }

    fn refused(&mut self, why: NotAdmitted, samples: usize) {
        self.heap.refused(why, samples);
    }

    fn unannounced(&mut self, samples: usize) {
        self.heap.unannounced(samples);
    }

    fn malformed(&mut self, problem: &crate::wire::Malformed<'_>) {
        self.heap.malformed(problem);
    }
}

/// An endpoint over the model, at 1,500,000,000 s and a half after the epoch.
struct Server {
    endpoint: Hawkular,
    room: Room,
    clock: Arc<dyn Clock>,
    sink: ModelSink,
    reads_fail: bool,
}

/// The present of these tests, in milliseconds.
const NOW: i64 = 1_500_000_000_500;

impl Server {
    fn new(behaviour: Behaviour, backend: Backend) -> Self {
        let clock = ManualClock::new();
        clock.advance(NOW as u64 / 1_000 * SECOND_NS + SECOND_NS / 2);
        let room = Room::default();
        let options = HawkularOptions { behaviour, backend };
        Self {
            endpoint: Hawkular::new(options, room.clone()),
            room,
            clock: Arc::new(clock),
            sink: ModelSink {
                samples: Arc::default(),
                heap: Heap::default(),
            },
            reads_fail: false,
        }
    }

    /// Presents bytes on a connection of their own, in pieces; returns the answers.
    fn talk(&mut self, bytes: &[u8], piece: usize) -> String {
        let reader = ModelReader {
            samples: Arc::clone(&self.sink.samples),
            fails: self.reads_fail,
        };
        let mut decoder = self.endpoint.decoder(&self.clock, Box::new(reader));
        let (mut out, mut waiting) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(piece.max(1)) {
            waiting.extend_from_slice(piece);
            loop {
                let taken = decoder.decode(&waiting, &mut self.sink).unwrap();
                waiting.drain(..taken);
                let rejected = self.sink.heap.samples.iter().filter(|sample| sample.2 == REJECTED);
                let rejected = rejected.count() as u64;
                self.sink.heap.samples.clear();
                let peer = Peer {
                    rejected,
                    is_listening: true,
                };
                if decoder.answer(peer, &mut out) != Next::Again {
                    break;
                }
            }
        }
        decoder.finish(&waiting, &mut self.sink);
        drop(decoder);
        assert_eq!(
            self.room.held.left(),
            Room::default().held.left(),
            "memory is given back"
        );
        String::from_utf8(out).unwrap()
    }

    /// One request of tenant `t`; returns its status and its body.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.ask_as("Hawkular-Tenant: t\r\n", method, path, body)
    }

    fn ask_as(&mut self, fields: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let request =
            format!("{method} /hawkular/metrics/{path} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        parsed(&self.talk(request.as_bytes(), request.len()))
    }

    fn get(&mut self, path: &str) -> (u16, String) {
        self.ask("GET", path, "")
    }

    fn post(&mut self, path: &str, body: &str) -> (u16, String) {
        self.ask("POST", path, body)
    }

    /// Writes samples of gauge `id` of tenant `t`, times in milliseconds.
    fn write(&mut self, id: &str, samples: &[(i64, f64)]) {
        let data: Vec<String> = samples
            .iter()
            .map(|(at, value)| format!(r#"{{"timestamp":{at},"value":{value}}}"#))
            .collect();
        let body = format!(r#"[{{"id":"{id}","data":[{}]}}]"#, data.join(","));
        assert_eq!(self.post("gauges/raw", &body).0, 200);
    }

    /// What was malformed since the last call.
    fn problems(&mut self) -> Vec<&'static str> {
        let problems = self.sink.heap.problems();
        self.sink.heap.malformed.clear();
        problems
    }
}

/// The status and the body of an answer.
fn parsed(answer: &str) -> (u16, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// The samples of an answer, as times less a base, and values.
fn items(answer: &(u16, String), base: i64) -> Vec<(i64, f64)> {
    assert_eq!(answer.0, 200, "{}", answer.1);
    let json: Vec<serde_json::Value> = serde_json::from_str(&answer.1).unwrap();
    let item = |item: &serde_json::Value| {
        let at = item["timestamp"].as_i64().unwrap();
        (at - base, item["value"].as_f64().unwrap())
    };
    json.iter().map(item).collect()
}

fn times(answer: &(u16, String), base: i64) -> Vec<i64> {
    items(answer, base).into_iter().map(|item| item.0).collect()
}
