//! Frames there and back, cut, and damaged.

use proptest::prelude::*;
use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};

use super::{FrameDecoder, FrameEncoder};

const SERIES: u32 = 200;

type LoggedSample = (u32, i64, u64);

fn decode(decoder: &mut FrameDecoder, frame: &[u8]) -> Result<Vec<LoggedSample>, &'static str> {
    let mut samples = Vec::new();
    decoder.frame(frame, SERIES, |decoded| {
        samples.extend(
            decoded
                .batch()
                .iter()
                .map(|(id, at, value)| (id.0, at.0, value.to_bits())),
        );
    })?;
    Ok(samples)
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        (-1000i64..1000).prop_map(|n| n as f64),
        any::<i32>().prop_map(|n| f64::from(n) / 100.0),
        any::<i64>().prop_map(|n| n as f64),
        Just(-0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
    ]
}

fn samples() -> impl Strategy<Value = Vec<(u32, i64, f64)>> {
    let at = prop_oneof![any::<i64>(), 0..1000i64];
    proptest::collection::vec((0..SERIES, at, value()), 1..150)
}

proptest! {
    #[test]
    fn whatever_was_written_is_read(batches in proptest::collection::vec((samples(), 0..3u8), 1..8), frames in 1..4usize) {
        let (mut encoder, mut decoder) = (FrameEncoder::default(), FrameDecoder::default());
        for part in batches.chunks(batches.len().div_ceil(frames)) {
            let mut expected = Vec::new();
            for (samples, shape) in part {
                let ids: Vec<_> = samples.iter().map(|sample| SeriesId(sample.0)).collect();
                let times: Vec<_> = samples.iter().map(|sample| Timestamp(sample.1)).collect();
                let values: Vec<_> = samples.iter().map(|sample| sample.2).collect();
                let batch = match shape {
                    0 => Batch::new(Ids::Each(&ids), Times::Each(&times), &values),
                    1 => Batch::new(Ids::Each(&ids), Times::One(times[0]), &values),
                    _ => Batch::tick(SeriesId(ids[0].0 % (SERIES - 150)), times[0], &values),
                };
                encoder.add(&batch);
                expected.extend(batch.iter().map(|(id, at, value)| (id.0, at.0, value.to_bits())));
            }
            let frame = encoder.frame().to_vec();
            encoder.clear();
            prop_assert_eq!(decode(&mut decoder, &frame).unwrap(), expected);
        }
    }

    #[test]
    fn a_damaged_frame_is_an_error(samples in samples(), place in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut encoder = FrameEncoder::default();
        for (id, at, value) in &samples {
            encoder.add(&Batch::tick(SeriesId(*id), Timestamp(*at), &[*value]));
        }
        let mut frame = encoder.frame().to_vec();
        let place = place.index(frame.len());
        prop_assert!(decode(&mut FrameDecoder::default(), &frame[..place]).is_err());
        frame[place] ^= 1 << bit;
        prop_assert!(decode(&mut FrameDecoder::default(), &frame).is_err());
    }

    #[test]
    fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let sum = crc32fast::hash(&bytes).to_le_bytes();
        bytes.splice(0..0, sum);
        let result = decode(&mut FrameDecoder::default(), &bytes);
        prop_assert!(result.is_ok() || result.is_err());
    }
}

#[test]
fn a_tick_of_counters_takes_about_a_byte_and_a_half_a_change() {
    let mut encoder = FrameEncoder::default();
    let tick = |at: i64| (0..64).map(move |id| (id * 1000 + at * (id % 4)) as f64);
    encoder.add(&Batch::tick(SeriesId(0), Timestamp(0), &tick(0).collect::<Vec<_>>()));
    encoder.clear();
    encoder.add(&Batch::tick(SeriesId(0), Timestamp(1), &tick(1).collect::<Vec<_>>()));
    // Checksum, kind, first, length, time, a bit each, and a code and a byte for 48 changes.
    assert_eq!(encoder.frame().len(), 4 + 1 + 1 + 1 + 1 + 8 + 24 + 48);
}
