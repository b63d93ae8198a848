//! Version 2, over datagrams: the golden datagram of docs/formats/tsb-wire.md, and what
//! is lost, late, doubled, damaged or never announced.

use proptest::prelude::*;

use super::*;
use crate::batch::{Batch, BatchBuf, Ids, Times};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::wire::testing::{Heap, any_samples, named};
use crate::wire::{Decoder, Packer, Packets, Room, Sequence};

const AT: Timestamp = Timestamp(1_404_770_400_000_000_000);

fn catalog(series: usize) -> Catalog {
    let keys = (0..series).map(|index| SeriesKey::with_labels("m", [("i", format!("{index}"))]));
    keys.collect()
}

/// What is packed, datagram by datagram, the end included.
fn datagrams(packer: &mut TsbPacker, packets: &mut Packets) -> Vec<Vec<u8>> {
    let mut more = true;
    while more {
        more = packer.finish(packets);
    }
    packets.close();
    packets.iter().map(<[u8]>::to_vec).collect()
}

fn receive<'a>(decoder: &mut TsbDatagramDecoder, datagrams: impl IntoIterator<Item = &'a Vec<u8>>) -> Heap {
    let mut heap = Heap::default();
    for datagram in datagrams {
        assert_eq!(decoder.decode(datagram, &mut heap), Ok(datagram.len()));
    }
    heap
}

fn sequence(decoder: &TsbDatagramDecoder) -> Sequence {
    decoder.sequence().unwrap()
}

/// `ticks` ticks of `series` series in batches of 54, of values that are all different.
fn ticks(packer: &mut TsbPacker, packets: &mut Packets, series: u32, ticks: i64) {
    for tick in 0..ticks {
        for first in (0..series).step_by(54) {
            let values: Vec<f64> = (first..series.min(first + 54))
                .map(|id| f64::from(id) + tick as f64 / 1e3)
                .collect();
            packer.pack(&Batch::tick(SeriesId(first), AT + tick, &values), packets);
        }
    }
}

#[test]
fn the_golden_datagram_is_as_documented() {
    let catalog: Catalog = [SeriesKey::new("a"), SeriesKey::new("b")].into_iter().collect();
    let mut packer = TsbPacker::new(&catalog, 256, 0x1234).unwrap();
    let mut packets = Packets::new(256, false);
    packer.pack(&Batch::tick(SeriesId(0), AT, &[42.0, -0.5]), &mut packets);
    packets.close();
    let golden = include_str!("../../../fixtures/wire/tsb-datagram.hex");
    let golden: Vec<u8> = golden
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    let packed: Vec<u8> = packets.iter().next().unwrap().to_vec();
    assert_eq!(packed, golden, "{packed:02x?}");
    assert_eq!(packer.samples_in(&packed), 2);
}

#[test]
fn every_sample_arrives_and_no_datagram_is_too_long() {
    for (limit, is_equal) in [(300, false), (300, true), (1_400, true), (65_507, false)] {
        let mut packer = TsbPacker::new(&catalog(1_000), limit, 1).unwrap();
        let mut packets = Packets::new(limit, is_equal);
        ticks(&mut packer, &mut packets, 1_000, 5);
        let sent = datagrams(&mut packer, &mut packets);
        assert!(sent.iter().all(|datagram| datagram.len() <= limit));
        if is_equal {
            let short = sent.iter().filter(|datagram| datagram.len() < limit).count();
            assert!(short <= 6, "{short}");
        }
        let counted: u64 = sent.iter().map(|datagram| packer.samples_in(datagram)).sum();
        let mut decoder = TsbDatagramDecoder::new(&Room::default());
        let heap = receive(&mut decoder, &sent);
        assert_eq!((heap.samples.len(), heap.problems(), counted), (5_000, vec![], 5_000));
        let account = sequence(&decoder);
        assert_eq!((account.next, account.missing, account.has_ended), (5_000, 0, true));
        assert_eq!(account.repeated, 0);
    }
}

#[test]
fn a_datagram_of_1400_bytes_is_full() {
    let mut packer = TsbPacker::new(&catalog(54_000), 1_400, 1).unwrap();
    let mut packets = Packets::new(1_400, true);
    ticks(&mut packer, &mut packets, 5_400, 4);
    packets.close();
    packets.clear_closed();
    let values = vec![0.5; 54_000];
    packer.pack(&Batch::tick(SeriesId(0), AT, &values[..5_400]), &mut packets);
    let bytes = packets.closed_bytes().0.len() as f64 / 5_400.0;
    assert!(bytes < 8.6, "{bytes} bytes a sample, announcements again included");
}

