//! Exactness, both ways, against the standard library.

use proptest::prelude::*;

use super::write::MAX_FAST_INTEGER;
use super::*;

fn text_of(value: f64) -> String {
    let mut text = Vec::new();
    push_f64(value, &mut text);
    String::from_utf8(text).unwrap()
}

/// Values as fleets have them, and any bits at all.
fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        any::<u64>().prop_map(|bits| (bits >> (bits % 64)) as f64),
        any::<i64>().prop_map(|cents| (cents >> (cents & 63)) as f64 / 100.0),
        any::<i64>().prop_map(|tenths| (tenths >> (tenths & 63)) as f64 / 10.0),
        any::<i32>().prop_map(|millis| f64::from(millis) / 1000.0),
        any::<f32>().prop_map(f64::from),
    ]
}

/// Texts that are numbers, nearly numbers, or no numbers.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[+-]?[0-9]{1,20}",
        "[+-]?[0-9]{0,17}\\.[0-9]{0,25}",
        "-?[0-9]{1,3}\\.?[0-9]{0,30}[eE][+-]?[0-9]{0,3}",
        "0{0,40}[0-9]{0,9}(\\.0{0,40}[0-9]{0,9})?",
        "[-+]?(inf|infinity|nan|INF|NaN|Infinit)",
        "[-+0-9.eE_ ]{0,12}",
        any_value().prop_map(|value| format!("{value}")),
        any_value().prop_map(|value| format!("{value:e}")),
    ]
}

#[test]
fn the_common_values_have_the_texts_that_people_expect() {
    let table = [
        (0.0, "0"),
        (-0.0, "-0"),
        (7.0, "7"),
        (-7.0, "-7"),
        (42.5, "42.5"),
        (-42.25, "-42.25"),
        (0.1, "0.1"),
        (0.01, "0.01"),
        (99.99, "99.99"),
        (99_999_999.0, "99999999"),
        (100_000_000.0, "100000000"),
        (9_999_999_999.0, "9999999999"),
        (10_000_000_000.0, "10000000000"),
        (9_007_199_254_740_992.0, "9007199254740992"),
        (0.1 + 0.2, "0.30000000000000004"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ];
    for (value, text) in table {
        assert_eq!(text_of(value), text);
    }
}

#[test]
fn whole_numbers_of_every_length_are_written() {
    for value in [0, 9, 10, 99_999_999, 100_000_000, i64::MAX, i64::MIN, -1, -10] {
        let mut text = Vec::new();
        push_i64(value, &mut text);
        assert_eq!(String::from_utf8(text).unwrap(), value.to_string());
    }
}

#[test]
fn a_plain_integer_is_written_from_its_first_digit_on() {
    let mut value = 1_u64;
    while value < MAX_FAST_INTEGER {
        for number in [value - 1, value, value + 1] {
            let mut line = [b'x'; 40];
            let end = IntegerDigits::of(number as f64).unwrap().put(&mut line, 12);
            assert_eq!(&line[12..end], number.to_string().as_bytes());
        }
        value *= 3;
    }
    for other in [
        -0.0,
        -1.0,
        0.5,
        MAX_FAST_INTEGER as f64,
        f64::NAN,
        f64::INFINITY,
        1e300,
        -1e300,
        5e-324,
    ] {
        assert!(IntegerDigits::of(other).is_none(), "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_value_reads_back_to_the_same_bits(value in any_value()) {
        let text = text_of(value);
        prop_assert!(text.len() <= MAX_TEXT, "{}", text);
        let (ours, std) = (parse_f64(text.as_bytes()).unwrap(), text.parse::<f64>().unwrap());
        if value.is_nan() {
            prop_assert!(ours.is_nan() && std.is_nan());
        } else {
            prop_assert_eq!(ours.to_bits(), value.to_bits(), "{}", text);
            prop_assert_eq!(std.to_bits(), value.to_bits(), "{}", text);
        }
    }

    #[test]
    fn cents_are_written_as_everything_is(value in any_value()) {
        if let Some((whole, rest, length)) = cents(value) {
            let mut line = [b'x'; 40];
            let end = whole.put(&mut line, 12);
            line[end..end + 4].copy_from_slice(&rest);
            let written = String::from_utf8_lossy(&line[12..end + length]);
            prop_assert_eq!(written, text_of(value));
        }
    }

    #[test]
    fn no_shorter_text_says_the_same(value in any_value()) {
        prop_assume!(value.is_finite());
        let digits = |text: &str| {
            let mantissa: String = text.chars().take_while(|c| *c != 'e').filter(char::is_ascii_digit).collect();
            mantissa.trim_matches('0').len()
        };
        prop_assert_eq!(digits(&text_of(value)), digits(&format!("{value:e}")));
    }

    #[test]
    fn a_text_is_read_as_the_standard_library_reads_it(text in any_text()) {
        let std = text.parse::<f64>().ok().map(f64::to_bits);
        prop_assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), std, "{}", text);
    }

    #[test]
    fn bytes_after_a_number_do_not_change_it(
        value in any_value(), start in 0_usize..=LAST_START, rest in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let text = text_of(value);
        let mut window = [0xff; WINDOW];
        window[start..start + text.len()].copy_from_slice(text.as_bytes());
        let end = start + text.len();
        window[end] = b' ';
        window[end + 1..end + 1 + rest.len()].copy_from_slice(&rest);
        if let Some(decimal) = read_decimal(&window, start) && decimal.end == end {
            prop_assert_eq!(decimal.value.to_bits(), value.to_bits());
        }
    }
}
