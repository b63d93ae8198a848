//! The layout of a fleet: ids, keys, blocks and groups, from a fleet definition and a number of
//! series.
//!
//! Ids are dense and assigned in advance: host by host (hosts with the same interval together),
//! within a host message by message, and within a message by birth. So a group is a contiguous range
//! of ids in every mode; the series alive at the start are contiguous only within a message.

use std::ops::Range;

use super::churn;
use super::error::WorkloadError;
use super::fleet::{FleetFile, ValueModelSpec};
use super::hash::{Purpose, Stream};
use super::messages;
use super::names::{self, SeriesPosition};
use super::spec::{BatchMode, IntervalShare, MAX_SERIES, Phase, WorkloadSpec};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::SECOND_NS;

/// Series with the same birth and death and with contiguous ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) first: u32,
    pub(crate) len: u32,
    /// Ticks at which it is alive.
    pub(crate) ticks: Range<u64>,
}

/// Series that report together: the operations of a workload are (group, tick).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesGroup {
    /// The first id of the group.
    pub first: SeriesId,
    /// Number of ids, all generations of churn included.
    pub len: u32,
    /// Nanoseconds between two operations.
    pub interval_ns: u64,
    /// Due time of an operation within the interval, in nanoseconds.
    pub phase_ns: u64,
    /// Ticks at which any of its series is alive.
    pub ticks: Range<u64>,
    /// Its blocks, as a range of the workload's blocks.
    pub(crate) blocks: Range<usize>,
}

/// A fleet, laid out.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The id of series 0 in the whole fleet: 0 unless it is a part.
    pub(crate) first_series: u32,
    pub(crate) catalog: Catalog,
    /// The distinct models.
    pub(crate) models: Vec<ValueModelSpec>,
    /// Index of each series' value model in `models`.
    pub(crate) model_of: Vec<u16>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) groups: Vec<SeriesGroup>,
}

/// One host of the layout.
#[derive(Clone, Debug)]
struct Host {
    number: u64,
    series: u32,
    interval_ns: u64,
    phase_ns: u64,
    /// For a temporary host, its position in the order of arrival, in (0, 1).
    extra: Option<f64>,
}

/// Computes the layout of a fleet.
pub(crate) fn plan(spec: &WorkloadSpec, file: &FleetFile) -> Result<Layout, WorkloadError> {
    let mut builder = Builder::new(spec, file);
    for host in hosts(spec, file)? {
        builder.host(&host)?;
    }
    builder.finish()
}

/// The hosts, with those of one interval together.
fn hosts(spec: &WorkloadSpec, file: &FleetFile) -> Result<Vec<Host>, WorkloadError> {
    let series = spec.series.unwrap_or(file.series) as u64;
    if series > MAX_SERIES as u64 {
        return Err(too_many(series));
    }
    let full = u64::from(file.host.series);
    let count = series.div_ceil(full).max(u64::from(file.host.at_least)).min(series);
    let even = file.host.even || series <= full * u64::from(file.host.at_least);
    let size = |number: u64| {
        if even {
            (series * (number + 1) / count - series * number / count) as u32
        } else {
            (series - number * full).min(full) as u32
        }
    };
    let extras = spec
        .churn
        .as_ref()
        .map_or(0.0, |churn| churn::extra_share(&churn.mode) * count as f64)
        .round();
    let extras = if spec.churn.is_some_and(|churn| churn::extra_share(&churn.mode) > 0.0) {
        (extras as u64).max(1)
    } else {
        0
    };
    if (count + extras) * full.min(series) > 2 * MAX_SERIES as u64 {
        return Err(too_many((count + extras) * full));
    }
    let mut hosts = Vec::with_capacity((count + extras) as usize);
    for number in 0..count + extras {
        let interval_ns = interval(spec, file, number);
        hosts.push(Host {
            number,
            series: size(number % count),
            interval_ns,
            phase_ns: phase(spec, file, number, interval_ns),
            extra: (number >= count).then(|| ((number - count) as f64 + 0.5) / extras as f64),
        });
    }
    hosts.sort_by_key(|host| host.interval_ns);
    Ok(hosts)
}

fn too_many(asked: u64) -> WorkloadError {
    WorkloadError::TooManySeries {
        asked,
        limit: MAX_SERIES as u64,
    }
}

fn interval(spec: &WorkloadSpec, file: &FleetFile, host: u64) -> u64 {
    let total: f64 = spec.intervals.iter().map(|share| share.share).sum();
    let mut left = Stream::new(spec.seed, Purpose::Interval, host).fraction() * total;
    for &IntervalShare { interval_ns, share } in &spec.intervals {
        if left < share {
            return interval_ns;
        }
        left -= share;
    }
    let last = spec.intervals.last().map(|share| share.interval_ns);
    last.or(spec.interval_ns)
        .unwrap_or(file.interval_ms * (SECOND_NS / 1000))
}

