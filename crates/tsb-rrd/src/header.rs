//! Encodes and decodes the static part of the header.

use crate::error::{Error, Result};
use crate::layout::{Archive, COUNT_MAX, Cf, DS_DEF, DataSource, DsKind, FORECASTS, Layout, RRA_DEF, STAT_HEAD};

const COOKIE: &[u8; 4] = b"RRD\0";
/// A number whose byte pattern shows the float format of the machine that wrote the file.
const FLOAT_COOKIE: f64 = 8.642135E130;

/// The bytes of the static part for a new file.
pub(crate) fn encode(layout: &Layout) -> Vec<u8> {
    let mut bytes = vec![0; layout.live_offset()];
    let is_v5 = layout.sources.iter().any(|source| source.kind.is_float_difference());
    bytes[..4].copy_from_slice(COOKIE);
    bytes[4..8].copy_from_slice(if is_v5 { b"0005" } else { b"0003" });
    put(&mut bytes, 16, FLOAT_COOKIE.to_bits());
    put(&mut bytes, 24, layout.sources.len() as u64);
    put(&mut bytes, 32, layout.archives.len() as u64);
    put(&mut bytes, 40, layout.step_s);
    for (index, source) in layout.sources.iter().enumerate() {
        let part = &mut bytes[STAT_HEAD + index * DS_DEF..][..DS_DEF];
        part[..source.name.len()].copy_from_slice(source.name.as_bytes());
        let kind = source.kind.name().as_bytes();
        part[20..20 + kind.len()].copy_from_slice(kind);
        put(part, 40, source.heartbeat_s);
        put(part, 48, source.min.to_bits());
        put(part, 56, source.max.to_bits());
    }
    let archives = STAT_HEAD + DS_DEF * layout.sources.len();
    for (index, archive) in layout.archives.iter().enumerate() {
        let part = &mut bytes[archives + index * RRA_DEF..][..RRA_DEF];
        let cf = archive.cf.name().as_bytes();
        part[..cf.len()].copy_from_slice(cf);
        put(part, 24, archive.rows);
        put(part, 32, archive.steps);
        put(part, 40, archive.xff.to_bits());
    }
    bytes
}

impl Layout {
    /// Length of the header in bytes, from the first 128 bytes of a file.
    ///
    /// # Errors
    /// As [`Layout::decode`].
    pub fn header_len_of(head: &[u8]) -> Result<usize> {
        let (sources, archives) = counts(head)?;
        let per_source = DS_DEF + crate::layout::PDP_PREP + crate::layout::CDP_PREP * archives;
        let per_archive = RRA_DEF + crate::layout::RRA_PTR;
        Ok(STAT_HEAD + crate::layout::LIVE_HEAD + per_source * sources + per_archive * archives)
    }

    /// Decodes the layout of a file from its header.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the bytes make no sense, [`Error::Unsupported`] where they do, but this engine does not handle them.
    pub fn decode(header: &[u8]) -> Result<Self> {
        let (source_count, archive_count) = counts(header)?;
        let length = STAT_HEAD + DS_DEF * source_count + RRA_DEF * archive_count;
        let Some(statics) = header.get(..length) else {
            return Err(Error::damaged(
                header.len(),
                format!("ends within its header of {length} bytes"),
            ));
        };
        let (head, rest) = statics.split_at(STAT_HEAD);
        let (definitions, archives) = rest.split_at(DS_DEF * source_count);
        let sources = definitions
            .chunks_exact(DS_DEF)
            .enumerate()
            .map(|(index, part)| source(part, STAT_HEAD + index * DS_DEF))
            .collect::<Result<Vec<_>>>()?;
        let archives_at = STAT_HEAD + DS_DEF * source_count;
        let archives = archives
            .chunks_exact(RRA_DEF)
            .enumerate()
            .map(|(index, part)| archive(part, archives_at + index * RRA_DEF))
            .collect::<Result<Vec<_>>>()?;
        let mut layout = Self::measured(get(head, 40), sources, archives).map_err(|error| match error {
            Error::Layout(what) => Error::damaged(STAT_HEAD, what),
            other => other,
        })?;
        layout.statics = statics.to_vec();
        Ok(layout)
    }
}

/// The numbers of data sources and archives, from a head whose signature was checked.
fn counts(head: &[u8]) -> Result<(usize, usize)> {
    let Some(head) = head.get(..STAT_HEAD) else {
        return Err(Error::damaged(head.len(), "too short to be an RRD file"));
    };
    if &head[..4] != COOKIE {
        return Err(Error::damaged(0, "does not start as an RRD file"));
    }
    if !matches!(&head[4..8], b"0003" | b"0004" | b"0005") || head[8] != 0 {
        let version = String::from_utf8_lossy(&head[4..9]).into_owned();
        return Err(Error::Unsupported(format!(
            "version {:?}",
            version.trim_end_matches('\0')
        )));
    }
    if get(head, 16) != FLOAT_COOKIE.to_bits() {
        return Err(Error::Unsupported("written on another kind of machine".to_owned()));
    }
    let (sources, archives) = (get(head, 24), get(head, 32));
    if !(1..=COUNT_MAX).contains(&sources) {
        return Err(Error::damaged(24, format!("{sources} data sources")));
    }
    if !(1..=COUNT_MAX).contains(&archives) {
        return Err(Error::damaged(32, format!("{archives} archives")));
    }
    Ok((sources as usize, archives as usize))
}

