//! The emitting path allocates nothing once it is warm.
//!
//! A counting allocator tells what each thread asked for. The target looks at its own
//! thread's count in every operation, so preparing, waiting, sending, recording and the
//! ends of intervals all lie between two looks.
#![expect(
    unsafe_code,
    reason = "a global allocator cannot be written without; it only counts and passes on"
)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::AtomicBool;

use tsb_core::emit::{Fill, Live, Operation, Outcome, Report, Run, Settings, Source, Target, Worker, run};
use tsb_core::latency::{INTERVALS_MAX, Recorder};
use tsb_core::schedule::{Group, Pace, Roster, Slot, Speed, Timetable};
use tsb_core::time::{MonotonicClock, SECOND_NS};
use tsb_core::{BatchBuf, SeriesId, Timestamp};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
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

/// Counts what was allocated between one operation and the next.
struct Watch {
    sent: u64,
    last: u64,
    warm_allocations: u64,
}

/// Buffers have grown to their size after so many operations.
const WARM: u64 = 100;

impl Target for Watch {
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        let now = ALLOCATIONS.with(Cell::get);
        if self.sent >= WARM {
            self.warm_allocations += now - self.last;
        }
        self.sent += 1;
        self.last = now;
        let accepted = operation.payload.len() as u32;
        match self.sent % 5 {
            0 => Outcome::Shed,
            1 => Outcome::Sent,
            2 => Outcome::Unknown,
            _ => Outcome::Done { accepted, rejected: 0 },
        }
    }
}

fn emit(pace: Pace) -> Report<impl Source, Watch> {
    let groups = (0..50).map(|group| Group::new(SECOND_NS / 100, group * 200_000, 20));
    let timetable = Timetable {
        roster: Roster::new(groups.collect()).unwrap(),
        pace,
        end_ns: Some(SECOND_NS / 5),
        fleet_end_ns: None,
    };
    let source = Fill::new(|slot: &Slot, into: &mut BatchBuf| {
        for series in 0..20 {
            into.push(SeriesId(series), Timestamp(slot.offset_ns as i64), slot.tick as f64);
        }
    });
    let worker = Worker {
        groups: 0..50,
        source,
        target: Watch {
            sent: 0,
            last: 0,
            warm_allocations: 0,
        },
    };
    let run_of = Run {
        clock: &MonotonicClock::new(),
        timetable: &timetable,
        stop: &AtomicBool::new(false),
        live: &Live::new(1),
        settings: Settings {
            interval_ns: SECOND_NS / 100,
            ..Settings::default()
        },
    };
    run(&run_of, vec![worker]).unwrap()
}

#[test]
fn nothing_is_allocated_once_warm() {
    let counted = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(ALLOCATIONS.with(Cell::get), counted + 1, "the allocator must count");

    let on_time = Pace::Fleet(Speed::NATURAL);
    let poisson = Pace::Shape("poisson:20000,seed=1".parse().unwrap());
    let hopeless = Pace::Fleet(Speed::new(1_000, 1).unwrap());
    let closed = Pace::Shape("max".parse().unwrap());
    for pace in [on_time, poisson, hopeless, closed] {
        let named = format!("{pace:?}");
        let report = emit(pace);
        let watch = &report.workers[0].target;
        assert!(watch.sent > 2 * WARM, "{named}: {} operations", watch.sent);
        assert_eq!(watch.warm_allocations, 0, "{named}: of {} operations", watch.sent);
    }
}

/// A run of three times as many intervals as are kept: most end with two older ones merged, and
/// once all of them are pairs.
#[test]
fn intervals_end_and_are_merged_without_allocating() {
    let intervals = 3 * INTERVALS_MAX;
    let mut recorder = Recorder::new(0, 1_000, intervals * 1_000);
    let before = ALLOCATIONS.with(Cell::get);
    for interval in 0..intervals {
        recorder.cut(interval * 1_000);
        (0..100).for_each(|operation| recorder.record(1_000_000 + (interval * 7_919 + operation * 104_729) % 900_000));
    }
    recorder.cut(intervals * 1_000);
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
    let recording = recorder.finish();
    assert_eq!(recording.total.count(), intervals * 100);
    assert!(recording.intervals.len() as u64 <= INTERVALS_MAX + 1);
}

/// Packing, marking and sending datagrams, into a socket that nobody reads.
#[cfg(feature = "net")]
#[test]
fn datagrams_are_packed_and_sent_without_allocating() {
    use std::sync::Arc;
    use tsb_core::net::{Address, DatagramTarget, EmitOptions, Mileposts};
    use tsb_core::wire::Protocol;
    use tsb_core::{Batch, Catalog, SeriesKey};

    let deaf = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = Address::Inet(deaf.local_addr().unwrap());
    let catalog: Catalog = (0..5_000)
        .map(|index| SeriesKey::new(format!("host{index:05}.load")))
        .collect();
    let values = vec![1.5; 5_000];
    for (protocol, gso) in [Protocol::Graphite, Protocol::Influx, Protocol::Tsb]
        .into_iter()
        .flat_map(|protocol| [(protocol, true), (protocol, false)])
    {
        let options = EmitOptions {
            gso,
            sockets: 3,
            ..EmitOptions::default()
        };
        let packer = |session| protocol.packer(&catalog, 1_400, session).unwrap();
        let (clock, mileposts) = (Arc::new(MonotonicClock::new()), Mileposts::new(1 << 16));
        let mut target = DatagramTarget::connect(&address, options, packer, clock, Some(&mileposts)).unwrap();
        let mut tick = |second| {
            for first in (0..5_000).step_by(54) {
                let part = &values[first..5_000.min(first + 54)];
                let batch = Batch::tick(SeriesId(first as u32), Timestamp::from_secs(second), part);
                assert_eq!(target.send(&Operation::write(batch, 0, Slot::default())), Outcome::Sent);
            }
            target.idle();
        };
        (0..10).for_each(&mut tick);
        let before = ALLOCATIONS.with(Cell::get);
        (10..20).for_each(&mut tick);
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "{protocol}, gso {gso}");
    }
}