fn phase(spec: &WorkloadSpec, file: &FleetFile, host: u64, interval_ns: u64) -> u64 {
    if spec.phase == Phase::Aligned || spec.batch == BatchMode::Tick {
        return 0;
    }
    let step = (file.host.phase_step_ms * (SECOND_NS / 1000)).clamp(1, interval_ns);
    Stream::new(spec.seed, Purpose::Phase, host).below(interval_ns / step) * step
}

/// Builds the layout host by host.
struct Builder<'a> {
    spec: &'a WorkloadSpec,
    file: &'a FleetFile,
    /// Index of the value model of each family's first key set.
    first_model: Vec<u16>,
    layout: Layout,
    /// First id, interval, phase and blocks of each host, or of each message of a host.
    hosts: Vec<(u32, u64, u64, Range<usize>)>,
    units: u64,
}

impl<'a> Builder<'a> {
    fn new(spec: &'a WorkloadSpec, file: &'a FleetFile) -> Self {
        let mut models = Vec::new();
        let mut first_model = Vec::new();
        for family in &file.families {
            first_model.push(models.len() as u16);
            models.extend(family.law.iter().cloned());
            models.extend(family.keys.iter().map(|keys| keys.law.clone()));
        }
        Self {
            spec,
            file,
            first_model,
            layout: Layout {
                first_series: 0,
                catalog: Catalog::new(),
                models,
                model_of: Vec::new(),
                blocks: Vec::new(),
                groups: Vec::new(),
            },
            hosts: Vec::new(),
            units: 0,
        }
    }

    /// Adds one host, message by message.
    fn host(&mut self, host: &Host) -> Result<(), WorkloadError> {
        let slots = self.slots(host);
        let limit = messages::limit(self.spec.batch, self.file);
        let step_ns = self.file.host.phase_step_ms * (SECOND_NS / 1000);
        for message in messages::cut(host.series, limit) {
            let phase_ns = message.phase(self.spec.phase, host.phase_ns, host.interval_ns, step_ns);
            self.message(host, &slots, message.slots, phase_ns)?;
        }
        Ok(())
    }

    /// Adds one message of a host: some of its slots, with all their generations.
    fn message(
        &mut self,
        host: &Host,
        slots: &[(u16, SeriesKey)],
        sent: Range<usize>,
        phase_ns: u64,
    ) -> Result<(), WorkloadError> {
        let first_id = self.layout.model_of.len() as u32;
        let first_block = self.layout.blocks.len();
        for (slots_of, ticks, generation) in self.generations(host, sent) {
            let first = self.layout.model_of.len();
            if first + slots_of.len() > MAX_SERIES {
                return Err(too_many((first + slots_of.len()) as u64));
            }
            for slot in &slots[slots_of.clone()] {
                self.layout.model_of.push(slot.0);
                let key = names::generation(slot.1.clone(), generation, self.spec.keys);
                let id = self.layout.catalog.intern(key);
                if id.index() + 1 != self.layout.model_of.len() {
                    let name = slot.1.to_string();
                    return Err(WorkloadError::invalid(
                        "family",
                        &format!("two series are called {name:?}"),
                    ));
                }
            }
            self.layout.blocks.push(Block {
                first: first as u32,
                len: slots_of.len() as u32,
                ticks,
            });
        }
        let blocks = first_block..self.layout.blocks.len();
        // A temporary host that never arrives within the horizon is left out.
        if !blocks.is_empty() {
            self.hosts.push((first_id, host.interval_ns, phase_ns, blocks));
        }
        Ok(())
    }

    /// The generations of some of a host's slots, ordered by birth.
    fn generations(&mut self, host: &Host, all: Range<usize>) -> Vec<(Range<usize>, Range<u64>, u32)> {
        let Some(churn) = &self.spec.churn else {
            return vec![(all, 0..u64::MAX, 0)];
        };
        if let Some(place) = host.extra {
            let lives = churn::visits(churn, host.interval_ns, place);
            return lives
                .into_iter()
                .zip(0..)
                .map(|(ticks, generation)| (all.clone(), ticks, generation))
                .collect();
        }
        let mut blocks = Vec::new();
        for unit in all.clone().step_by(churn.unit as usize) {
            let slots = unit..(unit + churn.unit as usize).min(all.end);
            self.units += 1;
            let lives = churn::lives(churn, host.interval_ns, churn::spread(self.units));
            blocks.extend(
                lives
                    .into_iter()
                    .zip(0..)
                    .map(|(ticks, generation)| (slots.clone(), ticks, generation)),
            );
        }
        if blocks.iter().all(|(_, ticks, _)| *ticks == (0..u64::MAX)) {
            return vec![(all, 0..u64::MAX, 0)];
        }
        // The sort must be stable: units born together keep their order.
        blocks.sort_by_key(|(_, ticks, _)| ticks.start);
        blocks
    }

