//! The whole generator as a program: writes new values of the `mix` fleet as Graphite lines to
//! standard output, as fast as one thread can.
//!
//! `cargo run --release -p tsb-bench --example generate_text -- SAMPLES >/dev/null`; without a
//! number it writes one tick of one host. `cargo xtask peers` compares it with generators of
//! other projects. It does not pace: `tsb emit` sends on schedule.

use std::error::Error;
use std::io::Write;

use tsb_core::Timestamp;
use tsb_core::wire::Protocol;
use tsb_core::workload::{FleetSpec, Workload, WorkloadSpec};

/// Approximate bytes per write.
const PIECE_BYTES: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let workload = Workload::new(&WorkloadSpec::new(FleetSpec::Mix, 1))?;
    let groups = 0..workload.groups().len();
    let host = workload.groups().first().map_or(0, |group| u64::from(group.len));
    let wanted: u64 = std::env::args().nth(1).map_or(Ok(host), |number| number.parse())?;
    let mut generator = workload.generator(groups.clone(), Timestamp::from_secs(1_700_000_000));
    let mut encoder = Protocol::Graphite.encoder(workload.catalog())?;
    let mut out = std::io::stdout().lock();
    let mut piece = Vec::with_capacity(2 * PIECE_BYTES);
    let mut written = 0;
    let operations = (0..).flat_map(|tick| groups.clone().map(move |group| (group, tick)));
    for (group, tick) in operations {
        if written >= wanted {
            break;
        }
        let batch = generator.operation(group, tick);
        written += batch.len() as u64;
        encoder.encode(&batch, &mut piece);
        if piece.len() >= PIECE_BYTES {
            out.write_all(&piece)?;
            piece.clear();
        }
    }
    out.write_all(&piece)?;
    Ok(out.flush()?)
}