fn source(part: &[u8], offset: usize) -> Result<DataSource> {
    let kind = word(&part[20..40]);
    let Some(kind) = DsKind::from_name(&kind) else {
        return Err(match kind.as_str() {
            "COMPUTE" => Error::Unsupported("a COMPUTE data source".to_owned()),
            _ => Error::damaged(offset + 20, format!("{kind:?} is not a kind of data source")),
        });
    };
    Ok(DataSource {
        name: word(&part[..20]),
        kind,
        heartbeat_s: get(part, 40),
        min: f64::from_bits(get(part, 48)),
        max: f64::from_bits(get(part, 56)),
    })
}

fn archive(part: &[u8], offset: usize) -> Result<Archive> {
    let cf = word(&part[..20]);
    let Some(cf) = Cf::from_name(&cf) else {
        return Err(if FORECASTS.contains(&cf.as_str()) {
            Error::Unsupported(format!("a {cf} archive"))
        } else {
            Error::damaged(offset, format!("{cf:?} is not a consolidation function"))
        });
    };
    Ok(Archive {
        cf,
        rows: get(part, 24),
        steps: get(part, 32),
        xff: f64::from_bits(get(part, 40)),
    })
}

/// The text up to the first zero byte.
fn word(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The eight bytes at `at` as an integer.
pub(crate) fn get(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// Writes an integer to the eight bytes at `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout::new(
            300,
            vec![
                DataSource::new("num", DsKind::Gauge, 600),
                DataSource::new("sub", DsKind::Counter, 900),
            ],
            vec![
                Archive::new(Cf::Average, 0.5, 1, 1440),
                Archive::new(Cf::Max, 0.25, 6, 1008),
            ],
        )
        .unwrap()
    }

    #[test]
    fn a_header_comes_back_as_it_was() {
        let layout = layout();
        let mut header = layout.statics.clone();
        header.resize(layout.header_len(), 0);
        let again = Layout::decode(&header).unwrap();
        assert_eq!(again.archives, layout.archives);
        assert_eq!(again.sources[1].kind, DsKind::Counter);
        assert_eq!((again.step_s, again.file_len), (layout.step_s, layout.file_len));
        assert_eq!(Layout::header_len_of(&header).unwrap(), layout.header_len());
    }

    #[test]
    fn the_original_layout_has_204256_bytes() {
        let mut archives = Vec::new();
        for cf in [Cf::Average, Cf::Max] {
            for (steps, rows) in [(1, 1440), (6, 1008), (24, 1344), (288, 2500)] {
                archives.push(Archive::new(cf, 0.5, steps, rows));
            }
        }
        let sources = ["num", "sub"].map(|name| DataSource::new(name, DsKind::Gauge, 600));
        let layout = Layout::new(300, sources.to_vec(), archives).unwrap();
        assert_eq!(
            (layout.header_len(), layout.live_len(), layout.file_len()),
            (2912, 1584, 204_256)
        );
    }

    #[test]
    fn damage_is_reported_with_its_offset() {
        let sound = layout().statics;
        let check = |at: usize, bytes: &[u8], expected: &str| {
            let mut damaged = sound.clone();
            damaged[at..at + bytes.len()].copy_from_slice(bytes);
            assert_eq!(Layout::decode(&damaged).unwrap_err().to_string(), expected);
        };
        check(0, b"RRX", "damaged at byte 0: does not start as an RRD file");
        check(4, b"0001", "not handled: version \"0001\"");
        check(16, &[0; 8], "not handled: written on another kind of machine");
        check(24, &[255; 8], "damaged at byte 24: 18446744073709551615 data sources");
        check(32, &[0; 8], "damaged at byte 32: 0 archives");
        check(
            40,
            &[0; 8],
            "damaged at byte 128: the step is not a positive number of seconds",
        );
        check(148, b"COMPUTE", "not handled: a COMPUTE data source");
        check(
            148,
            b"gauge",
            "damaged at byte 148: \"gauge\" is not a kind of data source",
        );
        check(368, b"FAILURES", "not handled: a FAILURES archive");
        check(
            392,
            &[255; 8],
            "damaged at byte 128: the archives are larger than any file",
        );
        check(24, &[200], "damaged at byte 608: ends within its header of 24368 bytes");
    }
}
