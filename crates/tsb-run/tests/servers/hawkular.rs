//! The client of Hawkular and Mohawk, against our own endpoint in this process: it answers as Hawkular, and
//! as Mohawk with each of its backends, so that nothing has to be installed or named.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tsb_core::net::{Address, AnyListener, ListenOptions, Registry, Runtime, Undefined};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::wire::http::hawkular::{Backend, Behaviour, HawkularOptions};
use tsb_core::wire::{NotAdmitted, Room};
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_run::place::Place;
use tsb_run::run::{HawkularListen, ReadThrough, Rejects, SinkTotals, StoreSink, Writer};
use tsb_run::spec::{Spec, open};
use tsb_stores::conformance::libtest_mimic::{Completion, Failed, Trial};
use tsb_stores::conformance::{Bounded, Fixture, Place as ConformancePlace};
use tsb_stores::{Error, Refusals, Result, Store, StoreExt, TimeRange};

use crate::daemon::free_ports;
use crate::in_flight::{is_whole_with_more, outlives_a_kill};
use crate::outage::{nobody_answers, opened, outlives_every_manner};

const AS_HAWKULAR: HawkularOptions = HawkularOptions {
    behaviour: Behaviour::Corrected,
    backend: Backend::Memory,
};

/// An endpoint in front of a store.
struct Endpoint {
    answers: HawkularOptions,
    store: Arc<dyn Store>,
    registry: Arc<Registry>,
    /// `None` while it does not listen.
    running: Option<(Runtime, AnyListener)>,
    port: u16,
}

impl Endpoint {
    fn start(answers: HawkularOptions, store: &str) -> std::result::Result<Self, Failed> {
        let [port] = free_ports()?;
        let store: Arc<dyn Store> = Arc::from(open(store)?);
        let defined = Arc::clone(&store);
        let define = move |id: SeriesId, key: &SeriesKey| {
            defined.define(&[(id, key.clone())]).map_err(|error| Undefined {
                why: NotAdmitted::Undefined,
                cause: error.to_string(),
            })
        };
        let mut endpoint = Self {
            answers,
            store,
            registry: Arc::new(Registry::new(1_000_000, define)),
            running: None,
            port,
        };
        endpoint.listen()?;
        Ok(endpoint)
    }

