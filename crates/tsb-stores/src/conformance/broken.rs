//! Tests of the suite: a correct store passes, and a store with one flaw fails a check of the
//! clause that it breaks.
//!
//! The store is a plain one with a switch per flaw ([`reference`]). A test here keeps the
//! repository's list of flaws, docs/mutations.md, complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::Durability;

use super::{Bounded, Check, CheckOutcome, Damaged, Faulty, Fixture, LossyPlace, Place, Tier, checks};
use crate::error::Result;
use crate::store::{Capabilities, Exactness, OnConflict, Store};

mod flaw;
mod reference;

use flaw::{FLAWS, Flaw};
use reference::{Disk, Options, Reference};

/// A kind of correct store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Exact and volatile; supports everything.
    Plain,
    /// Synced by a flush, persistent, with limits and a medium that can fail.
    OnDisk,
    /// Refuses equal timestamps, late samples and special values; does not resample.
    Strict,
    /// Keeps both of two samples with equal timestamps.
    Both,
    /// Keeps values as 32-bit floats.
    Floats,
    /// Keeps three decimals.
    Rounded,
    /// Keeps eleven significant digits.
    Digits,
    /// Hides a write from the first reader after it.
    Slow,
    /// Accepts samples, and cannot be read.
    Mute,
    /// Keeps whole seconds.
    Seconds,
    /// Drops samples older than five minutes.
    Forgetful,
}

const KINDS: [Kind; 11] = [
    Kind::Plain,
    Kind::OnDisk,
    Kind::Strict,
    Kind::Both,
    Kind::Floats,
    Kind::Rounded,
    Kind::Digits,
    Kind::Slow,
    Kind::Mute,
    Kind::Seconds,
    Kind::Forgetful,
];

impl Kind {
    fn capabilities(self) -> Capabilities {
        let plain = Capabilities {
            query: true,
            resample: true,
            exactness: Exactness::Exact,
            duplicate: OnConflict::Accepted,
            late: OnConflict::Accepted,
            resolution_ns: 1,
            special_values: true,
            persistent: false,
            retention_ns: (self == Self::Forgetful).then_some(300_000_000_000),
            ..Capabilities::new(Durability::Volatile, Durability::Volatile)
        };
        match self {
            Self::Plain | Self::Forgetful => plain,
            Self::OnDisk => Capabilities {
                reaches: Durability::Synced,
                persistent: true,
                ..plain
            },
            Self::Strict => Capabilities {
                resample: false,
                duplicate: OnConflict::Rejected,
                late: OnConflict::Rejected,
                special_values: false,
                ..plain
            },
            Self::Both => Capabilities {
                duplicate: OnConflict::KeptBoth,
                ..plain
            },
            Self::Floats => Capabilities {
                exactness: Exactness::Float32,
                ..plain
            },
            Self::Rounded => Capabilities {
                exactness: Exactness::Decimals(3),
                ..plain
            },
            Self::Digits => Capabilities {
                exactness: Exactness::Significant(11),
                ..plain
            },
            Self::Slow => Capabilities {
                visibility_delay_ms: 2_000,
                ..plain
            },
            Self::Mute => Capabilities {
                query: false,
                resample: false,
                ..plain
            },
            Self::Seconds => Capabilities {
                resolution_ns: 1_000_000_000,
                ..plain
            },
        }
    }
}

/// A reference store, correct or with one flaw.
#[derive(Clone, Copy, Debug)]
struct ReferenceFixture {
    kind: Kind,
    flaw: Option<Flaw>,
}

impl ReferenceFixture {
    fn open(self, disk: &Arc<Disk>, options: Options) -> Result<Reference> {
        Reference::open(self.flaw, options, Arc::clone(disk))
    }

    fn options(self) -> Options {
        Options {
            capabilities: self.kind.capabilities(),
            max_series: usize::MAX,
            max_samples: usize::MAX,
        }
    }
}

impl Fixture for ReferenceFixture {
    fn name(&self) -> String {
        format!("{:?}", self.kind).to_lowercase()
    }

    fn place(&self) -> Result<Box<dyn Place>> {
        Ok(Box::new(ReferencePlace {
            fixture: *self,
            disk: Arc::default(),
        }))
    }

    fn bounded(&self) -> Result<Option<Bounded>> {
        let options = Options {
            max_series: 10,
            max_samples: 1_000,
            ..self.options()
        };
        let store = Box::new(self.open(&Arc::default(), options)?);
        let bounded = Bounded {
            store,
            max_series: 10,
            fills_up: true,
        };
        Ok((self.kind == Kind::OnDisk).then_some(bounded))
    }

    fn faulty(&self) -> Result<Option<Faulty>> {
        let disk: Arc<Disk> = Arc::default();
        let store = Box::new(self.open(&disk, self.options())?);
        let fail = Box::new(move |fails| disk.fails.store(fails, Ordering::SeqCst));
        Ok((self.kind == Kind::OnDisk).then_some(Faulty { store, fail }))
    }

