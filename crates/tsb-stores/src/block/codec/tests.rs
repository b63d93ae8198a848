//! Every column comes back to the bit, and takes about what it should.

use proptest::prelude::*;

use super::*;

fn check(values: &[f64]) -> usize {
    let (mut encoder, mut out) = (Encoder::default(), Vec::new());
    encoder.column(values, &mut out);
    let mut back = vec![0.5; values.len()];
    Decoder::default().column(&out, &mut back);
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&back), bits(values), "{values:?}");
    out.len()
}

fn column(len: usize, value: impl Fn(u64) -> f64) -> Vec<f64> {
    (0..len as u64).map(value).collect()
}

/// A cheap hash: the same numbers in every run.
fn mixed(index: u64) -> u64 {
    let mut x = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[test]
fn the_common_columns_are_short() {
    let counter = |step: u64| {
        let mut sum = 1e9;
        column(256, |i| i as f64)
            .iter()
            .map(|i| {
                sum += (mixed(*i as u64) % step) as f64;
                sum
            })
            .collect::<Vec<f64>>()
    };
    assert_eq!(check(&[7.0; 256]), 2);
    assert_eq!(check(&[0.25; 256]), 2);
    assert!(check(&counter(2)) <= 32 + 8);
    assert!(check(&counter(1024)) <= 320 + 9);
    let decimals = column(256, |i| (mixed(i) % 201) as f64 / 100.0);
    assert!(check(&decimals) <= 256 + 4);
    let mut jump = counter(16);
    for value in &mut jump[100..] {
        *value += 1e12;
    }
    assert!(
        check(&jump) <= 128 + 24,
        "one jump is an exception, {} bytes",
        check(&jump)
    );
    let still = column(256, |i| (i / 60) as f64);
    assert!(check(&still) <= 3 + 4 * 2);
    assert!(
        check(&column(256, |i| (mixed(i) % 16 * 4096) as f64)) <= 128 + 8,
        "common powers of two cost nothing"
    );
}

#[test]
fn non_integers_come_back_to_the_bit() {
    let specials = [
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        0.0,
        f64::MIN_POSITIVE,
        f64::MAX,
        1e300,
    ];
    for special in specials {
        assert!(check(&[special; 256]) <= 11);
        check(&[special]);
        for len in [2, 3, 100, 256, 256] {
            for at in [0, len / 2, len - 1] {
                let mut values = column(len, |i| i as f64);
                values[at] = special;
                check(&values);
            }
        }
    }
    check(&specials);
    check(&column(256, |i| f64::from_bits(mixed(i))));
    check(&column(256, |i| (i as f64).sqrt()));
    check(&column(256, |i| 9_007_199_254_740_992.0 + i as f64 * 2.0));
    check(&column(256, |i| if i % 2 == 0 { f64::MAX } else { f64::MIN }));
    let gaps = column(256, |i| if i % 32 == 3 { f64::NAN } else { 1000.0 + i as f64 });
    assert!(
        check(&gaps) <= 8 * 9 + 64 + 16,
        "a few NaN do not spoil a column of integers"
    );
}

#[test]
fn every_number_of_decimals_is_found() {
    for decimals in 1..=MAX_DECIMALS {
        let power = POWERS[usize::from(decimals)];
        let values = column(256, |i| (mixed(i) % 1000) as f64 / power);
        assert!(check(&values) <= 320 + 8, "{decimals} decimals");
    }
}

#[test]
fn whole_numbers_of_any_size_come_back() {
    let columns: [Vec<i64>; 4] = [
        vec![i64::MIN, i64::MAX, 0, -1, i64::MIN],
        (0..256).map(|i| mixed(i) as i64).collect(),
        (0..256)
            .map(|i| 1_700_000_000_000_000_000 + i * 1_000_000_000 + (mixed(i as u64) % 1000) as i64 * 1_000_000)
            .collect(),
        vec![5],
    ];
    for values in columns {
        let mut out = Vec::new();
        Encoder::default().whole(&values, &mut out);
        assert_eq!(Decoder::default().whole(&out, values.len()), values);
    }
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-100i64..100).prop_map(|i| i as f64),
        2 => (-10_000i64..10_000).prop_map(|i| i as f64 / 100.0),
        1 => any::<i64>().prop_map(|i| i as f64),
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => Just(-0.0),
        1 => Just(f64::NAN),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_column_comes_back(values in prop::collection::vec(value(), 1..=MAX)) {
        check(&values);
    }

    #[test]
    fn any_walk_comes_back(start in value(), steps in prop::collection::vec((-3i64..4, 0u32..52, any::<bool>()), 1..MAX), decimals in 0usize..7) {
        let mut sum = 0i64;
        let mut values = vec![start];
        for (step, shift, jump) in steps {
            sum = sum.wrapping_add(if jump && step == 3 { step << shift } else { step });
            values.push(sum as f64 / POWERS[decimals]);
        }
        check(&values);
    }
}
