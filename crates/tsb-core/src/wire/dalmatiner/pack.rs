//! Packs the records of 2014 into datagrams.
//!
//! The format has no padding that a server would skip, so the length of datagrams varies, and the
//! kernel's segmentation, which requires equal lengths, cannot be used.

use super::encode::{DalmatinerEncoder, Form};
use crate::batch::Batch;
use crate::series::Catalog;
use crate::wire::{Packer, Packets, UnsupportedSeries};

/// Packs records of July 2014, or blocks of August 2014 behind their bucket.
#[derive(Debug)]
pub(crate) struct DalmatinerPacker {
    encoder: DalmatinerEncoder,
    /// The beginning of each datagram.
    head: Vec<u8>,
}

impl DalmatinerPacker {
    /// A packer. Every record must fit into `limit` bytes.
    ///
    /// # Errors
    /// The first series that cannot be carried, or whose record is longer.
    pub(crate) fn new(form: Form, catalog: &Catalog, limit: usize) -> Result<Self, UnsupportedSeries> {
        let encoder = DalmatinerEncoder::new(form, catalog)?;
        let head = encoder.datagram_head();
        for (id, key) in catalog.definitions() {
            if head.len() + encoder.record_length(id.index()) > limit {
                let why = "its record does not fit into a datagram";
                return Err(UnsupportedSeries::new(form.protocol(), &key, why));
            }
        }
        Ok(Self { encoder, head })
    }
}

impl Packer for DalmatinerPacker {
    fn pack(&mut self, batch: &Batch<'_>, packets: &mut Packets) {
        for (id, at, value) in batch.iter() {
            if self.encoder.record_length(id.index()) > packets.room() {
                packets.close();
            }
            let is_fresh = packets.is_fresh();
            let out = packets.open();
            let start = out.len();
            if is_fresh {
                out.extend_from_slice(&self.head);
            }
            if !self.encoder.try_record((id.index(), at, value), out) {
                // A head without records would be an empty datagram.
                out.truncate(if is_fresh { start } else { out.len() });
            }
        }
    }

    fn finish(&mut self, _packets: &mut Packets) -> bool {
        false
    }

    fn samples_in(&self, datagram: &[u8]) -> u64 {
        let mut rest = datagram.get(self.head.len()..).unwrap_or_default();
        let mut samples = 0;
        while let Some(length) = self.encoder.form_length(rest) {
            samples += 1;
            rest = &rest[length..];
        }
        samples
    }

    fn skipped(&self) -> u64 {
        crate::wire::Encoder::skipped(&self.encoder)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::series::SeriesKey;
    use crate::time::{ManualClock, Timestamp};
    use crate::wire::testing::Heap;
    use crate::wire::{Decoder, Protocol, Room};
    use crate::{Batch, SeriesId};

    fn catalog(series: usize) -> Catalog {
        (0..series)
            .map(|index| SeriesKey::new(format!("cloud.zones.cpu.usage.{index}")))
            .collect()
    }

    fn packed(form: Form, limit: usize, values: &[f64]) -> Vec<Vec<u8>> {
        let mut packer = DalmatinerPacker::new(form, &catalog(values.len()), limit).unwrap();
        let mut packets = Packets::new(limit, true);
        packer.pack(&Batch::tick(SeriesId(0), Timestamp::from_secs(9), values), &mut packets);
        packets.close();
        let all: Vec<Vec<u8>> = packets.iter().map(<[u8]>::to_vec).collect();
        let samples: u64 = all.iter().map(|datagram| packer.samples_in(datagram)).sum();
        assert_eq!(samples + packer.skipped(), values.len() as u64);
        all
    }

    #[test]
    fn every_datagram_stands_alone_and_is_within_its_limit() {
        let values: Vec<f64> = (0..500).map(f64::from).collect();
        for form in [Form::July, Form::August] {
            for limit in [100, 1_400, 4_097, 65_507] {
                let datagrams = packed(form, limit, &values);
                assert!(
                    datagrams.iter().all(|datagram| datagram.len() <= limit),
                    "{form:?} {limit}"
                );
                let mut heap = Heap::default();
                let budget = Room::default();
                for datagram in &datagrams {
                    // A decoder that has seen no other.
                    let clock = Arc::new(ManualClock::new());
                    let mut decoder: Box<dyn Decoder> = form.protocol().datagram_decoder(clock, &budget);
                    decoder.decode(datagram, &mut heap).unwrap();
                }
                let taken: Vec<f64> = heap.samples.iter().map(|(_, _, value)| *value).collect();
                assert_eq!((taken, heap.malformed.len()), (values.clone(), 0), "{form:?} {limit}");
            }
        }
    }

    #[test]
    fn samples_that_cannot_be_carried_leave_no_bytes() {
        let bad = [0.5, f64::NAN, 1e300];
        assert!(packed(Form::August, 1_400, &bad).is_empty());
        assert_eq!(packed(Form::July, 1_400, &[0.5, 1.0, 0.5]).len(), 1);
        let error = DalmatinerPacker::new(Form::July, &catalog(1), 40).unwrap_err();
        assert_eq!(
            (error.protocol, error.why),
            (Protocol::DalmatinerJuly, "its record does not fit into a datagram")
        );
    }

    #[test]
    fn a_datagram_of_the_document_has_as_many_blocks() {
        // 9 + 56 x 73 bytes, by the specification.
        let key = |index: usize| SeriesKey::new(format!("cloud.zones.cpu.usage.f242021c-c5eb-4c53-a609-64b{index:03}"));
        let keys: Catalog = (0..56).map(key).collect();
        let mut packer = DalmatinerPacker::new(Form::August, &keys, 4_097).unwrap();
        let mut packets = Packets::new(4_097, false);
        packer.pack(
            &Batch::tick(SeriesId(0), Timestamp::from_secs(1_404_770_400), &[42.0; 56]),
            &mut packets,
        );
        assert_eq!((packets.len(), packets.room()), (1, 0));
    }
}
