//! The fuzz targets, one entry each.
//!
//! The paths are spelled out because a test includes this file from elsewhere.

#[path = "targets/codec.rs"]
mod codec;
#[path = "targets/dalmatiner.rs"]
mod dalmatiner;
#[path = "targets/fleet.rs"]
mod fleet;
#[path = "targets/graphite.rs"]
mod graphite;
#[path = "targets/http.rs"]
mod http;
#[path = "targets/influx.rs"]
mod influx;
#[path = "targets/kairosdb.rs"]
mod kairosdb;
#[path = "targets/pickle.rs"]
mod pickle;
#[path = "targets/protobuf.rs"]
mod protobuf;
#[path = "targets/put.rs"]
mod put;
#[path = "targets/rrdcached.rs"]
mod rrdcached;
#[path = "targets/statsd.rs"]
mod statsd;
#[path = "targets/trace.rs"]
mod trace;
#[path = "targets/tsb.rs"]
mod tsb;
#[path = "targets/tsb_datagram.rs"]
mod tsb_datagram;

/// A parser of untrusted bytes. `check` panics if a guarantee is violated.
#[derive(Debug)]
pub(crate) struct Target {
    /// Also the directory of its corpus.
    pub(crate) name: &'static str,
    /// Parses one input and asserts the guarantees.
    pub(crate) check: fn(&[u8]),
}

/// All targets. A new one needs an entry here and a directory in `fixtures/fuzz`.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "graphite",
        check: graphite::check,
    },
    Target {
        name: "tsb",
        check: tsb::check,
    },
    Target {
        name: "dalmatiner-2014",
        check: dalmatiner::of_2014,
    },
    Target {
        name: "dalmatiner-stream",
        check: dalmatiner::stream,
    },
    Target {
        name: "wire-influx",
        check: influx::check,
    },
    Target {
        name: "put",
        check: put::check,
    },
    Target {
        name: "http",
        check: http::check,
    },
    Target {
        name: "hawkular",
        check: http::hawkular,
    },
    Target {
        name: "kairosdb-json",
        check: kairosdb::check,
    },
    Target {
        name: "pickle",
        check: pickle::check,
    },
    Target {
        name: "remote-write",
        check: protobuf::remote_write,
    },
    Target {
        name: "otlp",
        check: protobuf::otlp,
    },
    Target {
        name: "rrdcached",
        check: rrdcached::check,
    },
    Target {
        name: "statsd",
        check: statsd::check,
    },
    Target {
        name: "tsb-datagram",
        check: tsb_datagram::check,
    },
    Target {
        name: "trace",
        check: trace::file,
    },
    Target {
        name: "influx",
        check: trace::influx,
    },
    Target {
        name: "prometheus",
        check: trace::prometheus,
    },
    Target {
        name: "csv",
        check: trace::csv,
    },
    Target {
        name: "fleet",
        check: fleet::check,
    },
];