#[test]
fn a_lost_datagram_costs_its_own_samples_and_no_other() {
    let mut packer = TsbPacker::new(&catalog(300), 400, 7).unwrap();
    let mut packets = Packets::new(400, true);
    ticks(&mut packer, &mut packets, 300, 6);
    let sent = datagrams(&mut packer, &mut packets);
    // Each of them alone: among them the first announcements.
    for lost in 0..sent.len() - 5 {
        let mut decoder = TsbDatagramDecoder::new(&Room::default());
        let came = sent.iter().enumerate().filter(|(index, _)| *index != lost);
        let heap = receive(&mut decoder, came.map(|(_, datagram)| datagram));
        let missing = packer.samples_in(&sent[lost]);
        assert_eq!(sequence(&decoder).missing, missing, "datagram {lost}");
        assert_eq!(heap.samples.len() as u64, 1_800 - missing, "datagram {lost}");
        assert_eq!((heap.refused, heap.problems()), (0, vec![]));
    }
}

#[test]
fn samples_wait_for_the_announcement_in_bounded_memory() {
    let mut packer = TsbPacker::new(&catalog(54), 1_400, 7).unwrap();
    let mut packets = Packets::new(1_400, false);
    let values = [1.0; 54];
    for tick in 0..20_000 {
        packer.pack(&Batch::tick(SeriesId(0), AT + tick, &values), &mut packets);
    }
    let sent = datagrams(&mut packer, &mut packets);
    let only_samples = |datagram: &&Vec<u8>| {
        let (mut rest, mut kinds) = (datagram.as_slice(), Vec::new());
        while let Ok(Some(header)) = frame::open_datagram(rest) {
            kinds.push(header.kind);
            rest = &rest[frame::HEADER + header.length..];
        }
        kinds.iter().all(|kind| *kind == frame::SAMPLES)
    };
    let (begin, end) = sent.split_at(sent.len() - 10);
    let room = Room::of(16 << 20);
    let mut decoder = TsbDatagramDecoder::new(&room);
    let heap = receive(&mut decoder, begin.iter().filter(only_samples).take(100));
    assert_eq!((heap.samples.len(), heap.unannounced), (0, 0));
    assert!(room.held.left() < 16 << 20);
    let heap = receive(&mut decoder, end);
    let held = begin.iter().filter(only_samples).take(100);
    let expected: u64 = held.chain(end).map(|datagram| packer.samples_in(datagram)).sum();
    assert_eq!(heap.samples.len() as u64, expected);
    assert_eq!(room.held.left(), 16 << 20);
    let table = (16 << 20) - room.names.left();
    assert!((54 * 8..108 * 8).contains(&table), "only the table is left: {table}");
    drop(decoder);
    // A budget of nothing: refused and counted, and the announcement as well.
    let mut decoder = TsbDatagramDecoder::new(&Room::of(0));
    let heap = receive(&mut decoder, &begin[begin.len() - 10..]);
    assert_eq!(heap.samples.len(), 0);
    assert!(heap.unannounced > 0);
    // A megabyte of one peer, whatever the budget is.
    let mut decoder = TsbDatagramDecoder::new(&room);
    let heap = receive(&mut decoder, begin.iter().filter(only_samples));
    assert!(heap.unannounced > 0 && room.held.left() > 14 << 20);
    drop(decoder);
    assert_eq!((room.held.left(), room.names.left()), (16 << 20, 16 << 20));
}

#[test]
fn samples_of_series_never_announced_are_counted_at_the_end() {
    let mut packer = TsbPacker::new(&catalog(54), 1_400, 7).unwrap();
    let mut packets = Packets::new(1_400, false);
    ticks(&mut packer, &mut packets, 54, 10);
    packets.close();
    let mut decoder = TsbDatagramDecoder::new(&Room::default());
    let last = packets.iter().last().unwrap().to_vec();
    let mut heap = receive(&mut decoder, [&last]);
    decoder.finish(&[], &mut heap);
    assert_eq!((heap.refused, heap.unannounced as u64), (0, packer.samples_in(&last)));
}

#[test]
fn another_life_of_the_sender_begins_anew() {
    let mut decoder = TsbDatagramDecoder::new(&Room::default());
    for session in [5, 6] {
        let mut packer = TsbPacker::new(&catalog(100), 600, session).unwrap();
        let mut packets = Packets::new(600, true);
        ticks(&mut packer, &mut packets, 100, 2);
        let heap = receive(&mut decoder, &datagrams(&mut packer, &mut packets));
        assert_eq!((heap.samples.len(), sequence(&decoder).missing), (200, 0));
    }
}

#[test]
fn damage_costs_the_datagram_and_is_named() {
    let mut packer = TsbPacker::new(&catalog(10), 600, 5).unwrap();
    let mut packets = Packets::new(600, true);
    ticks(&mut packer, &mut packets, 10, 20);
    let sent = datagrams(&mut packer, &mut packets);
    let mut changed = sent[1].clone();
    changed[40] ^= 1;
    let mut stream = sent[1].clone();
    stream[3] = 1;
    let mut dirty = sent[1].clone();
    let end = dirty.len();
    dirty.truncate(end - 8);
    dirty.extend_from_slice(&[0, 0, 0, 1]);
    let table = [
        (changed, "a frame's checksum is wrong"),
        (stream, "a frame does not begin with the magic of version 2"),
        (
            sent[1][..100].to_vec(),
            "a frame is cut short by the end of its datagram",
        ),
        ([0, 0, 0, 1].to_vec(), "the padding of a datagram is not zero"),
    ];
    for (bytes, what) in table {
        let mut decoder = TsbDatagramDecoder::new(&Room::default());
        let heap = receive(&mut decoder, [&sent[0], &bytes, &sent[2]]);
        assert_eq!(heap.problems(), [what]);
        assert!(heap.samples.len() as u64 >= packer.samples_in(&sent[0]) + packer.samples_in(&sent[2]));
    }
}

