//! The file-based stores under test, each with the durability that it promises, and the samples
//! that they are given.

use std::path::Path;

/// Series of a place.
pub(super) const SERIES: u64 = 4;
/// The time of the first tick, in seconds; the others follow by one each.
pub(super) const START_S: u64 = 1_700_000_000;

/// The value of a series at a tick: exact in every store, and another one everywhere.
pub(super) const fn value(series: u64, tick: u64) -> u64 {
    tick * SERIES + series
}

/// How samples reach the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Influx,
    Rrdcached,
}

/// What is left of acknowledged samples after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guarantee {
    /// All of them.
    All,
    /// All but this many ticks before the fault, which the level of the ack does not cover.
    AllBut(u64),
    /// No promise: nothing was synced.
    Nothing,
}

/// A store with its options, a place for it, and what its level promises.
#[derive(Debug)]
pub(super) struct StoreUnderTest {
    pub(super) name: &'static str,
    /// With `{}` for the root of a place.
    spec: &'static str,
    /// What reads it when all is written, the same way.
    inner: &'static str,
    pub(super) wire: Wire,
    /// After the process was killed.
    pub(super) after_kill: Guarantee,
    /// After the power went.
    pub(super) after_cut: Guarantee,
    /// Files by the end of their names whose format cannot show that samples are missing or
    /// changed, as its page in docs/formats says.
    pub(super) blind: &'static [&'static str],
    /// Files by the end of their names that need their writes in order, and whose format cannot
    /// show that they were not.
    pub(super) unordered: Option<&'static str>,
    /// The first row of an RRD file is of a step that began before the first sample.
    pub(super) skips_first: bool,
}

impl StoreUnderTest {
    /// Whether damage to a file of this name may go unseen until `tsb verify` compares.
    pub(super) fn is_blind(&self, name: &str) -> bool {
        self.blind.iter().any(|end| name.ends_with(end))
    }

    /// The spec of a place.
    pub(super) fn spec(&self, root: &Path) -> String {
        self.spec.replace("{}", &root.to_string_lossy())
    }

    /// The spec that reads it afterwards.
    pub(super) fn inner(&self, root: &Path) -> String {
        self.inner.replace("{}", &root.to_string_lossy())
    }

    /// The address to listen on.
    pub(super) fn listen(&self) -> &'static str {
        match self.wire {
            Wire::Influx => "influx+http://127.0.0.1:0",
            Wire::Rrdcached => "rrdcached+tcp://127.0.0.1:0",
        }
    }

    /// The key of a series, as `tsb query` reads it.
    pub(super) fn key(&self, series: u64) -> String {
        match self.wire {
            Wire::Influx => format!("s{series}{{_field=v}}"),
            Wire::Rrdcached => format!("s{series}"),
        }
    }
}

const SQLITE: StoreUnderTest = StoreUnderTest {
    name: "sqlite-ticks",
    spec: "sqlite:{}/m.db?tail=20&checkpoint=64KiB",
    inner: "sqlite:{}/m.db?tail=20&checkpoint=64KiB",
    wire: Wire::Influx,
    after_kill: Guarantee::All,
    after_cut: Guarantee::All,
    // A page without a checksum; a database that is gone is a new one.
    blind: &["m.db"],
    unordered: None,
    skips_first: false,
};

const CACHE: StoreUnderTest = StoreUnderTest {
    name: "cache-rrd-group",
    spec: "write-cache+rrd:{}/r?step=1s&heartbeat=100s&archives=average:1:2000&max_open=0&write-cache.journal={}/j\
           &write-cache.sync=group&write-cache.segment=4KiB&write-cache.timeout=20ms&write-cache.flush=40ms\
           &write-cache.threads=1",
    inner: "rrd:{}/r?step=1s&heartbeat=100s&archives=average:1:2000",
    blind: &[".rrd"],
    unordered: Some(".rrd"),
    skips_first: true,
    ..SQLITE
};

/// Every store with files, by the options that change what is written when.
pub(super) const SUBJECTS: &[StoreUnderTest] = &[
    SQLITE,
    StoreUnderTest {
        name: "sqlite-rows",
        spec: "sqlite:{}/m.db?layout=rows&checkpoint=64KiB",
        inner: "sqlite:{}/m.db?layout=rows",
        ..SQLITE
    },
    StoreUnderTest {
        name: "sqlite-mohawk",
        spec: "sqlite:{}/m.db?layout=mohawk",
        inner: "sqlite:{}/m.db?layout=mohawk",
        ..SQLITE
    },
    StoreUnderTest {
        name: "sqlite-interval",
        spec: "sqlite:{}/m.db?tail=20&checkpoint=64KiB&commit=3s",
        // Timestamps are a second apart, and a commit holds those of three.
        after_kill: Guarantee::AllBut(4),
        after_cut: Guarantee::AllBut(4),
        ..SQLITE
    },
    StoreUnderTest {
        name: "sqlite-normal",
        spec: "sqlite:{}/m.db?tail=20&checkpoint=64KiB&synchronous=normal",
        after_cut: Guarantee::Nothing,
        ..SQLITE
    },
    StoreUnderTest {
        name: "rrd",
        spec: "rrd:{}/r?step=1s&heartbeat=100s&archives=average:1:2000&max_open=0",
        after_cut: Guarantee::Nothing,
        ..CACHE
    },
    CACHE,
    StoreUnderTest {
        name: "cache-rrd-each",
        spec: "write-cache+rrd:{}/r?step=1s&heartbeat=100s&archives=average:1:2000&max_open=0&write-cache.journal={}/j\
               &write-cache.sync=each&write-cache.segment=4KiB&write-cache.timeout=1h&write-cache.threads=1",
        ..CACHE
    },
    StoreUnderTest {
        name: "cache-rrd-none",
        spec: "write-cache+rrd:{}/r?step=1s&heartbeat=100s&archives=average:1:2000&max_open=0&write-cache.journal={}/j\
               &write-cache.sync=none&write-cache.segment=4KiB&write-cache.timeout=20ms&write-cache.flush=40ms\
               &write-cache.threads=1",
        after_cut: Guarantee::Nothing,
        ..CACHE
    },
    StoreUnderTest {
        name: "cache-sqlite-group",
        spec: "write-cache+sqlite:{}/m.db?tail=20&checkpoint=64KiB&write-cache.journal={}/j\
               &write-cache.sync=group&write-cache.segment=4KiB&write-cache.timeout=20ms&write-cache.flush=40ms\
               &write-cache.threads=1",
        ..SQLITE
    },
    StoreUnderTest {
        name: "rrdcached-group",
        spec: "write-cache+rrd:{}/r?max_open=0&write-cache.journal={}/j&write-cache.sync=group\
               &write-cache.segment=4KiB&write-cache.timeout=20ms&write-cache.flush=40ms&write-cache.threads=1\
               &write-cache.checkpoint={}/known",
        inner: "rrd:{}/r",
        wire: Wire::Rrdcached,
        skips_first: false,
        ..CACHE
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_places_lie_below_their_root() {
        let mut names: Vec<&str> = SUBJECTS.iter().map(|subject| subject.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
        for subject in SUBJECTS {
            let spec = subject.spec(Path::new("/place"));
            assert!(spec.contains(":/place/") && !spec.contains("{}"), "{spec}");
            assert!(subject.inner(Path::new("/place")).contains(":/place/"));
        }
    }

    #[test]
    fn no_two_samples_have_one_value() {
        let all = (0..100).flat_map(|tick| (0..SERIES).map(move |series| value(series, tick)));
        let mut all: Vec<u64> = all.collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100 * SERIES as usize);
    }
}