    fn listen(&mut self) -> std::result::Result<(), Failed> {
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let listen = HawkularListen {
            answers: self.answers,
            room: Room::default(),
            read: ReadThrough {
                store: Arc::clone(&self.store),
                registry: Arc::clone(&self.registry),
            },
        };
        let (store, registry) = (Arc::clone(&self.store), Arc::clone(&self.registry));
        let (rejects, totals) = (Arc::new(Rejects::new()), Arc::new(SinkTotals::default()));
        let sink = move || {
            let writer = Writer::new(Arc::clone(&store), Arc::clone(&rejects), Arc::clone(&totals));
            StoreSink::new(writer, Arc::clone(&registry))
        };
        let address = Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)));
        let runtime = Runtime::start()?;
        let options = ListenOptions {
            ingest_threads: 2,
            ..ListenOptions::default()
        };
        let listener = listen.listen(&runtime, &address, options, &clock, sink)?;
        self.running = Some((runtime, listener));
        Ok(())
    }

    /// Ends every connection; the samples stay.
    fn stop(&mut self) {
        if let Some((runtime, listener)) = self.running.take() {
            listener.stop();
            runtime.stop();
        }
    }

    fn spec(&self, options: &str) -> String {
        format!("hawkular://127.0.0.1:{}/hazard?{options}", self.port)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An endpoint that answers in one way, and how the client is told of it.
pub(crate) struct OwnServer {
    name: &'static str,
    answers: HawkularOptions,
    store: &'static str,
    options: &'static str,
}

/// Every way in which the client is used.
pub(crate) fn servers() -> [OwnServer; 7] {
    let mohawk = |behaviour, backend| HawkularOptions { behaviour, backend };
    [
        ("hawkular", AS_HAWKULAR, "memory:", ""),
        // Few samples per request, so that batches are cut.
        ("hawkular-data", AS_HAWKULAR, "memory:", "api=data&samples=7"),
        (
            "hawkular-slots",
            AS_HAWKULAR,
            "ring:?slot=10s&retention=1d",
            "kept=last-of-slot&slot=10s&retention=23h",
        ),
        (
            "mohawk-memory",
            mohawk(Behaviour::Mohawk0154, Backend::Memory),
            "ring:",
            "",
        ),
        (
            "mohawk-sqlite3",
            mohawk(Behaviour::Mohawk0154, Backend::Sqlite3),
            "memory:",
            "",
        ),
        // Memory keeps no copies, which the real one does.
        (
            "mohawk-mongo",
            mohawk(Behaviour::Mohawk0154, Backend::Mongo),
            "memory:",
            "kept=exact",
        ),
        ("mohawk-head", mohawk(Behaviour::Head, Backend::Memory), "memory:", ""),
    ]
    .map(|(name, answers, store, options)| OwnServer {
        name,
        answers,
        store,
        options,
    })
}

/// A tenant of an endpoint of its own: Mohawk's memory has one newest second for all tenants.
struct OwnTenant {
    spec: String,
    endpoint: Option<Endpoint>,
}

/// Endpoints that no check opens any more. Stores may still be open at the newest of them.
static LEFT: Mutex<VecDeque<Endpoint>> = Mutex::new(VecDeque::new());
/// How many of them stay.
const LEFT_MAX: usize = 16;
/// Of tenants.
static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Drop for OwnTenant {
    fn drop(&mut self) {
        let Some(endpoint) = self.endpoint.take() else {
            return;
        };
        let oldest = {
            let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
            left.push_back(endpoint);
            (left.len() > LEFT_MAX).then(|| left.pop_front()).flatten()
        };
        drop(oldest);
    }
}

impl ConformancePlace for OwnTenant {
    fn open(&self) -> Result<Box<dyn Store>> {
        open(&self.spec)
    }

    fn address(&self) -> Option<String> {
        Some(self.spec.clone())
    }
}

impl OwnServer {
    fn tenant(&self, more: &str) -> Result<OwnTenant> {
        let endpoint = Endpoint::start(self.answers, self.store).map_err(|error| Error::Backend {
            action: "start an endpoint".to_owned(),
            source: error.message().unwrap_or_default().into(),
        })?;
        let tenant = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(OwnTenant {
            // Of many checks at once some wait for the others.
            spec: format!(
                "hawkular://127.0.0.1:{}/t{tenant}?{}&timeout=1m&{more}",
                endpoint.port, self.options
            ),
            endpoint: Some(endpoint),
        })
    }
}

impl Fixture for OwnServer {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn unavailable(&self) -> Option<String> {
        unavailable()
    }

    fn place(&self) -> Result<Box<dyn ConformancePlace>> {
        Ok(Box::new(self.tenant("")?))
    }

    /// There are no files.
    fn can_damage(&self) -> bool {
        false
    }

    fn place_at(&self, address: &str) -> Result<Box<dyn ConformancePlace>> {
        Ok(Box::new(OwnTenant {
            spec: address.to_owned(),
            endpoint: None,
        }))
    }

    fn bounded(&self) -> Result<Option<Bounded>> {
        Ok(Some(Bounded {
            store: self.tenant("max_series=20")?.open()?,
            max_series: 20,
            fills_up: false,
        }))
    }
}

fn unavailable() -> Option<String> {
    (!cfg!(feature = "hawkular")).then(|| "the feature hawkular is not built".to_owned())
}

pub(crate) fn trials() -> Vec<Trial> {
    type OwnTest = fn() -> std::result::Result<(), Failed>;
    let tests: [(&str, OwnTest); 9] = [
        ("many_in_flight_lose_nothing", many_in_flight),
        ("a_slot_of_mohawk_keeps_its_last_sample", last_of_slot),
        ("an_endpoint_that_goes_and_comes_back", goes_and_comes_back),
        ("a_server_that_misbehaves", misbehaves),
        ("nobody_answers", || nobody_answers("hawkular")),
        ("what_json_cannot_hold_is_refused", refused),
        ("gauges_of_another_program_are_refused", of_another_program),
        ("what_cannot_be_removed_is_said", cannot_be_removed),
        ("another_server_is_no_hawkular", another_server),
    ];
    let trial = |(name, test): (&str, OwnTest)| {
        Trial::ignorable_test(format!("hawkular-hazards::{name}"), move || match unavailable() {
            Some(why) => Ok(Completion::ignored_with(why)),
            None => test().map(|()| Completion::Completed),
        })
    };
    tests.into_iter().map(trial).collect()
}

fn many_in_flight() -> std::result::Result<(), Failed> {
    let endpoint = Endpoint::start(AS_HAWKULAR, "memory:")?;
    is_whole_with_more(|in_flight| format!("hawkular://127.0.0.1:{}/run{in_flight}", endpoint.port))
}

/// Mohawk's memory at one sample per second: of each 30 s the last one comes back.
fn last_of_slot() -> std::result::Result<(), Failed> {
    let mohawk = HawkularOptions::default();
    let endpoint = Endpoint::start(mohawk, "ring:?max_bytes=4GiB")?;
    let store = opened(&endpoint.spec(""))?;
    let start = 1_700_000_400;
    for second in 0..90 {
        let values = [f64::from(second); 3];
        let _ = store.write_all(&Batch::tick(
            SeriesId(0),
            Timestamp::from_secs(start + i64::from(second)),
            &values,
        ))?;
    }
    let found = store.samples(SeriesId(2), TimeRange::ALL)?;
    let expected = [29, 59, 89].map(|second| (Timestamp::from_secs(start + second), second as f64));
    if found == expected {
        return Ok(());
    }
    Err(format!("{found:?}").into())
}

fn goes_and_comes_back() -> std::result::Result<(), Failed> {
    let mut endpoint = Endpoint::start(AS_HAWKULAR, "memory:")?;
    let spec = endpoint.spec("timeout=2s");
    outlives_a_kill(&spec, move || {
        endpoint.stop();
        MonotonicClock::new().wait_until(SECOND_NS);
        endpoint.listen()?;
        // It is there until the test ends.
        std::mem::forget(endpoint);
        Ok(())
    })
}

fn misbehaves() -> std::result::Result<(), Failed> {
    let endpoint = Endpoint::start(AS_HAWKULAR, "memory:")?;
    outlives_every_manner(endpoint.port, |port| format!("hawkular://127.0.0.1:{port}/hazard"))
}

/// Of a batch, the samples that JSON or milliseconds cannot hold are refused, and the others are there.
fn refused() -> std::result::Result<(), Failed> {
    let endpoint = Endpoint::start(AS_HAWKULAR, "memory:")?;
    let store = opened(&endpoint.spec(""))?;
    let values = [0.1, f64::NAN, f64::INFINITY, f64::from_bits(1), -0.0, f64::MAX];
    let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(1), &values);
    let ack = store.write(&batch, &mut Refusals::new())?;
    let odd = store.write(
        &Batch::tick(SeriesId(6), Timestamp::from_secs(1) + 1, &[1.0]),
        &mut Refusals::new(),
    )?;
    for (id, value) in (0..).zip(values) {
        let found = store.samples(SeriesId(id), TimeRange::ALL)?;
        let found: Vec<u64> = found.into_iter().map(|(_, value)| value.to_bits()).collect();
        let expected: Vec<u64> = value.is_finite().then_some(value.to_bits()).into_iter().collect();
        if found != expected {
            return Err(format!("{value}: {found:?}").into());
        }
    }
    if (ack.rejected, odd.rejected) != (2, 1) {
        return Err(format!("{ack:?}, {odd:?}").into());
    }
    Ok(())
}

