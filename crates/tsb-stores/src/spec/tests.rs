//! The words of a store description: what parses, what does not, and what is said then.

use super::*;
use proptest::prelude::*;
use tsb_core::time::ManualClock;
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};

fn error(text: &str) -> String {
    text.parse::<Spec>().unwrap_err().to_string()
}

#[test]
fn what_is_written_opens_what_it_says() {
    for (text, name) in [
        ("null:", "null"),
        ("ring:", "ring"),
        ("ring:?slot=1s&retention=1h&max_bytes=1MiB&max_series=10", "ring"),
        ("throttle+null:", "throttle(null)"),
        (
            "throttle+ring:?throttle.rate=54k&slot=10s&throttle.seed=7",
            "throttle(ring)",
        ),
    ] {
        assert_eq!(open(text).unwrap().to_string(), name, "{text}");
        assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
    }
}

#[test]
fn options_reach_the_store() {
    let store = open("ring:?slot=1s&retention=10s&max_series=2").unwrap();
    assert_eq!(
        store.capabilities().exactness,
        crate::Exactness::OnePerSlot(1_000_000_000)
    );
    let series = [0, 1, 2].map(|id| (SeriesId(id), SeriesKey::new(id.to_string())));
    assert!(matches!(store.define(&series), Err(Error::TooManySeries { limit: 2 })));
    store.define(&series[..2]).unwrap();
    let ack = store.write(
        &Batch::tick(SeriesId(0), Timestamp(0), &[1.0]),
        &mut crate::Refusals::new(),
    );
    assert_eq!(ack.unwrap().accepted, 1);
    assert_eq!(store.stats().footprint.head_bytes, 160);
}

#[test]
fn a_throttle_runs_on_the_clock_it_is_given() {
    let clock = Arc::new(ManualClock::new());
    let spec: Spec = "throttle+null:?throttle.rate=1000".parse().unwrap();
    let store = spec.open_with(&(clock.clone() as Arc<dyn Clock>)).unwrap();
    store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
    let ack = store.write(
        &Batch::tick(SeriesId(0), Timestamp(0), &[1.0]),
        &mut crate::Refusals::new(),
    );
    assert_eq!(ack.unwrap().accepted, 1);
    assert_eq!(clock.now(), 1_000_000);
}

#[test]
fn a_wrong_word_is_answered_with_the_right_ones() {
    for (text, part) in [
        (
            "rnig:",
            "unknown scheme \"rnig\"; did you mean ring:? there are null:, memory:, ring:",
        ),
        ("ring", "a store is written scheme:; did you mean ring:?"),
        ("", "a store is written scheme:; there are null:"),
        ("?slot=1s", "a store is written scheme:; there are null:"),
        (":", "unknown scheme \"\""),
        (
            "trottle+ring:",
            "unknown wrapper \"trottle\"; did you mean throttle+? there are throttle+",
        ),
        (
            "throttle:",
            "throttle is a wrapper: name what it wraps, as in throttle+ring:",
        ),
        ("ring+null:", "ring is a store, not a wrapper"),
        ("throttle+throttle+ring:", "wrapper throttle is named twice"),
        ("ring:/tmp/x", "ring: takes no path, but has \"/tmp/x\""),
        ("null:?slot=1s", "null: takes no options, but has \"slot\""),
        (
            "ring:?slit=1s",
            "unknown option \"slit\"; did you mean slot? there are slot, retention, max_bytes",
        ),
        (
            "ring:?throttle.rate=1",
            "unknown option \"throttle.rate\"; there are slot",
        ),
        ("ring:?slot", "option \"slot\" has no value: write slot=..."),
        ("ring:?slot=30", "option slot: \"30\" is not a duration such as 30s, 7d"),
        (
            "ring:?max_bytes=1XB",
            "option max_bytes: \"1XB\" is not a size such as 4GiB",
        ),
        (
            "ring:?max_series=0",
            "option max_series: \"0\" is not a whole number from 1",
        ),
        ("ring:?slot=1s&slot=2s", "option slot is given twice"),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn a_store_that_is_planned_says_what_would_carry_it() {
    for scheme in [
        "sqlite",
        "mongo",
        "rrd",
        "hawkular",
        "etcd",
        "graphite",
        "kairosdb",
        "cassandra",
        "influx",
        "dalmatiner",
        "rrdcached",
    ] {
        let expected = format!("{scheme} is not in this build; feature {scheme} would carry it");
        assert!(error(&format!("{scheme}:/x?y=z")).contains(&expected), "{scheme}");
    }
    assert!(error("write-cache+ring:").contains("write-cache is not in this build"));
    let planned = known().iter().filter(|info| !info.is_built()).count();
    assert_eq!(planned, 12);
}

#[test]
fn options_that_contradict_each_other_are_refused_in_the_users_words() {
    let text = "ring:?slot=10s&retention=15s";
    let error = open(text).unwrap_err().to_string();
    assert!(error.contains(text) && error.contains("at least two slots"), "{error}");
    let error = open("throttle+null:?throttle.stall_for=1s").unwrap_err().to_string();
    assert!(error.contains("stall_every"), "{error}");
}

#[test]
fn no_credential_is_printed() {
    let error = error("mongo://me:hunter2@h/db?token=hunter2");
    assert!(
        !error.contains("hunter2") && error.contains("mongo://***@h/db?token=***"),
        "{error}"
    );
    let base = "ring:".parse::<Spec>().unwrap();
    let spec = Spec {
        path: "//me:hunter2@h".to_owned(),
        options: vec![
            ("slot".to_owned(), "1s".to_owned()),
            ("password".to_owned(), "hunter2".to_owned()),
        ],
        ..base
    };
    assert_eq!(spec.to_string(), "ring://***@h?slot=1s&password=***");
    assert_eq!(format!("{spec:?}"), "Spec(ring://***@h?slot=1s&password=***)");
}

#[test]
fn a_spec_is_serialized_as_its_text() {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error as ValueError, StrDeserializer};
    let from = |text: &'static str| {
        let text: StrDeserializer<'_, ValueError> = text.into_deserializer();
        Spec::deserialize(text)
    };
    let spec = from("throttle+ring:?slot=1s").unwrap();
    assert_eq!(
        (spec.scheme(), spec.path(), spec.option("slot")),
        ("ring", "", Some("1s"))
    );
    assert!(from("rnig:").unwrap_err().to_string().contains("did you mean ring:"));
}

#[test]
fn the_table_agrees_with_the_defaults_of_the_code() {
    let ring = open("ring:").unwrap();
    let default = crate::ring::RingStore::new(crate::ring::RingOptions::default()).unwrap();
    assert_eq!(format!("{ring:?}"), format!("{default:?}"));
    for option in known().iter().flat_map(|info| info.options) {
        assert!(
            option.default.is_none_or(|default| option.kind.check(default).is_ok()),
            "{}",
            option.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_panics_and_what_parses_prints_itself(text in "((throttle|ring|null|x)\\+)?(ring|null|sqlite|)[:?]?[a-z/@]{0,4}(\\?((slot|retention|max_series|throttle.rate)=[0-9]{0,3}[a-z]{0,2}&?){0,3})?") {
        if let Ok(spec) = text.parse::<Spec>() {
            let printed = spec.to_string();
            prop_assert_eq!(printed.parse::<Spec>().unwrap(), spec);
        }
    }

    #[test]
    fn no_garbage_panics(text in "\\PC{0,40}") {
        let parsed = text.parse::<Spec>();
        prop_assert!(parsed.is_err() || text.contains(':'));
    }
}