#[test]
fn a_key_that_does_not_fit_is_refused_when_the_packer_is_made() {
    let catalog: Catalog = [SeriesKey::new("x".repeat(300))].into_iter().collect();
    let error = TsbPacker::new(&catalog, 300, 1).unwrap_err();
    assert!(error.to_string().contains("does not fit into a datagram"), "{error}");
    assert!(TsbPacker::new(&catalog, 400, 1).is_ok());
}

/// Neighbours of the catalog that were announced in another order, with a time each: the
/// frame bears ids and times, and still no datagram is longer than the limit.
#[test]
fn neighbours_that_are_none_on_the_wire_leave_room_for_their_ids() {
    let catalog = catalog(120);
    for limit in 300..700 {
        let mut packer = TsbPacker::new(&catalog, limit, 1).unwrap();
        let mut packets = Packets::new(limit, false);
        packer.pack(&Batch::tick(SeriesId(60), Timestamp(0), &[1.0; 4]), &mut packets);
        let times: Vec<Timestamp> = (0..64).map(Timestamp).collect();
        let batch = Batch::new(Ids::Range(SeriesId(40)), Times::Each(&times), &[2.0; 64]);
        packer.pack(&batch, &mut packets);
        let sent = datagrams(&mut packer, &mut packets);
        assert!(sent.iter().all(|datagram| datagram.len() <= limit), "{limit}");
        let heap = receive(&mut TsbDatagramDecoder::new(&Room::default()), &sent);
        assert_eq!((heap.problems().len(), heap.samples.len()), (0, 68), "{limit}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn packed_values_are_decoded(
        samples in any_samples(120, false), split in 1..300_usize, limit in 200..2_000_usize, is_equal in any::<bool>(),
    ) {
        let catalog = catalog(120);
        let mut packer = TsbPacker::new(&catalog, limit, 1).unwrap();
        let (mut packets, mut buffer) = (Packets::new(limit, is_equal), BatchBuf::new());
        for part in samples.chunks(split) {
            buffer.clear();
            for (id, at, value) in part {
                buffer.push(*id, *at, *value);
            }
            packer.pack(&buffer.as_batch(), &mut packets);
        }
        let sent = datagrams(&mut packer, &mut packets);
        let mut decoder = TsbDatagramDecoder::new(&Room::default());
        let heap = receive(&mut decoder, &sent);
        prop_assert_eq!(heap.problems(), Vec::<&str>::new());
        prop_assert_eq!(heap.named(), named(&catalog, &samples));
    }

    /// Lost, late, doubled: the samples that came are those of the datagrams that came,
    /// each once, and the account knows how many are missing.
    #[test]
    fn the_account_holds_whatever_the_network_does(
        fates in proptest::collection::vec((0..10_u8, 0..5_usize), 300), ticks_sent in 3..20_i64,
    ) {
        let mut packer = TsbPacker::new(&catalog(200), 500, 1).unwrap();
        let mut packets = Packets::new(500, true);
        ticks(&mut packer, &mut packets, 200, ticks_sent);
        let sent = datagrams(&mut packer, &mut packets);
        let (body, end) = sent.split_at(sent.len() - 5);
        let mut order = Vec::new();
        for (index, datagram) in body.iter().enumerate() {
            let (fate, delay) = fates[index % fates.len()];
            let times = match fate { 0 | 1 => 0, 2 => 2, _ => 1 };
            (0..times).for_each(|_| order.push((index + delay, datagram)));
        }
        order.sort_by_key(|(place, _)| *place);
        let mut decoder = TsbDatagramDecoder::new(&Room::default());
        let mut heap = receive(&mut decoder, order.iter().map(|(_, datagram)| *datagram).chain(end));
        decoder.finish(&[], &mut heap);
        let came: std::collections::BTreeSet<_> = order.iter().map(|(_, datagram)| datagram.as_slice()).collect();
        let expected: u64 = came.iter().map(|datagram| packer.samples_in(datagram)).sum();
        prop_assert_eq!((heap.samples.len() + heap.unannounced) as u64, expected);
        prop_assert_eq!(sequence(&decoder).missing, packer.next_sequence() - expected);
        let bits: std::collections::BTreeSet<_> = heap.named().into_iter().collect();
        prop_assert_eq!(bits.len(), heap.samples.len(), "no sample came twice");
    }
}
