//! Runs our client.

use tsb_core::{BatchBuf, Durability, SeriesId};
use tsb_run::spec;
use tsb_stores::{Refusals, Scope, Store, StoreExt, TimeRange};

use crate::Server;
use crate::cells::{GROUP, Load, time, value};
use crate::timing::{self, Measured};

/// One series in this many is read back; the server counts all samples.
const LOOKED_INTO: u32 = 97;

pub(crate) fn run(server: &Server, load: &Load) -> Measured {
    let spec = format!("mongo://{}/tsb-trial?layout={}", server.address, load.cell.layout);
    let spec = if load.cell.layout == "ticks" {
        format!("{spec}&group={GROUP}")
    } else {
        spec
    };
    let store = spec::open(&format!("{spec}&drop=1")).expect("a database of its own");
    store.define(&load.keys()).expect("fresh series");
    let workers = load.workers.iter().map(|requests| {
        let store = &*store;
        move || {
            let (mut buffer, mut refused) = (BatchBuf::new(), Refusals::new());
            for request in requests {
                let batch = load.fill(request, &mut buffer);
                let ack = store.write(&batch, &mut refused).expect("a write of defined series");
                assert_eq!(ack.accepted, request.values.len(), "nothing is refused");
            }
        }
    });
    let mut measured = timing::run(server.pid, load.samples(), workers.collect());
    store.flush(Scope::All, Durability::Synced).expect("a checkpoint");
    measured.bytes = store.stats().footprint.sealed_bytes;
    store.close().expect("a server that answers");
    verify(&*spec::open(&spec).expect("what was written"), load);
    measured
}

fn verify(store: &dyn Store, load: &Load) {
    assert_eq!(store.stats().samples, load.samples(), "the server counts them");
    // Series ids belong to this opening of the store; the numbers in documents were assigned by
    // the first.
    store.define(&load.keys()).expect("the same series");
    let step = if load.cell.all_series() > 10_000 {
        LOOKED_INTO * 97
    } else {
        LOOKED_INTO
    };
    for series in (0..load.cell.all_series()).step_by(step as usize) {
        let held = store
            .samples(SeriesId(series), TimeRange::ALL)
            .expect("a defined series");
        let sent = (0..load.ticks).map(|tick| (time(tick), value(series, tick)));
        assert!(held.into_iter().eq(sent), "series {series} is as it was sent");
    }
}
