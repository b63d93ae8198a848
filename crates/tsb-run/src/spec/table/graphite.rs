//! The table entry of Graphite, and the conversion of its options.

#[cfg(feature = "graphite")]
use super::Make;
use super::{Kind, MAX_SERIES, OptionInfo, PathKind, StoreInfo, option};

/// Every build explains it; builds with the feature can open it.
pub(super) const INFO: StoreInfo = StoreInfo {
    scheme: "graphite",
    what: "carbon-cache, carbon-relay or go-carbon, //HOST[:PORT][,HOST...]/PREFIX: one path per series; keeps consolidated slots",
    durability: "unconfirmed: carbon acknowledges nothing",
    feature: Some("graphite"),
    is_wrapper: false,
    path: PathKind::Address { ports: &[2003, 2004] },
    options: &OPTIONS,
    #[cfg(feature = "graphite")]
    make: Some(Make::Client(client::open)),
    #[cfg(not(feature = "graphite"))]
    make: None,
    #[cfg(feature = "graphite")]
    list: Some(client::list),
    #[cfg(not(feature = "graphite"))]
    list: None,
    #[cfg(feature = "graphite")]
    keeps: client::KEEPS,
    #[cfg(not(feature = "graphite"))]
    keeps: super::Keeps::Nothing,
};

static OPTIONS: [OptionInfo; 14] = [
    option(
        "protocol",
        Kind::Word(&["plaintext", "pickle"]),
        Some("plaintext"),
        "plaintext: a line per sample, port 2003; pickle: lists of up to 500, port 2004",
    ),
    option(
        "render",
        Kind::Checked("HOST[:PORT]", |text| !text.is_empty()),
        None,
        "the render API of graphite-web or go-carbon; without it, nothing can be read back",
    ),
    option(
        "archives",
        Kind::Checked("SLOT:RETENTION[,SLOT:RETENTION...], such as 1s:1h,1m:1d", |text| {
            archives(text).is_some()
        }),
        Some("1m:1d"),
        "what Whisper keeps of this prefix, as the server's storage-schemas.conf says",
    ),
    option(
        "aggregation",
        Kind::Word(&["average", "sum", "last", "max", "min"]),
        Some("average"),
        "how slots become longer ones, as the server's storage-aggregation.conf says",
    ),
    option(
        "xff",
        Kind::Checked("a share from 0 to 1, with at most three decimals", |text| {
            permille(text).is_some()
        }),
        Some("0.5"),
        "xFilesFactor of the same file: the share of slots that a longer one needs",
    ),
    option(
        "delay",
        Kind::Duration,
        Some("5s"),
        "how long a sample may take until it is visible; beyond it, it counts as lost",
    ),
    option(
        "folder",
        Kind::Checked("a folder", |text| !text.is_empty()),
        None,
        "Whisper's folder, if it is on this machine: for sizes, and to remove a place",
    ),
    option(
        "processes",
        Kind::Checked("HOST:PORT[,HOST:PORT...]", |text| !text.is_empty()),
        None,
        "where further processes of the server listen on this machine, such as caches behind a relay: for their resources",
    ),
    option(
        "timeout",
        Kind::Duration,
        Some("10s"),
        "how long a write or a request may take",
    ),
    super::CREDENTIALS,
    option(
        "tls",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: speak TLS with the render API",
    ),
    super::TLS_CA,
    option(
        "drop",
        Kind::Word(&["0", "1"]),
        Some("0"),
        "1: remove what an earlier run has left below the prefix; needs folder",
    ),
    MAX_SERIES,
];

/// Length of a slot and number of slots of each archive, by Whisper's rules; `None` for other text.
fn archives(text: &str) -> Option<Vec<(i64, i64)>> {
    let seconds = |text: &str| {
        let ns = crate::spec::parse_duration_ns(text)?;
        (ns % 1_000_000_000 == 0).then_some(ns / 1_000_000_000)
    };
    let mut archives: Vec<(i64, i64)> = Vec::new();
    for archive in text.split(',') {
        let (slot, retention) = archive.split_once(':')?;
        let (slot_s, retention_s) = (seconds(slot)?, seconds(retention)?);
        let slots = retention_s / slot_s;
        let fits = match archives.last() {
            None => true,
            Some((finer_s, finer_slots)) => {
                slot_s > *finer_s
                    && slot_s % finer_s == 0
                    && *finer_slots >= slot_s / finer_s
                    && retention_s >= finer_s * finer_slots + 2 * slot_s
            }
        };
        // Whisper's times have 32 bits.
        if !fits || slots < 1 || retention_s % slot_s != 0 || retention_s >= 1 << 32 {
            return None;
        }
        archives.push((slot_s, slots));
    }
    (archives.len() <= tsb_stores::store::MAX_SLOT_ARCHIVES).then_some(archives)
}

