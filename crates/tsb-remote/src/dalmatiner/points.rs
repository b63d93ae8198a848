//! Requests that read, and their answers.

use snap::raw::{Decoder as Snappy, decompress_len};
use tsb_core::wire::dalmatiner::value_of;

/// Bytes of a point.
const POINT: usize = 8;

/// The request for `count` points of a metric from a second on.
pub(super) fn get(bucket: &[u8], metric: &[u8], seconds: u64, count: u32) -> Vec<u8> {
    [
        &[2, bucket.len() as u8],
        bucket,
        &(metric.len() as u16).to_be_bytes(),
        metric,
        &seconds.to_be_bytes(),
        &count.to_be_bytes(),
        // No high-precision times; read repair and copies as the server is set.
        &[0, 2, 0],
    ]
    .concat()
}

/// A request that names only a bucket: 1 lists its metrics, 7 asks what it is like.
pub(super) fn of_bucket(code: u8, bucket: &[u8]) -> Vec<u8> {
    [&[code, bucket.len() as u8], bucket].concat()
}

/// An answer that is an error message, in the server's words.
pub(super) fn error_of(frame: &[u8]) -> Option<String> {
    match frame {
        [255, length, text @ ..] if text.len() == usize::from(*length) => {
            Some(format!("the server answers: {}", String::from_utf8_lossy(text)))
        }
        _ => None,
    }
}

/// The points of an answer, as they come in frames.
#[derive(Debug)]
pub(super) struct PointReader {
    /// Points that were asked for.
    count: usize,
    /// Points that have come, unset ones included.
    seen: usize,
    snappy: Snappy,
    plain: Vec<u8>,
}

impl PointReader {
    pub(super) fn new(count: u32) -> Self {
        Self {
            count: count as usize,
            seen: 0,
            snappy: Snappy::new(),
            plain: Vec::new(),
        }
    }

    /// Takes a frame, and hands each point that is set to `take`, with its place from 0. Returns
    /// whether more frames follow.
    ///
    /// # Errors
    /// What is wrong with the answer, as a sentence.
    pub(super) fn frame(&mut self, frame: &[u8], take: &mut dyn FnMut(usize, f64)) -> Result<bool, String> {
        match frame {
            [0] => Ok(false),
            // No aggregate was applied.
            [255] => Ok(true),
            [1, packed @ ..] => self.data(packed, 0, take),
            [3, a, b, c, d, packed @ ..] => self.data(packed, u32::from_be_bytes([*a, *b, *c, *d]) as usize, take),
            other => Err(error_of(other).unwrap_or_else(|| "an answer is not understood".to_owned())),
        }
    }

    fn data(&mut self, packed: &[u8], padding: usize, take: &mut dyn FnMut(usize, f64)) -> Result<bool, String> {
        let length = decompress_len(packed).map_err(|error| format!("points cannot be read: {error}"))?;
        let left = self.count - self.seen;
        if !length.is_multiple_of(POINT) || length / POINT > left || padding > left - length / POINT {
            return Err(format!(
                "an answer has more than the {} points that were asked for",
                self.count
            ));
        }
        self.plain.resize(length, 0);
        let unpacked = self.snappy.decompress(packed, &mut self.plain);
        unpacked.map_err(|error| format!("points cannot be read: {error}"))?;
        let (points, _) = self.plain.as_chunks::<POINT>();
        for (place, point) in points.iter().enumerate() {
            match value_of(u64::from_be_bytes(*point)) {
                None => {}
                Some(Ok(value)) => take(self.seen + place, value),
                Some(Err(why)) => return Err(format!("a point cannot be read: {why}")),
            }
        }
        self.seen += points.len() + padding;
        Ok(true)
    }
}

/// The metrics of a list.
///
/// # Errors
/// That it is none, as a sentence.
pub(super) fn metrics(frame: &[u8]) -> Result<Vec<&[u8]>, String> {
    let cut_short = || error_of(frame).unwrap_or_else(|| "a list of metrics is not understood".to_owned());
    let (length, mut rest) = frame.split_first_chunk::<8>().ok_or_else(cut_short)?;
    if u64::from_be_bytes(*length) != rest.len() as u64 {
        return Err(cut_short());
    }
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<2>().ok_or_else(cut_short)?;
        let length = usize::from(u16::from_be_bytes(*length));
        found.push(behind.get(..length).ok_or_else(cut_short)?);
        rest = &behind[length..];
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A metric of five elements in docs/formats/dalmatiner.md.
    const METRIC: &[u8] = b"\x05cloud\x05zones\x03cpu\x05usage\x08f242021c";

    #[test]
    fn a_request_for_sixty_points_has_the_bytes_of_the_format() {
        let request = get(b"tachyon", METRIC, 1_404_770_400, 60);
        assert_eq!(request.len(), 0x39);
        let expected = [
            &b"\x02\x07tachyon\x00\x1f"[..],
            METRIC,
            b"\x00\x00\x00\x00\x53\xbb\x18\x60\x00\x00\x00\x3c\x00\x02\x00",
        ];
        assert_eq!(request, expected.concat());
    }

    #[test]
    fn points_are_read_with_their_gaps_and_an_answer_that_is_too_long_is_refused() {
        let points: Vec<u8> = [0x0100_0000_0000_002a_u64, 0, 0x01ff_ffff_ffff_fff6]
            .iter()
            .flat_map(|point| point.to_be_bytes())
            .collect();
        let packed = snap::raw::Encoder::new().compress_vec(&points).unwrap();
        let mut reader = PointReader::new(10);
        let mut found = Vec::new();
        let mut take = |place, value| found.push((place, value));
        assert_eq!(reader.frame(&[255], &mut take), Ok(true));
        assert_eq!(reader.frame(&[&[1], &packed[..]].concat(), &mut take), Ok(true));
        assert_eq!(
            reader.frame(&[&[3, 0, 0, 0, 4], &packed[..]].concat(), &mut take),
            Ok(true)
        );
        assert_eq!(reader.frame(&[0], &mut take), Ok(false));
        assert_eq!(found, [(0, 42.0), (2, -10.0), (3, 42.0), (5, -10.0)]);
        for wrong in [&[1, 255][..], &[9], &[], &[255, 2, b'x'], &[3, 0]] {
            assert!(reader.frame(wrong, &mut |_, _| {}).is_err(), "{wrong:?}");
        }
        let said = reader.frame(b"\xff\x02no", &mut |_, _| {}).unwrap_err();
        assert!(said.contains("answers: no"), "{said}");
        // All ten points have come.
        let mut full = PointReader::new(2);
        assert!(full.frame(&[&[1], &packed[..]].concat(), &mut |_, _| {}).is_err());
        assert!(
            full.frame(&[&[3, 0, 0, 0, 9], &[0][..]].concat(), &mut |_, _| {})
                .is_err()
        );
    }

    #[test]
    fn a_list_is_cut_into_metrics() {
        let list = b"\0\0\0\0\0\0\0\x07\0\x02\x01a\0\x01x";
        assert_eq!(metrics(list).unwrap(), [&b"\x01a"[..], b"x"]);
        for wrong in [
            &b""[..],
            b"\0\0\0\0\0\0\0\x09\0\x02\x01a\0\x01x",
            b"\0\0\0\0\0\0\0\x01\0",
        ] {
            assert!(metrics(wrong).is_err(), "{wrong:?}");
        }
    }
}
