//! Columns come back bit for bit; damage inside a payload is named.

use proptest::prelude::*;

use super::*;

fn round_trip(segments: &[BlockColumn]) -> Vec<BlockColumn> {
    let numbered: Vec<(SeriesId, &BlockColumn)> = segments
        .iter()
        .enumerate()
        .map(|(index, segment)| (SeriesId(index as u32 * 2), segment))
        .collect();
    let mut bytes = Vec::new();
    encode(&numbered, &mut bytes);
    let mut found = Vec::new();
    decode(&bytes, 0, segments.len() * 2, &mut |id, times, values| {
        assert_eq!(id.index(), found.len() * 2);
        found.push(BlockColumn {
            times: times.to_vec(),
            values: values.to_vec(),
        });
        Ok(())
    })
    .unwrap();
    found
}

fn bits(segments: &[BlockColumn]) -> Vec<(Vec<Timestamp>, Vec<u64>)> {
    let pairs = segments.iter().map(|segment| {
        let values = segment.values.iter().map(|value| value.to_bits()).collect();
        (segment.times.clone(), values)
    });
    pairs.collect()
}

fn size_of(values: &[f64]) -> usize {
    let mut bytes = Vec::new();
    put_values(&mut bytes, values);
    bytes.len()
}

fn values() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        (-1000_i64..1000).prop_map(|n| n as f64),
        (-100_000_i64..100_000).prop_map(|n| n as f64 / 100.0),
        Just(-0.0),
        Just(9007199254740992.0),
        Just(9007199254740994.0),
    ]
}

fn columns() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        proptest::collection::vec(values(), 1..40),
        proptest::collection::vec((-50_i64..50).prop_map(|n| n as f64), 1..40),
        proptest::collection::vec((-5000_i64..5000).prop_map(|n| n as f64 / 100.0), 1..40),
        (values(), 1_usize..40).prop_map(|(value, length)| vec![value; length]),
    ]
}

fn segment() -> impl Strategy<Value = BlockColumn> {
    columns().prop_flat_map(|values| {
        let length = values.len();
        let times = prop_oneof![
            proptest::collection::vec(any::<i64>(), length),
            (0_i64..20).prop_map(move |start| (0..length as i64).map(|n| (start + n) * 1_000_000_000).collect()),
        ];
        times.prop_map(move |times: Vec<i64>| BlockColumn {
            times: times.into_iter().map(Timestamp).collect(),
            values: values.clone(),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_columns_come_back_bit_for_bit(segments in proptest::collection::vec(segment(), 1..6)) {
        prop_assert_eq!(bits(&round_trip(&segments)), bits(&segments));
    }

    #[test]
    fn any_bytes_are_columns_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut samples = 0;
        let result = decode(&bytes, 0, 10, &mut |id, times, values| {
            assert!(id.0 < 10);
            assert_eq!(times.len(), values.len());
            samples += times.len() as u64;
            Ok(())
        });
        prop_assert!(result.is_err() || samples <= MAX_BLOCK_SAMPLES);
    }
}

#[test]
fn usual_columns_are_short() {
    let idle = [17.0; 60];
    assert_eq!(size_of(&idle), 9);
    let steady: Vec<f64> = (0..60).map(|n| (n * 1_000_000) as f64).collect();
    assert!(size_of(&steady) < 12, "{}", size_of(&steady));
    let busy: Vec<f64> = (0..60).map(|n| (n * 30 + n * n % 17) as f64).collect();
    assert!(size_of(&busy) < 70, "{}", size_of(&busy));
    let decimal: Vec<f64> = (0..60).map(|n| (n * 7 % 50) as f64 / 100.0).collect();
    assert!(size_of(&decimal) < 70, "{}", size_of(&decimal));
}

#[test]
fn a_shared_axis_is_stored_once_and_its_slices_by_place() {
    let times: Vec<Timestamp> = (0..60).map(|n| Timestamp(n * 1_000_000_007 + n * n % 1000)).collect();
    let whole = BlockColumn {
        times: times.clone(),
        values: vec![1.0; 60],
    };
    let part = BlockColumn {
        times: times[20..50].to_vec(),
        values: vec![1.0; 30],
    };
    let mut alone = Vec::new();
    encode(&[(SeriesId(0), &whole)], &mut alone);
    let mut both = Vec::new();
    encode(&[(SeriesId(0), &whole), (SeriesId(1), &part)], &mut both);
    assert_eq!(both.len() - alone.len(), 3 + 2 + 9);
    assert_eq!(round_trip(&[whole.clone(), part.clone()]), [whole, part]);
}

#[test]
fn each_kind_of_damage_is_named() {
    let check = |bytes: &[u8], expected: &str| {
        let error = decode(bytes, 100, 3, &mut |_, _, _| Ok(())).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[1, 7], "a time axis of unknown form");
    check(&[1, 0, 0], "without a timestamp");
    check(&[1, 1, 0, 1], "reaches past the first");
    check(&[1, 0, 1, 0, 1, 3, 0, 0], "not announced");
    check(&[1, 0, 1, 0, 1, 0, 1, 0], "without a time axis");
    check(&[1, 0, 1, 0, 1, 0, 0, 9], "a column of unknown form");
    check(&[1, 0, 1, 0, 1, 0, 0, 3, 10], "unknown scale");
    check(&[1, 0, 2, 0, 0, 1, 1], "longer than its column");
    check(&[1, 0, 1, 0, 1, 0, 0, 4, 0x1f], "more than eight bytes");
    check(&[1, 0, 1, 0, 0, 9], "left over");
    check(&[1, 0, 1, 0, 1], "at byte 105: a block ends within an entry");
    check(&[0xff, 0xff, 0xff, 0x7f], "more than 4194304 time axes");
    let mut beyond = vec![1, 0, 1, 0, 1, 0, 0, FORM_DELTA];
    varint::put_signed(&mut beyond, MAX_EXACT as i64 + 1);
    check(&beyond, "beyond 2^53");
}