fn permille(text: &str) -> Option<u16> {
    let share: f64 = text.parse().ok()?;
    let permille = share * 1_000.0;
    let is_whole = (permille - permille.round()).abs() < 1e-6;
    ((0.0..=1.0).contains(&share) && is_whole).then_some(permille.round() as u16)
}

#[cfg(feature = "graphite")]
mod client {
    use std::path::PathBuf;

    use tsb_core::SeriesKey;

    use super::{archives, permille};
    use crate::spec::Values;
    use crate::spec::kept::{KeptAtServer, quoted};
    use crate::spec::table::{Keeps, NamedBy, address_of, http};
    use tsb_remote::Address;
    use tsb_remote::graphite::{self, GraphiteOptions, GraphiteProtocol};
    use tsb_stores::error::{Error, Result};
    use tsb_stores::{AsyncStore, Consolidation, SlotArchive, SlotArchives};

    pub(super) fn open(path: &str, values: &Values<'_>) -> Result<Box<dyn AsyncStore>> {
        Ok(Box::new(graphite::open(&address(path, values)?, &options(values)?)?))
    }

    pub(super) fn list(path: &str, values: &Values<'_>) -> Result<Vec<SeriesKey>> {
        graphite::series(&address(path, values)?, &options(values)?)
    }

    /// The paths below the prefix.
    pub(super) const KEEPS: Keeps = Keeps::AtServer {
        find: kept,
        remove: Some(|path, values| graphite::remove(&address(path, values)?, &options(values)?)),
        named_by: NamedBy::Path('-'),
    };

    fn kept(path: &str, values: &Values<'_>) -> Result<KeptAtServer> {
        let address = Address::parse("graphite", "prefix", path)?;
        let folder = options(values)?.folder.map(|folder| folder.join(address.place()));
        Ok(KeptAtServer {
            kind: "prefix",
            name: format!("{} at {}", address.place(), address.hosts()),
            remove: folder.map(|folder| format!("rm -r {}", quoted(&folder.display().to_string()))),
        })
    }

    fn address(path: &str, values: &Values<'_>) -> Result<Address> {
        address_of("graphite", "prefix", path, values)
    }

    fn options(values: &Values<'_>) -> Result<GraphiteOptions> {
        let default = GraphiteOptions::default();
        let (render, tls) = (values.word("render")?, http::tls(values)?);
        if tls.is_some() && render.is_none() {
            return Err(Error::Spec {
                spec: "graphite:".to_owned(),
                what: "tls=1 is for the render API, which render does not name: samples go in the clear".to_owned(),
            });
        }
        Ok(GraphiteOptions {
            protocol: match values.word("protocol")?.as_deref() {
                Some("pickle") => GraphiteProtocol::Pickle,
                _ => GraphiteProtocol::Plaintext,
            },
            render,
            archives: rule(values, default.archives)?,
            visibility_delay: values.duration_or("delay", default.visibility_delay)?,
            tls,
            timeout: values.duration_or("timeout", default.timeout)?,
            folder: values.word("folder")?.map(PathBuf::from),
            drop: values.is_on("drop")?,
            max_series: values.usize_or("max_series", default.max_series)?,
        })
    }

    fn rule(values: &Values<'_>, default: SlotArchives) -> Result<SlotArchives> {
        let mut rule = default;
        if let Some(list) = values.word("archives")?.and_then(|text| archives(&text)) {
            rule.archives = Default::default();
            for (place, (slot_s, slots)) in rule.archives.iter_mut().zip(list) {
                *place = Some(SlotArchive { slot_s, slots });
            }
        }
        rule.consolidation = match values.word("aggregation")?.as_deref() {
            Some("sum") => Consolidation::Sum,
            Some("last") => Consolidation::Last,
            Some("max") => Consolidation::Max,
            Some("min") => Consolidation::Min,
            _ => Consolidation::Average,
        };
        if let Some(permille) = values.word("xff")?.and_then(|text| permille(&text)) {
            rule.known_permille_min = permille;
        }
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_follow_the_rules_of_whisper() {
        assert_eq!(archives("1m:1d"), Some(vec![(60, 1_440)]));
        assert_eq!(archives("1s:1h,10s:1d"), Some(vec![(1, 3_600), (10, 8_640)]));
        for wrong in [
            "",
            "1m",
            "1m:",
            "500ms:1h",
            "7s:1m",
            "1m:30s",
            "1s:1h,1s:1d",
            "10s:1h,15s:1d",
            "1s:5s,10s:1h",
            "1s:1h,10s:1h",
        ] {
            assert_eq!(archives(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_has_three_decimals_at_most() {
        assert_eq!(
            [permille("0"), permille("0.5"), permille("1"), permille("0.125")],
            [Some(0), Some(500), Some(1_000), Some(125)]
        );
        for wrong in ["", "-0.1", "1.1", "0.0005", "nan"] {
            assert_eq!(permille(wrong), None, "{wrong}");
        }
    }
}
