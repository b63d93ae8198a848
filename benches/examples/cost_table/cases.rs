//! The cases of the table: store, samples per batch, length.

use std::path::{Path, PathBuf};

use tsb_core::workload::{BatchMode, FleetSpec, WorkloadSpec};

/// A store with batches of one size.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The store's name in the table.
    pub(crate) name: &'static str,
    /// The store spec; `@` stands for the batch size, `#` for the number of the run.
    spec: String,
    /// Samples per batch: 1, 54 (a host) or all series.
    pub(crate) batch: u32,
    /// Series of the fleet.
    pub(crate) series: u32,
    /// Ticks per run.
    pub(crate) ticks: u64,
    /// Parent of the folders of all runs; contains nothing else.
    files: Option<PathBuf>,
}

impl Case {
    /// The store spec of a run.
    pub(crate) fn spec(&self, run: usize) -> String {
        self.spec.replace('#', &run.to_string())
    }

    /// The same with few series and ticks, for a quick look.
    pub(crate) fn small(self) -> Self {
        Self {
            series: self.series.min(540),
            batch: self.batch.min(540),
            ticks: 3,
            ..self
        }
    }

    /// The workload of both measurements.
    pub(crate) fn workload(&self) -> WorkloadSpec {
        WorkloadSpec {
            series: Some(self.series as usize),
            batch: self.mode(),
            ..WorkloadSpec::new(FleetSpec::Mix, 1)
        }
    }

    /// The value for `--batch`.
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

    /// Creates the folder of a run. Folders of earlier runs are kept until the end: when ext4
    /// creates a file it scans past every inode freed within the last minutes, which took most
    /// of a run's CPU time.
    pub(crate) fn prepare(&self, run: usize) {
        if let Some(files) = &self.files {
            std::fs::create_dir_all(files.join(format!("{}-{run}", self.batch))).expect("a folder for the store");
        }
    }

    /// Removes the files of all runs.
    pub(crate) fn clear(&self) {
        if let Some(files) = &self.files {
            let _ = std::fs::remove_dir_all(files);
        }
    }
}

/// Series of the whole fleet.
const FLEET: u32 = 54_000;

/// Three cases of a store: samples per batch, series of the fleet, ticks per run.
type Batches = [(u32, u32, u64); 3];

/// All cases in order; MongoDB's only with an address.
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
