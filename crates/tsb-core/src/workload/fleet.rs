//! Fleets: the hosts, the series of each host, and the value models of the series.
//!
//! A fleet is data: a TOML file of series families. The built-in fleets are files of the same
//! format (in `fleets/`), to be copied and edited. `docs/workloads.md` describes the format.

mod value_model_spec;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use value_model_spec::{Between, Pick, ValueModelSpec};

use super::error::WorkloadError;
use super::trace::TraceSource;

/// The built-in fleets.
const BUILTIN: [(&str, &str); 5] = [
    ("mix", include_str!("fleets/mix.toml")),
    ("kstat", include_str!("fleets/kstat.toml")),
    ("heartbeat", include_str!("fleets/heartbeat.toml")),
    ("gauges", include_str!("fleets/gauges.toml")),
    ("counters", include_str!("fleets/counters.toml")),
];

/// The fleet to simulate. As text: its name, `shape:SHAPE` for a single shape, or `trace:FILE` for
/// a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FleetSpec {
    /// 35 % constant, 20 % repeated, 25 % counters, 15 % integer walks, 5 % walks with
    /// two decimals: the fleet that the size and speed figures of this project use.
    Mix,
    /// Kernel statistics of hosts and zones: the DalmatinerDB production feed.
    Kstat,
    /// Application instances reported by their hosts every ten seconds: HM9000's feed.
    Heartbeat,
    /// Gauges of five shapes.
    Gauges,
    /// Counters with resets, slow and fast.
    Counters,
    /// Every series of one shape.
    Shape(Shape),
    /// A recording, replayed: `trace:FILE` as text.
    Trace(TraceSource),
    /// The contents of a user's fleet file, so that a plan needs no other file.
    File(Box<FleetFile>),
}

/// Value shapes that differ in how well codecs compress them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Milliseconds since an epoch: a linear increase with a little noise.
    TimestampLike,
    /// Increases, and is reset to 0 when its process restarts.
    CounterWithResets,
    /// A random walk between bounds, with two decimals.
    GaugeWalk,
    /// A constant value with rare outliers.
    NearConstant,
    /// Multiples of a large number.
    GcdFriendly,
    /// One of a few levels.
    LowCardinality,
}

impl Shape {
    /// Every shape with its name.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::TimestampLike, "timestamp_like"),
        (Self::CounterWithResets, "counter_with_resets"),
        (Self::GaugeWalk, "gauge_walk"),
        (Self::NearConstant, "near_constant"),
        (Self::GcdFriendly, "gcd_friendly"),
        (Self::LowCardinality, "low_cardinality"),
    ];

    /// Its name, which is also the name of its family in the fleet files.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(shape, _)| *shape == self)
            .map_or("", |(_, name)| name)
    }
}

impl FleetSpec {
    /// Parses a fleet file.
    ///
    /// # Errors
    /// Names the line and the field that is wrong.
    pub fn from_toml(text: &str) -> Result<Self, WorkloadError> {
        Ok(Self::File(Box::new(FleetFile::parse(text)?)))
    }

    /// The definition of the fleet.
    ///
    /// # Errors
    /// For a recording, which has no fleet file, and for an invalid file of the user.
    pub fn definition(&self) -> Result<FleetFile, WorkloadError> {
        match self {
            Self::Mix => FleetFile::builtin("mix"),
            Self::Kstat => FleetFile::builtin("kstat"),
            Self::Heartbeat => FleetFile::builtin("heartbeat"),
            Self::Gauges => FleetFile::builtin("gauges"),
            Self::Counters => FleetFile::builtin("counters"),
            Self::Shape(shape) => FleetFile::of_shape(*shape),
            Self::Trace(_) => Err(WorkloadError::invalid("fleet", "a trace has no fleet file")),
            Self::File(file) => {
                file.check()?;
                Ok((**file).clone())
            }
        }
    }

    /// The TOML of a built-in fleet, for copying and editing.
    pub fn builtin_toml(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }
}

