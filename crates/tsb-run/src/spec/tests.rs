//! Which specs parse, which do not, and the errors of those.

use super::*;
use proptest::prelude::*;
use tsb_core::time::ManualClock;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

fn error(text: &str) -> String {
    text.parse::<Spec>().unwrap_err().to_string()
}

#[test]
fn a_printed_spec_opens_the_same_store() {
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
        tsb_stores::Exactness::OnePerSlot(1_000_000_000)
    );
    let series = [0, 1, 2].map(|id| (SeriesId(id), SeriesKey::new(id.to_string())));
    assert!(matches!(store.define(&series), Err(Error::TooManySeries { limit: 2 })));
    store.define(&series[..2]).unwrap();
    let ack = store.write(
        &Batch::tick(SeriesId(0), Timestamp(0), &[1.0]),
        &mut tsb_stores::Refusals::new(),
    );
    assert_eq!(ack.unwrap().accepted, 1);
    assert_eq!(store.stats().footprint.head_bytes, 160);
}

#[test]
fn a_folder_of_mstore_opens_again_with_the_step_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let spec = format!("mstore:{}", folder.path().display());
    let first = open(&format!("{spec}?step=2s&points_per_file=100&cache=off")).unwrap();
    let capabilities = first.capabilities();
    assert_eq!(
        (capabilities.resolution_ns, capabilities.acknowledges),
        (2_000_000_000, Durability::Buffered)
    );
    first.close().unwrap();
    let again = open(&spec).unwrap();
    let capabilities = again.capabilities();
    assert_eq!(
        (capabilities.resolution_ns, capabilities.acknowledges),
        (2_000_000_000, Durability::Volatile)
    );
    drop(again);
    let error = open(&format!("{spec}?step=1s")).unwrap_err().to_string();
    assert!(error.contains("step=2000000000ns"), "{error}");
}

#[test]
fn a_throttle_runs_on_the_clock_it_is_given() {
    let clock = Arc::new(ManualClock::new());
    let spec: Spec = "throttle+null:?throttle.rate=1000".parse().unwrap();
    let store = spec.open_with(&(clock.clone() as Arc<dyn Clock>)).unwrap();
    store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
    let ack = store.write(
        &Batch::tick(SeriesId(0), Timestamp(0), &[1.0]),
        &mut tsb_stores::Refusals::new(),
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
fn a_store_that_is_not_built_says_which_feature_carries_it() {
    let features = [
        ("sqlite", cfg!(feature = "sqlite")),
        ("mongo", cfg!(feature = "mongo")),
        ("etcd", cfg!(feature = "etcd")),
        ("prometheus", cfg!(feature = "prometheus")),
        ("postgres", cfg!(feature = "postgres")),
        ("exec", cfg!(feature = "exec")),
        ("influx", cfg!(feature = "influx")),
        ("victoriametrics", cfg!(feature = "victoriametrics")),
        ("clickhouse", cfg!(feature = "clickhouse")),
        ("questdb", cfg!(feature = "questdb")),
        ("cassandra", cfg!(feature = "cassandra")),
        ("kairosdb", cfg!(feature = "kairosdb")),
        ("graphite", cfg!(feature = "graphite")),
        ("hawkular", cfg!(feature = "hawkular")),
        ("dalmatiner", cfg!(feature = "dalmatiner")),
    ];
    for (scheme, is_built) in features {
        let refused = format!("{scheme} is not in this build; feature {scheme} would carry it");
        let said = error(&format!("{scheme}:/x?y=z"));
        assert_eq!(said.contains(&refused), !is_built, "{said}");
    }
    let missing = known().iter().filter(|info| !info.is_built()).count();
    assert_eq!(missing, features.iter().filter(|(_, is_built)| !is_built).count());
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
        credentials: None,
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
    let default = tsb_stores::ring::RingStore::new(tsb_stores::ring::RingOptions::default()).unwrap();
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
            let again = printed.parse::<Spec>().unwrap();
            prop_assert_eq!(again.to_string(), &*printed);
            prop_assert_eq!(again, spec);
        }
    }

    #[test]
    fn no_garbage_panics(text in "\\PC{0,40}") {
        let parsed = text.parse::<Spec>();
        prop_assert!(parsed.is_err() || text.contains(':'));
    }
}

#[test]
fn a_path_is_no_address() {
    for text in ["sqlite://@", "sqlite:a//me:pw@b.db", "rrd:/d//x@y"] {
        let spec = text.parse::<Spec>();
        if let Ok(spec) = spec {
            assert_eq!(spec.to_string(), text);
        } else {
            assert!(!cfg!(feature = "sqlite") && text.starts_with("sqlite"), "{text}");
        }
    }
}

#[test]
fn rrd_options_are_read_and_judged() {
    let folder = tempfile::tempdir().unwrap();
    let spec = |options: &str| format!("rrd:{}?{options}", folder.path().display());
    let store = open(&spec("step=10s&archives=average:1:60,max:6:10&ds=counter")).unwrap();
    let tsb_stores::Exactness::Consolidated(rule) = store.capabilities().exactness else {
        panic!("{store:?} does not consolidate");
    };
    assert_eq!((rule.step_s, rule.longest_gap_s, rule.archives().count()), (10, 20, 2));
    for (options, expected) in [
        ("engine=ours", "option engine: \"ours\" is not one of native, librrd"),
        ("step=100ms", "option step: whole seconds are needed"),
        (
            "archives=sum:1:5",
            "option archives: \"sum:1:5\" is not archives such as average:1:1440,max:6:1008",
        ),
        (
            "ds=text",
            "option ds: \"text\" is not gauge, counter, derive or absolute",
        ),
    ] {
        let found = open(&spec(options)).unwrap_err().to_string();
        assert!(found.contains(expected), "{found}");
    }
    if !cfg!(feature = "librrd") {
        let found = open(&spec("engine=librrd")).unwrap_err().to_string();
        assert!(found.contains("feature librrd carries it"), "{found}");
    }
}

