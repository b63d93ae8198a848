//! A worker that hands its writes to a client allocates nothing once it is warm.
//!
//! A counting allocator tells what each thread asked for. A lane's waker is called on the worker's
//! thread, in every operation that a lane waits for, so what lies between two calls is all that the
//! worker does for an operation: preparing, waiting, handing over, recording.
#![expect(
    unsafe_code,
    reason = "a global allocator cannot be written without; it only counts and passes on"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use tsb_core::time::SECOND_NS;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_run::{AskedRate, Controls, Plan, Transport, run_client};
use tsb_stores::null::NullStore;
use tsb_stores::{
    Ack, AsyncStore, Capabilities, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor, WriteLane,
};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// What the thread had allocated when it woke a lane before, and how often it has woken one.
    static WOKEN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count() {
    ALLOCATIONS.with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches a
// thread-local without a destructor, which allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Most writes in flight, each in a slot of its own.
const IN_FLIGHT: usize = 64;

/// How often every slot is used before the server answers at once: a slot and its lane exchange
/// their buffers, so both have grown when it has been used twice.
const ROUNDS: u32 = 3;

/// Wake-ups after which everything is warm.
const WARM: u64 = 500;

/// What the wakers saw on the worker's thread.
#[derive(Debug, Default)]
struct Seen {
    warm_operations: AtomicU64,
    warm_allocations: AtomicU64,
}

/// Tells the server that a lane has something to write.
struct LaneWaker {
    number: usize,
    ready: SyncSender<usize>,
    seen: Arc<Seen>,
}

impl Wake for LaneWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let now = ALLOCATIONS.with(Cell::get);
        let (before, woken) = WOKEN.with(Cell::get);
        if woken >= WARM {
            self.seen.warm_operations.fetch_add(1, Ordering::Relaxed);
            self.seen.warm_allocations.fetch_add(now - before, Ordering::Relaxed);
        }
        let _ = self.ready.send(self.number);
        // What the channel allocates is not the worker's.
        WOKEN.with(|seen| seen.set((ALLOCATIONS.with(Cell::get), woken + 1)));
    }
}

/// A client whose server accepts every write, on a thread of its own.
struct Server {
    inner: NullStore,
    lanes: Arc<Mutex<Vec<Box<dyn WriteLane>>>>,
    ready: SyncSender<usize>,
}

impl Server {
    fn start() -> (Self, Arc<Seen>) {
        let (ready, woken) = sync_channel(1_024);
        let (lanes, seen) = (Arc::default(), Arc::new(Seen::default()));
        let server = Self {
            inner: NullStore::new(),
            lanes: Arc::clone(&lanes),
            ready,
        };
        let (ready, counted) = (server.ready.clone(), Arc::clone(&seen));
        thread::spawn(move || answer(&lanes, &woken, &ready, &counted));
        (server, seen)
    }
}

/// Makes the writes of each lane that was woken, until the process ends. The first are answered
/// when as many wait as may be in flight, so that every slot is made and used before it counts.
fn answer(
    lanes: &Mutex<Vec<Box<dyn WriteLane>>>,
    woken: &Receiver<usize>,
    ready: &SyncSender<usize>,
    seen: &Arc<Seen>,
) {
    let mut wakers: Vec<Waker> = Vec::new();
    let mut waiting: Vec<usize> = Vec::new();
    let mut rounds = 0;
    for number in woken {
        while wakers.len() <= number {
            wakers.push(Waker::from(Arc::new(LaneWaker {
                number: wakers.len(),
                ready: ready.clone(),
                seen: Arc::clone(seen),
            })));
        }
        let mut lanes = lanes.lock().unwrap();
        let take = |lanes: &mut Vec<Box<dyn WriteLane>>, number: usize| {
            let mut context = Context::from_waker(&wakers[number]);
            lanes[number].poll_next(&mut context) == Poll::Ready(true)
        };
        if !waiting.contains(&number) && take(&mut lanes, number) {
            waiting.push(number);
        }
        while !waiting.is_empty() && (rounds >= ROUNDS || waiting.len() == IN_FLIGHT) {
            rounds += 1;
            for number in std::mem::take(&mut waiting) {
                let accepted = lanes[number].batch().len();
                let ack = Ack::new(accepted, 0, Position(0), Durability::Unconfirmed);
                lanes[number].done(Ok(ack), &Refusals::new());
                if take(&mut lanes, number) {
                    waiting.push(number);
                }
            }
        }
    }
}

impl AsyncStore for Server {
    fn serve(&self, lane: Box<dyn WriteLane>) -> Result<()> {
        let number = {
            let mut lanes = self.lanes.lock().unwrap();
            lanes.push(lane);
            lanes.len() - 1
        };
        let _ = self.ready.send(number);
        Ok(())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("server")
    }
}

impl Store for Server {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.inner.define(series)
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.inner.write(batch, refused)
    }

    fn durable(&self, level: Durability) -> Position {
        self.inner.durable(level)
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.inner.flush(scope, level)
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.inner.query(query, visit)
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest(series, into)
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest_accepted(series, into)
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

#[test]
fn handing_a_write_over_allocates_nothing_once_warm() {
    let mut plan = Plan {
        transport: Transport::Inproc,
        duration_ns: Some(2 * SECOND_NS),
        rate: AskedRate::PerSecond(54 * 2_000),
        in_flight: Some(IN_FLIGHT),
        calibrate: false,
        verify: false,
        report_interval_ns: SECOND_NS / 10,
        ..Plan::default()
    };
    plan.workload.fleet = "mix".parse().unwrap();
    plan.workload.series = Some(54 * 100);
    let (server, seen) = Server::start();
    let client: Arc<dyn AsyncStore> = Arc::new(server);
    let run = run_client(&plan.complete().unwrap(), &client, &Controls::default())
        .unwrap()
        .run;
    assert_eq!(run.latency.response.count, 4_000);
    let (operations, allocations) = (
        seen.warm_operations.load(Ordering::Relaxed),
        seen.warm_allocations.load(Ordering::Relaxed),
    );
    // A lane that is still at work when its next write comes is not woken.
    assert!(operations > 500, "{operations}");
    println!("{allocations} allocations in {operations} operations");
    assert_eq!(allocations, 0, "in {operations} operations");
}
