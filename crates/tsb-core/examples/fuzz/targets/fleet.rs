//! Fuzzes fleet files: a fleet that is accepted survives serialization, and a small workload of
//! it can be planned and generated.

use tsb_core::Timestamp;
use tsb_core::workload::{FleetFile, FleetSpec, Workload, WorkloadSpec};

/// Series of the workload; a file may ask for any number.
const SERIES: usize = 200;

/// Asserts that an accepted fleet survives being part of a plan, and that a tick of each group
/// has a value for each living series.
pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(file) = FleetFile::parse(text) else { return };
    let plan = serde_json::to_string(&file).unwrap_or_default();
    let again = serde_json::from_str::<FleetFile>(&plan);
    assert!(again.is_ok_and(|again| again == file), "{plan}");
    let mut spec = WorkloadSpec::new(FleetSpec::File(Box::new(file)), 7);
    spec.series = Some(SERIES);
    let Ok(workload) = Workload::new(&spec) else { return };
    assert!(workload.catalog().len() >= SERIES);
    let mut generator = workload.generator(0..workload.groups().len(), Timestamp::from_secs(1_700_000_000));
    for group in 0..workload.groups().len() {
        let batch = generator.operation(group, 1);
        assert_eq!(batch.len(), workload.alive(group, 1) as usize);
    }
}