fn of_another_program() -> std::result::Result<(), Failed> {
    let endpoint = Endpoint::start(AS_HAWKULAR, "memory:")?;
    let body = r#"[{"id":"machine/cpu","data":[{"timestamp":1700000400000,"value":42.5}]}]"#;
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, endpoint.port))?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    write!(
        stream,
        "POST /hawkular/metrics/gauges/raw HTTP/1.1\r\nHost: a\r\nHawkular-Tenant: hazard\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let error = open(&endpoint.spec("drop=1")).err().ok_or("it is opened")?;
    if !answer.starts_with("HTTP/1.1 200") || !error.to_string().contains("\"machine/cpu\"") {
        return Err(format!("{answer}: {error}").into());
    }
    Ok(())
}

/// No store of ours deletes samples, and one behaviour of the endpoint says that it does.
fn cannot_be_removed() -> std::result::Result<(), Failed> {
    for (answers, why) in [
        (AS_HAWKULAR, "404"),
        (HawkularOptions::default(), "still has samples of 1"),
    ] {
        let endpoint = Endpoint::start(answers, "memory:")?;
        let spec: Spec = endpoint.spec("kept=exact").parse()?;
        let place = Place::of(&spec)?.ok_or("it keeps nothing")?;
        place.remove()?;
        let store = opened(&spec.to_string())?;
        let _ = store.write_all(&Batch::tick(SeriesId(3), Timestamp::from_secs(1_700_000_400), &[1.0]))?;
        let listed = spec.series()?.unwrap_or_default();
        let error = place.remove().err().ok_or("it is removed")?;
        let dropped = open(&endpoint.spec("kept=exact&drop=1")).err().ok_or("it is dropped")?;
        let is_said = |said: String| said.contains(why);
        if listed != [SeriesKey::new("s3")] || !is_said(format!("{error:?}")) || !is_said(format!("{dropped:?}")) {
            return Err(format!("{listed:?}: {error:?}, {dropped:?}").into());
        }
    }
    Ok(())
}

/// Whatever a server says of itself: the error is the spec's, and comes soon.
fn another_server() -> std::result::Result<(), Failed> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4_096]);
            let body = "{\"MetricsService\":[\"\u{1b}[2J\"]}";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let error = open(&format!("hawkular://127.0.0.1:{port}/hazard?timeout=2s"));
    let error = error.err().ok_or("it is opened")?;
    let said = error.to_string();
    if matches!(error, Error::Spec { .. })
        && said.contains("does not say that it is a Hawkular")
        && !said.contains('\u{1b}')
    {
        return Ok(());
    }
    Err(format!("{error:?}").into())
}