    fn lossy(&self) -> Result<Option<Box<dyn LossyPlace>>> {
        let drive = ReferencePlace {
            fixture: *self,
            disk: Arc::default(),
        };
        Ok(Some(Box::new(drive)))
    }
}

struct ReferencePlace {
    fixture: ReferenceFixture,
    disk: Arc<Disk>,
}

impl Place for ReferencePlace {
    fn open(&self) -> Result<Box<dyn Store>> {
        Ok(Box::new(self.fixture.open(&self.disk, self.fixture.options())?))
    }

    fn after_damage(&self, seed: u64) -> Result<Option<Damaged>> {
        Ok(self.disk.after_damage(seed).map(|disk| Damaged {
            place: Box::new(Self {
                fixture: self.fixture,
                disk: Arc::new(disk),
            }),
            what: format!("a row is gone by seed {seed}"),
        }))
    }
}

impl LossyPlace for ReferencePlace {
    fn after_power_cut(&self, _seed: u64) -> Result<Box<dyn Place>> {
        Ok(Box::new(Self {
            fixture: self.fixture,
            disk: Arc::new(self.disk.after_power_cut()),
        }))
    }
}

/// The names of the checks that fail, with their messages.
fn failures(checks: &[Check]) -> Vec<String> {
    let failed = checks.iter().filter_map(|check| Some((check, check.run().err()?)));
    failed
        .map(|(check, what)| format!("{}: {what}", check.name()))
        .collect()
}

#[test]
fn a_correct_store_of_any_kind_passes() {
    for kind in KINDS {
        let checks = checks(ReferenceFixture { kind, flaw: None });
        assert!(checks.len() > 25, "{kind:?}: {} checks", checks.len());
        // A million samples only for the kinds that differ in how samples are read back.
        let is_wanted = |check: &Check| check.tier() == Tier::Usual || matches!(kind, Kind::Plain | Kind::OnDisk);
        let checks: Vec<Check> = checks.into_iter().filter(is_wanted).collect();
        assert_eq!(failures(&checks), Vec::<String>::new());
    }
}

#[test]
fn every_clause_has_a_check_and_every_check_is_run_for_some_kind() {
    let run: Vec<Check> = KINDS
        .into_iter()
        .flat_map(|kind| checks(ReferenceFixture { kind, flaw: None }))
        .collect();
    for clause in 1..=11 {
        assert!(run.iter().any(|check| check.clause() == clause), "clause {clause}");
    }
    let of_rows = [super::cases::consolidated::CASES, super::cases::slots::CASES];
    let consolidated: Vec<&str> = of_rows.into_iter().flatten().map(|case| case.name).collect();
    for case in super::cases::all() {
        // Checks that apply only to the ring, or to stores of consolidated rows or slots.
        let elsewhere = case.name == "c6_a_slot_keeps_its_last_write" || consolidated.contains(&case.name);
        assert!(
            elsewhere || run.iter().any(|check| check.name().ends_with(case.name)),
            "{}",
            case.name
        );
    }
}

#[test]
fn every_flaw_fails_a_check_of_its_clause() {
    let mut unseen = Vec::new();
    for &(flaw, kind, clause, _) in FLAWS {
        let of_clause = checks(ReferenceFixture { kind, flaw: Some(flaw) })
            .into_iter()
            .filter(|check| check.clause() == clause)
            .filter(|check| check.tier() == Tier::Usual || flaw == Flaw::LosesOneOfAHundredThousand);
        if !of_clause.into_iter().any(|check| check.run().is_err()) {
            unseen.push(flaw);
        }
    }
    assert_eq!(unseen, Vec::<Flaw>::new());
}

#[test]
fn every_clause_is_broken_somewhere_and_the_list_is_written_down() {
    for clause in 1..=11 {
        assert!(FLAWS.iter().any(|(.., broken, _)| *broken == clause), "clause {clause}");
    }
    // docs/mutations.md is part of the repository, not of the package.
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("xtask").is_dir() {
        return;
    }
    let page = std::fs::read_to_string(root.join("docs/mutations.md")).unwrap();
    for (flaw, _, clause, what) in FLAWS {
        let line = format!("| {clause} | `{flaw:?}` | {what} |");
        assert!(page.contains(&line), "docs/mutations.md lacks the line\n{line}");
    }
}

#[test]
fn a_check_that_cannot_be_shown_says_so_and_a_store_that_does_not_open_fails() {
    let flush = checks(ReferenceFixture {
        kind: Kind::Plain,
        flaw: None,
    });
    let flush = flush
        .iter()
        .find(|check| check.name().ends_with("c9_a_failed_flush_poisons"))
        .unwrap();
    assert!(matches!(flush.run(), Ok(CheckOutcome::NotShown(why)) if why.contains("medium")));
    let is_first = AtomicBool::new(true);
    let none = super::Fresh::new("none", move || -> Result<crate::null::NullStore> {
        is_first.store(false, Ordering::Relaxed);
        Err(crate::Error::Closed)
    });
    let checks = checks(none);
    assert_eq!(checks.len(), 1);
    assert_eq!(checks[0].name(), "none::c0_opens");
    assert!(checks[0].run().unwrap_err().contains("store is closed"));
}