impl fmt::Display for FleetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mix => f.write_str("mix"),
            Self::Kstat => f.write_str("kstat"),
            Self::Heartbeat => f.write_str("heartbeat"),
            Self::Gauges => f.write_str("gauges"),
            Self::Counters => f.write_str("counters"),
            Self::Shape(shape) => write!(f, "shape:{}", shape.name()),
            Self::Trace(source) => write!(f, "trace:{source}"),
            Self::File(file) => f.write_str(&file.fleet),
        }
    }
}

impl FromStr for FleetSpec {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, WorkloadError> {
        if let Some(path) = name.strip_prefix("trace:").filter(|path| !path.is_empty()) {
            return path.parse().map(Self::Trace);
        }
        let shape = |name: &str| {
            Shape::ALL
                .iter()
                .find(|(_, known)| *known == name)
                .map(|(shape, _)| *shape)
        };
        let found = match name {
            "mix" => Some(Self::Mix),
            "kstat" => Some(Self::Kstat),
            "heartbeat" => Some(Self::Heartbeat),
            "gauges" => Some(Self::Gauges),
            "counters" => Some(Self::Counters),
            _ => name.strip_prefix("shape:").and_then(shape).map(Self::Shape),
        };
        found.ok_or_else(|| {
            let fleets = BUILTIN.iter().map(|(name, _)| (*name).to_owned());
            let shapes = Shape::ALL
                .iter()
                .map(|(_, name)| format!("shape:{name}"))
                .chain(["trace:FILE".to_owned()]);
            WorkloadError::UnknownFleet {
                name: name.to_owned(),
                known: fleets.chain(shapes).collect::<Vec<_>>().join(", "),
            }
        })
    }
}

/// The contents of a fleet file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// The fleet's name.
    pub fleet: String,
    /// A one-sentence description.
    #[serde(default)]
    pub about: String,
    /// Number of series alive at the start, unless the spec overrides it.
    pub series: usize,
    /// Milliseconds between two samples of a series.
    pub interval_ms: u64,
    /// How series are distributed over hosts.
    pub host: HostShape,
    /// Parts of a host (zones, threads, disks). If empty, series belong to the host itself, and
    /// each is assigned to a family at random by `share`.
    #[serde(default, rename = "scope", skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
    /// The families.
    #[serde(rename = "family")]
    pub families: Vec<Family>,
}

/// How series are distributed over hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostShape {
    /// Number of series on a full host.
    pub series: u32,
    /// Minimum number of hosts; a small number of series is spread evenly over them.
    #[serde(default = "one")]
    pub at_least: u32,
    /// Whether hosts are filled evenly. Otherwise each is filled completely, and the last gets the
    /// rest.
    #[serde(default)]
    pub even: bool,
    /// A host with more series than this sends its tick in several messages; absent: in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u32>,
    /// Phases are whole multiples of this many milliseconds; 0: any nanosecond.
    #[serde(default)]
    pub phase_step_ms: u64,
    /// Template of host names; `docs/workloads.md` lists the placeholders.
    #[serde(default = "default_host_name")]
    pub name: String,
}

const fn one() -> u32 {
    1
}

fn default_host_name() -> String {
    "host{host}".to_owned()
}

/// A part of a host that occurs several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Its name: the label of its instances, and the value of a family's `per`.
    pub name: String,
    /// Number per host; absent: as many as are needed to fill the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Template of the instances' names.
    pub instance: String,
}

/// Series of the same kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The prefix of the keys' names; where series are drawn by share, the template of the whole
    /// name.
    pub name: String,
    /// The shape or kind, for messages and for `share` fleets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Share of the series in this family, relative to the other shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The scope whose instances each have these series; `host` means the host itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The value model of a family that is drawn by share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<ValueModelSpec>,
    /// The keys of a family that is laid out by scope, with their value models.
    #[serde(default, rename = "key", skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<KeySet>,
}

/// Keys of a family with a common value model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySet {
    /// The last part of each name.
    pub names: Vec<String>,
    /// The value model.
    pub law: ValueModelSpec,
}

