//! Each part of a response time over a wire lies where it was put: real sockets, virtual time.

use super::*;
use crate::breakdown::{Parts, WorstOperation};
use crate::time::ManualClock;
use crate::wire::{Encoder, Fatal, Sequence, Sink};

const MS: u64 = 1_000_000;
const ENCODING: u64 = 5 * MS;
const STORE: u64 = 10 * MS;

/// Takes a known time to encode.
#[derive(Debug)]
struct SlowEncoder(Arc<ManualClock>);

impl Encoder for SlowEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        FixedEncoder.encode(batch, out);
        self.0.advance(ENCODING);
    }

    fn skipped(&self) -> u64 {
        0
    }
}

/// Takes a known time to decode and apply.
#[derive(Debug)]
struct SlowDecoder(Arc<ManualClock>, FixedDecoder);

impl Decoder for SlowDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        self.0.advance(STORE);
        self.1.decode(bytes, sink)
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        self.1.finish(rest, sink);
    }
}

/// The next operation that the listener has timed.
fn timed(testbed: &Testbed) -> WorstOperation {
    let mut timing = Timing::new();
    let patience = MonotonicClock::new();
    while timing.response.count() == 0 {
        assert!(patience.now() < PATIENCE.as_nanos() as u64);
        thread::yield_now();
        testbed.listener.view().drain_timing(&mut timing);
    }
    timing.breakdown.worst()[0]
}

#[test]
fn a_known_delay_of_the_wire_is_the_transports_share() {
    let clock = Arc::new(ManualClock::new());
    clock.advance(1_000 * MS);
    let decoding = Arc::clone(&clock);
    let testbed = Testbed::in_time(
        &Address::from(ANY_PORT),
        ListenOptions::default(),
        move || Box::new(SlowDecoder(Arc::clone(&decoding), FixedDecoder::default())),
        Arc::clone(&clock) as Arc<dyn Clock>,
    );
    let encoding = Arc::clone(&clock);
    let mut target = StreamTarget::connect(
        testbed.listener.address(),
        EmitOptions::default(),
        move || Box::new(SlowEncoder(Arc::clone(&encoding))),
        Arc::clone(&clock) as Arc<dyn Clock>,
        Some(Arc::clone(&testbed.mileposts)),
    )
    .unwrap();
    for (tick, delay) in [0, 40 * MS, 900 * MS].into_iter().enumerate() {
        let begun = clock.now();
        let operation = Operation {
            begun: Some(begun),
            late_ns: 3 * MS,
            ..Operation::write(
                Batch::tick(SeriesId(1), Timestamp::from_secs(tick as i64), &[0.5, 1.5]),
                begun - 7 * MS,
                Slot::default(),
            )
        };
        assert_eq!(target.send(&operation), Outcome::Sent);
        // It stays in the target's buffer meanwhile, which is on the way.
        clock.advance(delay);
        target.idle();
        let one = timed(&testbed);
        let expected = Parts {
            waiting_ns: 4 * MS,
            late_ns: 3 * MS,
            encoding_ns: ENCODING,
            transport_ns: delay,
            store_ns: STORE,
        };
        assert_eq!((one.parts, one.response_ns), (expected, expected.response_ns()));
    }
    target.finish();
    testbed.listener.stop();
}
