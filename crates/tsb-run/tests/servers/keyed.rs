//! Conformance of the clients of keys, through the bridge: etcd by both of its interfaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_remote::Address;
use tsb_remote::etcd::{EtcdOptions, open_keyed, open_keyed_v2};
use tsb_stores::Result;
use tsb_stores::conformance::libtest_mimic::Trial;
use tsb_stores::keyed::KeyedStore;
use tsb_stores::keyed::conformance::{self, KeyedFixture, KeyedPlace};

use crate::places::ETCD;

/// A cluster, and a way to speak to it.
struct Server {
    name: &'static str,
    /// It holds the spec, as `cargo xtask servers status` shows it.
    variable: &'static str,
    open: Open,
    options: EtcdOptions,
    places: AtomicU32,
}

type Open = fn(&Address, &EtcdOptions) -> Result<Box<dyn KeyedStore>>;

/// A prefix.
struct Prefix {
    address: Address,
    open: Open,
    options: EtcdOptions,
    clock: Arc<MonotonicClock>,
}

impl KeyedFixture for Server {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn unavailable(&self) -> Option<String> {
        ETCD.missing(self.variable)
    }

    fn place(&self) -> Result<Box<dyn KeyedPlace>> {
        let spec = std::env::var(self.variable).unwrap_or_default();
        let path = spec.split_once(':').map_or("", |(_, path)| path);
        let (address, _) = path.split_once('?').unwrap_or((path, ""));
        let number = self.places.fetch_add(1, Ordering::Relaxed);
        // Of this process: the server may have seen others.
        let place = format!("{}-{}-{number}", self.name, std::process::id());
        let hosts = address.rsplit_once('/').map_or(address, |(hosts, _)| hosts);
        Ok(Box::new(Prefix {
            address: Address::parse("etcd", "prefix", &format!("{hosts}/{place}"))?,
            open: self.open,
            options: self.options.clone(),
            clock: Arc::default(),
        }))
    }

    /// Etcd counts in seconds, and no lease lasts for less than two.
    fn ttl_ns(&self) -> u64 {
        2 * SECOND_NS
    }
}

impl KeyedPlace for Prefix {
    fn open(&self) -> Result<Box<dyn KeyedStore>> {
        (self.open)(&self.address, &self.options)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::<MonotonicClock>::clone(&self.clock)
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let v3: Open = |address, options| Ok(Box::new(open_keyed(address, options)?));
    let v2: Open = |address, options| Ok(Box::new(open_keyed_v2(address, options)?));
    // Of many checks at once some wait for the others.
    let options = EtcdOptions {
        timeout: Duration::from_mins(1),
        ..EtcdOptions::default()
    };
    // Few operations, so that puts are cut.
    let cut = EtcdOptions {
        operations: 7,
        parallel: 3,
        ..options.clone()
    };
    let kinds = [
        ("keyed-etcd", "TSB_TEST_ETCD", v3, options.clone()),
        ("keyed-etcd-cut", "TSB_TEST_ETCD", v3, cut),
        ("keyed-etcd-three", "TSB_TEST_ETCD_THREE", v3, options.clone()),
        ("keyed-etcd-v2", "TSB_TEST_ETCD", v2, options.clone()),
        ("keyed-etcd-v2-three", "TSB_TEST_ETCD_THREE", v2, options),
    ];
    let servers = kinds.map(|(name, variable, open, options)| Server {
        name,
        variable,
        open,
        options,
        places: AtomicU32::new(0),
    });
    servers.into_iter().flat_map(conformance::trials).collect()
}