    /// The series of one generation of a host: value model and key of each.
    fn slots(&self, host: &Host) -> Vec<(u16, SeriesKey)> {
        let place = SeriesPosition {
            seed: self.spec.seed,
            form: self.spec.keys,
            host: host.number,
            hostname: names::hostname(&self.file.host.name, self.spec.seed, host.number),
        };
        if self.file.by_share() {
            self.slots_by_share(host, &place)
        } else {
            self.slots_by_scope(host, &place)
        }
    }

    fn slots_by_share(&self, host: &Host, place: &SeriesPosition) -> Vec<(u16, SeriesKey)> {
        let total: f64 = self.file.families.iter().filter_map(|family| family.share).sum();
        let mut families = Stream::new(self.spec.seed, Purpose::Family, host.number);
        let mut slots = Vec::with_capacity(host.series as usize);
        for item in 0..host.series {
            let mut left = families.fraction() * total;
            let chosen = self.file.families.iter().position(|family| {
                left -= family.share.unwrap_or(0.0);
                left < 0.0
            });
            // Rounding can leave a tiny remainder after the last family.
            let chosen = chosen.unwrap_or(self.file.families.len() - 1);
            let key = place.by_share(&self.file.families[chosen].name, item);
            slots.push((self.first_model[chosen], key));
        }
        slots
    }

    /// Fills the host with instances, one after the other, after reserving its own series.
    fn slots_by_scope(&self, host: &Host, place: &SeriesPosition) -> Vec<(u16, SeriesKey)> {
        let wanted = host.series as usize;
        let mut own = Vec::new();
        self.instance(place, "host", "", 0, &mut own);
        for scope in &self.file.scopes {
            for number in 0..scope.count.unwrap_or(0) {
                self.instance(place, &scope.name, &scope.instance, number, &mut own);
            }
        }
        // A host too small for both gets only instances of the filling scope.
        if own.len() + self.file.series_per(None) > wanted {
            own.clear();
        }
        if let Some(fill) = self.file.scopes.iter().find(|scope| scope.count.is_none()) {
            let mut number = 0;
            while own.len() < wanted {
                self.instance(place, &fill.name, &fill.instance, number, &mut own);
                number += 1;
            }
        }
        own.truncate(wanted);
        own
    }

    fn instance(
        &self,
        place: &SeriesPosition,
        scope: &str,
        name: &str,
        number: u32,
        slots: &mut Vec<(u16, SeriesKey)>,
    ) {
        let instance = place.instance(scope, name, number);
        for (family, &first_model) in self.file.families.iter().zip(&self.first_model) {
            if family.per.as_deref() != Some(scope) {
                continue;
            }
            for (keys, model) in family.keys.iter().zip(first_model..) {
                let of_set = keys
                    .names
                    .iter()
                    .map(|key| (model, place.by_scope(&family.name, key, scope, &instance)));
                slots.extend(of_set);
            }
        }
    }

    /// Builds the groups.
    fn finish(mut self) -> Result<Layout, WorkloadError> {
        let ranges = match self.spec.batch {
            BatchMode::Host | BatchMode::Message | BatchMode::Series(_) => {
                (0..self.hosts.len()).map(|host| host..host + 1).collect()
            }
            BatchMode::Tick => self.parts(),
        };
        for hosts in ranges {
            let (first, interval_ns, phase_ns, _) = self.hosts[hosts.start];
            let blocks = self.hosts[hosts.start].3.start..self.hosts[hosts.end - 1].3.end;
            let members = &self.layout.blocks[blocks.clone()];
            let start = members.iter().map(|block| block.ticks.start).min().unwrap_or(0);
            let end = members.iter().map(|block| block.ticks.end).max().unwrap_or(0);
            self.layout.groups.push(SeriesGroup {
                first: SeriesId(first),
                len: members.iter().map(|block| block.len).sum(),
                interval_ns,
                phase_ns,
                ticks: start..end,
                blocks,
            });
        }
        self.join_blocks();
        if self.layout.groups.is_empty() {
            return Err(WorkloadError::invalid("series", "no host has a series"));
        }
        Ok(self.layout)
    }

    /// Divides hosts of one interval into the requested number of parts.
    fn parts(&self) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let mut start = 0;
        while start < self.hosts.len() {
            let interval = self.hosts[start].1;
            let same = self.hosts[start..].iter().take_while(|host| host.1 == interval).count();
            let parts = self.spec.tick_parts.min(same);
            ranges.extend((0..parts).map(|part| start + same * part / parts..start + same * (part + 1) / parts));
            start += same;
        }
        ranges
    }

    /// Joins adjacent blocks of a group with the same lifetime, for longer runs.
    fn join_blocks(&mut self) {
        let mut joined: Vec<Block> = Vec::with_capacity(self.layout.blocks.len());
        for group in &mut self.layout.groups {
            let start = joined.len();
            for block in &self.layout.blocks[group.blocks.clone()] {
                match joined[start..].last_mut() {
                    Some(last) if last.ticks == block.ticks => last.len += block.len,
                    _ => joined.push(block.clone()),
                }
            }
            group.blocks = start..joined.len();
        }
        self.layout.blocks = joined;
    }
}