impl FleetFile {
    /// Parses and checks a fleet file.
    ///
    /// # Errors
    /// Names the line and the field that is wrong.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let file: Self = toml::from_str(text).map_err(|error| WorkloadError::FleetFile {
            what: error.to_string().trim_end().to_owned(),
        })?;
        file.check()?;
        Ok(file)
    }

    fn builtin(name: &str) -> Result<Self, WorkloadError> {
        Self::parse(FleetSpec::builtin_toml(name).unwrap_or_default())
    }

    fn of_shape(shape: Shape) -> Result<Self, WorkloadError> {
        let name = if shape == Shape::CounterWithResets {
            "counters"
        } else {
            "gauges"
        };
        let mut file = Self::builtin(name)?;
        file.families.retain(|family| family.kind == shape.name());
        file.fleet = format!("shape:{}", shape.name());
        Ok(file)
    }

    /// Whether series are drawn by share, as opposed to laid out by scope.
    pub(crate) fn by_share(&self) -> bool {
        self.families.iter().any(|family| family.share.is_some())
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let invalid = |field: &str, what: &str| Err(WorkloadError::invalid(field, what));
        if self.series == 0 {
            return invalid("series", "must be at least 1");
        }
        if self.interval_ms == 0 || self.interval_ms > 366 * 86_400_000 {
            return invalid("interval_ms", "must be from 1 ms to a year");
        }
        if self.host.series == 0 || self.host.at_least == 0 || self.host.message == Some(0) {
            return invalid("host", "series, at_least and message must be at least 1");
        }
        if self.families.is_empty() || self.families.len() > 4096 {
            return invalid("family", "there must be from 1 to 4096 families");
        }
        for scope in &self.scopes {
            if scope.count == Some(0) || scope.name == "host" {
                return invalid("scope", "count must be at least 1, and \"host\" is taken");
            }
        }
        let fills = self.scopes.iter().filter(|scope| scope.count.is_none()).count();
        if fills > 1 {
            return invalid("scope", "only one scope can fill the host (have no count)");
        }
        self.families.iter().try_for_each(|family| self.check_family(family))?;
        if !self.by_share() && fills == 0 {
            return invalid("scope", "one scope must fill the host (have no count)");
        }
        if !self.by_share() && self.series_per(None) == 0 {
            return invalid("family", "the scope that fills the host has no series");
        }
        Ok(())
    }

    /// Number of series per instance of a scope; `None`: of the scope that fills the host.
    pub(crate) fn series_per(&self, scope: Option<&str>) -> usize {
        let fill = self.scopes.iter().find(|scope| scope.count.is_none());
        let wanted = scope.or(fill.map(|scope| scope.name.as_str()));
        let families = self.families.iter().filter(|family| family.per.as_deref() == wanted);
        families
            .flat_map(|family| &family.keys)
            .map(|keys| keys.names.len())
            .sum()
    }

    fn check_family(&self, family: &Family) -> Result<(), WorkloadError> {
        let field = format!("family {:?}", family.name);
        let invalid = |what: &str| Err(WorkloadError::invalid(&field, what));
        if self.by_share() {
            let (Some(share), Some(law)) = (family.share, &family.law) else {
                return invalid("has no share or no law, and other families have a share");
            };
            if family.per.is_some() || !family.keys.is_empty() {
                return invalid("has a share, so it can have neither per nor keys");
            }
            if !(share.is_finite() && share > 0.0) {
                return invalid("share must be above 0");
            }
            return law.check(&field);
        }
        let Some(per) = &family.per else {
            return invalid("needs a share and a law, or per and keys");
        };
        if per != "host" && !self.scopes.iter().any(|scope| &scope.name == per) {
            return invalid("per names no scope");
        }
        if family.law.is_some() || family.keys.is_empty() || family.keys.iter().any(|keys| keys.names.is_empty()) {
            return invalid("is per scope, so it needs keys, each with names and a law");
        }
        family.keys.iter().try_for_each(|keys| keys.law.check(&field))
    }
}
