//! The bytes of every fleet, as `fixtures/fingerprints.txt` has them.
//!
//! One line each: what it is, SHA-256 of keys, timestamps and values, the information in
//! a value as calculated and as estimated, and the repeat rate. A line that changes means
//! that old results cannot be compared with new ones: CHANGELOG says so under
//! **Measurement**. To write the file anew, run this test with TSB_BLESS=1.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest, Sha256};
use tsb_core::workload::{Churn, ChurnMode, Disorder, FleetSpec, Jitter, KeyForm, Shape, Workload, WorkloadSpec};
use tsb_core::{SeriesId, Timestamp};

const TICKS: u64 = 120;
const BASE: Timestamp = Timestamp::from_secs(1_700_000_000);

fn specs() -> Vec<(String, WorkloadSpec)> {
    let of = |fleet: FleetSpec, seed| WorkloadSpec {
        // A host of kstat holds everything there is from 810 series on.
        series: Some(if fleet == FleetSpec::Kstat { 1000 } else { 540 }),
        ..WorkloadSpec::new(fleet, seed)
    };
    let named = [
        FleetSpec::Mix,
        FleetSpec::Kstat,
        FleetSpec::Heartbeat,
        FleetSpec::Gauges,
        FleetSpec::Counters,
    ];
    let shapes = Shape::ALL.map(|(shape, _)| FleetSpec::Shape(shape));
    let plain = named.into_iter().chain(shapes);
    let mut specs: Vec<_> = plain.map(|fleet| (fleet.to_string(), of(fleet, 0))).collect();
    specs.push(("mix".to_owned(), of(FleetSpec::Mix, 1)));
    let labels = WorkloadSpec {
        keys: KeyForm::Labels,
        ..of(FleetSpec::Kstat, 0)
    };
    specs.push(("kstat+labels".to_owned(), labels));
    let disorder = Disorder {
        late: 0.01,
        missing: 0.01,
        duplicate: 0.01,
        out_of_order: 0.01,
        ..Disorder::default()
    };
    specs.push((
        "mix+disorder".to_owned(),
        WorkloadSpec {
            disorder,
            ..of(FleetSpec::Mix, 0)
        },
    ));
    let jitter = Jitter {
        max_ns: 500_000_000,
        step_ns: 1_000_000,
    };
    specs.push((
        "mix+jitter".to_owned(),
        WorkloadSpec {
            jitter,
            ..of(FleetSpec::Mix, 0)
        },
    ));
    let churn = Some(Churn {
        mode: ChurnMode::Steady {
            lifetime_ns: 100_000_000_000,
        },
        horizon_ns: 300_000_000_000,
        unit: 54,
    });
    specs.push((
        "mix+churn".to_owned(),
        WorkloadSpec {
            churn,
            ..of(FleetSpec::Mix, 0)
        },
    ));
    specs
}

fn line(name: &str, spec: &WorkloadSpec) -> Result<String, Box<dyn Error>> {
    let workload = Workload::new(spec)?;
    let mut hash = Sha256::new();
    let mut replay = workload.replay(BASE);
    for (id, key) in workload.catalog().keys().iter().enumerate() {
        hash.update(key.to_string().as_bytes());
        replay.series(SeriesId(id as u32), 0..TICKS, &mut |sent| {
            for (tick, at, value, _) in sent.iter() {
                hash.update(tick.to_le_bytes());
                hash.update(at.0.to_le_bytes());
                hash.update(value.to_bits().to_le_bytes());
            }
        });
    }
    let offered = workload.offered(&vec![0..TICKS; workload.groups().len()]);
    let mut line = format!(
        "{name:<28} {:>5} {:>6} {TICKS:>6} ",
        spec.seed,
        workload.catalog().len()
    );
    for byte in hash.finalize() {
        write!(line, "{byte:02x}")?;
    }
    let calculated = offered.calculated_bits.ok_or("a simulated fleet has value models")?;
    write!(
        line,
        " {calculated:>10.4} {:>10.4} {:>8.4}",
        offered.entropy_bits, offered.repeat_rate
    )?;
    Ok(line)
}

#[test]
fn every_fleet_has_the_bytes_it_always_had() -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fingerprints.txt");
    let mut text = format!(
        "# {:<26} {:>5} {:>6} {:>6} {:<64} {:>10} {:>10} {:>8}\n",
        "workload", "seed", "series", "ticks", "sha256", "calculated", "estimated", "repeats"
    );
    for (name, spec) in specs() {
        text.push_str(&line(&name, &spec)?);
        text.push('\n');
    }
    if std::env::var_os("TSB_BLESS").is_some() {
        std::fs::write(&path, &text)?;
    }
    let expected = std::fs::read_to_string(&path)?;
    for (made, known) in text.lines().zip(expected.lines()) {
        assert_eq!(made, known);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
    Ok(())
}