#[test]
fn a_write_cache_is_made_with_its_own_options_and_those_of_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let spec = format!(
        "write-cache+rrd:{path}/files?write-cache.journal={path}/journal&write-cache.sync=1s\
         &write-cache.threads=2&write-cache.timeout=60s&step=10s&archives=average:1:100"
    );
    let store = spec.parse::<Spec>().unwrap().open().unwrap();
    assert_eq!(store.to_string(), "write-cache(rrd, journal, interval)");
    assert_eq!(store.capabilities().acknowledges, Durability::Buffered);
    store.close().unwrap();
    for (spec, what) in [
        ("write-cache+memory:?write-cache.journal=/tmp/x", "keeps nothing"),
        ("write-cache+memory:?write-cache.jitter=1d", "jitter"),
        ("write-cache+memory:?write-cache.sync=often", "write-cache.sync"),
        ("write-cache+memory:?write-cache.threads=65", "threads"),
        ("rrdcached:/x", "is not unix:PATH"),
    ] {
        let error = spec.parse::<Spec>().and_then(|spec| spec.open()).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn an_option_can_be_left_out() {
    let spec: Spec = "memory:?retention=7d&max_series=5".parse().unwrap();
    assert_eq!(spec.without("retention").to_string(), "memory:?max_series=5");
    assert_eq!(spec.without("slot"), spec);
}

#[cfg(feature = "client")]
mod of_servers {
    use super::*;
    use tsb_stores::secret::Credentials;

    const SCHEME: &str = if cfg!(feature = "mongo") {
        "mongo"
    } else if cfg!(feature = "etcd") {
        "etcd"
    } else {
        "postgres"
    };

    fn spec(rest: &str) -> Spec {
        format!("{SCHEME}:{rest}").parse().unwrap()
    }

    #[test]
    fn credentials_are_taken_out_of_the_address() {
        for (rest, user, password) in [
            ("//me:hunter2@h:1/db", "me", "hunter2"),
            ("//me:hunter2@h:1,i/db?timeout=1s", "me", "hunter2"),
            ("//me:hunter%3F%40@h/db?timeout=1s", "me", "hunter?@"),
            ("//me:hunt?er2@h/db?timeout=1s", "me", "hunt?er2"),
            ("//me:hunt@er?2@h/db", "me", "hunt@er?2"),
            ("//me:hu/nt@h/db", "me", "hu/nt"),
            ("//me@h/db", "me", ""),
        ] {
            let spec = spec(rest);
            let given = spec.credentials.as_ref().unwrap();
            assert_eq!((given.user(), given.password()), (user, password), "{rest}");
            assert!(
                !spec.path().contains('@') && spec.path().ends_with("/db"),
                "{}",
                spec.path()
            );
            let shown = format!("{spec} {spec:?}");
            assert!(!shown.contains("hu") && shown.contains("//***@h"), "{shown}");
            // The printed text is parsed again, without the credentials.
            let again: Spec = spec.to_string().parse().unwrap();
            assert!(again.lacks_credentials() && !spec.lacks_credentials());
            assert_eq!(again.path(), spec.path());
        }
    }

    #[test]
    fn an_at_sign_in_an_option_is_none_of_the_address() {
        let spec = spec("//h:1/db?credentials=/etc/me@home");
        assert_eq!(
            (spec.path(), spec.option("credentials")),
            ("//h:1/db", Some("/etc/me@home"))
        );
        assert!(spec.credentials.is_none() && !spec.lacks_credentials());
    }

    #[test]
    fn unreadable_credentials_are_reported_without_any_part_of_the_password() {
        for rest in [
            "//me:12/hunter?2@h/db",
            "//me:12/x?hunter2@h/db",
            "//me:12/x?hunter=2@h/db",
            "//me:12/x?timeout=hunter2@h/db",
            "//me:hunter?2@h",
            "me:hunter2@h/db",
            "//h/db?pwd=hunter2",
            "//h/db?user=hunter2",
            "//h/db?credentials=me:hunter2",
            "//me:hunter2@h/db?credentials=/x",
        ] {
            let error = format!("{SCHEME}:{rest}").parse::<Spec>().and_then(|spec| spec.open());
            let error = error.map(|store| store.to_string()).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hunter"), "{text}");
            let typed = Typed::from(format!("{SCHEME}:{rest}"));
            let shown = format!("{typed} {typed:?}");
            assert!(!shown.contains("hunter"), "{shown}");
        }
    }

    #[test]
    fn given_credentials_are_used_where_there_are_none() {
        let credentials = Credentials::parse("me:hunter2").unwrap();
        let spec = spec("//h/db");
        assert!(spec.lacks_credentials());
        let given = spec.with_credentials(credentials);
        assert!(!given.lacks_credentials());
        assert_eq!(given.to_string(), format!("{SCHEME}://***@h/db"));
        assert!(!"memory:".parse::<Spec>().unwrap().lacks_credentials());
    }
}

#[test]
#[cfg(feature = "client")]
fn certificates_have_no_effect_without_tls_and_are_refused() {
    let takes_them = |info: &&StoreInfo| info.options.iter().any(|option| option.name == "tls_ca");
    for info in known().iter().filter(takes_them).filter(|info| info.make.is_some()) {
        let spec = format!("{}://127.0.0.1:1/place?tls_ca=/nowhere.pem", info.scheme);
        let error = open(&spec).err().map(|error| tsb_stores::error::chain(&error));
        let error = error.unwrap_or_default();
        assert!(error.contains("no effect without tls=1"), "{spec}: {error}");
    }
}
