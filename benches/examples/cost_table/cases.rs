//! The rows: which store, with how many samples a batch, for how long.

use std::path::{Path, PathBuf};

use tsb_core::workload::{BatchMode, FleetSpec, WorkloadSpec};

/// A store with batches of one size.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What the store is called in the table.
    pub(crate) name: &'static str,
    /// The text that opens it; `@` stands for the batch, `#` for the number of the run.
    spec: String,
    /// Samples in a batch: 1, 54 (a host) or all series.
    pub(crate) batch: u32,
    /// Series of the fleet.
    pub(crate) series: u32,
    /// Ticks of the fleet in a run.
    pub(crate) ticks: u64,
    /// The folder of each run's own folder; nothing else is in it.
    files: Option<PathBuf>,
}

impl Case {
    /// The text that opens the store of this run.
    pub(crate) fn spec(&self, run: usize) -> String {
        self.spec.replace('#', &run.to_string())
    }

    /// The same with a few series, for a look.
    pub(crate) fn small(self) -> Self {
        Self {
            series: self.series.min(540),
            batch: self.batch.min(540),
            ticks: 3,
            ..self
        }
    }

    /// The workload of both ways.
    pub(crate) fn workload(&self) -> WorkloadSpec {
        WorkloadSpec {
            series: Some(self.series as usize),
            batch: self.mode(),
            ..WorkloadSpec::new(FleetSpec::Mix, 1)
        }
    }

    /// What `--batch` is given.
    pub(crate) fn flag(&self) -> String {
        match self.mode() {
            BatchMode::Tick => "tick".to_owned(),
            _ => self.batch.to_string(),
        }
    }

    fn mode(&self) -> BatchMode {
        if self.batch == self.series {
            BatchMode::Tick
        } else {
            BatchMode::Series(self.batch)
        }
    }

    /// Makes the folder of a run. Earlier ones stay until the end: ext4 passes over every file
    /// that was deleted within the last minutes when it makes a new one, which took most of a
    /// run's CPU time.
    pub(crate) fn prepare(&self, run: usize) {
        if let Some(files) = &self.files {
            std::fs::create_dir_all(files.join(format!("{}-{run}", self.batch))).expect("a folder for the store");
        }
    }

    /// Removes what all runs left in files.
    pub(crate) fn clear(&self) {
        if let Some(files) = &self.files {
            let _ = std::fs::remove_dir_all(files);
        }
    }
}

/// Series of the whole fleet.
const FLEET: u32 = 54_000;

/// The batches of a store: samples in one, series of the fleet, ticks of a run.
type Batches = [(u32, u32, u64); 3];

/// All rows in order; those of MongoDB where there is an address.
pub(crate) fn all(folder: &Path, mongo: Option<&str>) -> Vec<Case> {
    let files = |name: &str| folder.join(name);
    let path = |name: &str| files(name).display().to_string();
    let mut stores: Vec<(&'static str, String, Option<PathBuf>, Batches)> = vec![
        (
            "null",
            "null:".to_owned(),
            None,
            [(1, FLEET, 60), (54, FLEET, 1_200), (FLEET, FLEET, 3_600)],
        ),
        (
            "memory",
            "memory:".to_owned(),
            None,
            [(1, FLEET, 40), (54, FLEET, 600), (FLEET, FLEET, 1_800)],
        ),
        (
            "sqlite",
            format!("sqlite:{}/@-#/store.db?commit=1s", path("sqlite")),
            Some(files("sqlite")),
            [(1, FLEET, 20), (54, FLEET, 400), (FLEET, FLEET, 400)],
        ),
        (
            "write-cache+rrd",
            format!("write-cache+rrd:{}/@-#?archives=average:1:600", path("rrd")),
            Some(files("rrd")),
            [(1, 5_400, 200), (54, 5_400, 200), (FLEET, FLEET, 20)],
        ),
    ];
    if let Some(address) = mongo {
        stores.push((
            "mongo",
            format!("mongo://{address}/tsb_cost_@_#"),
            None,
            [(1, 54, 100), (54, 540, 400), (FLEET, FLEET, 10)],
        ));
    }
    let mut cases = Vec::new();
    for (name, spec, files, batches) in stores {
        for (batch, series, ticks) in batches {
            cases.push(Case {
                name,
                spec: spec.replace('@', &batch.to_string()),
                batch,
                series,
                ticks,
                files: files.clone(),
            });
        }
    }
    cases
}
