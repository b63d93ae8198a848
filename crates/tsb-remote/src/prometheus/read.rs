//! Remote read: the samples of several queries, as frames of chunks that come one after the other.

use http::StatusCode;
use prost::Message;

use super::message::{ChunkedResponse, ReadQuery, ReadRequest, STREAMED_CHUNKS, TimeSeries, XOR};
use super::server::PrometheusServer;
use super::xor;
use crate::http::{BodyChunks, Request};
use tsb_stores::error::Result;

const ACTION: &str = "read samples";

/// Maximum length of a frame, in bytes; a server makes them as long as a mebibyte and a series.
const FRAME_MAX: usize = 16 << 20;

/// Maximum number of samples that an answer may bring: 320 MB.
const SAMPLES_MAX: usize = 20_000_000;

/// Maximum length of a refusal that is read, in bytes.
const REFUSAL_MAX: usize = 4 << 10;

/// The series of each query of a request.
pub(super) type Results = Vec<Vec<TimeSeries>>;

impl PrometheusServer {
    /// Reads samples: the series of each query.
    pub(super) async fn read(&self, queries: Vec<ReadQuery>) -> Result<Results> {
        let request = ReadRequest {
            queries: queries.clone(),
            accepted: vec![STREAMED_CHUNKS],
        };
        let mut body = request.encode_to_vec();
        tsb_core::wire::http::Snappy::default().pack(&mut body, 0);
        let request = Request::post("/api/v1/read", body)
            .reading()
            .with_header("content-type", "application/x-protobuf")
            .with_header("content-encoding", "snappy")
            .with_header("x-prometheus-remote-read-version", "0.1.0");
        let mut answer = self.http().stream(ACTION, &request).await?;
        match answer.status() {
            status if status.is_success() => {}
            StatusCode::SERVICE_UNAVAILABLE => {
                return Err(self.starting(ACTION, &answer.collect(REFUSAL_MAX).await?));
            }
            _ => return Err(self.http().refused(ACTION, &answer.collect(REFUSAL_MAX).await?)),
        }
        self.frames(&mut answer, &queries).await
    }

    async fn frames(&self, answer: &mut BodyChunks, queries: &[ReadQuery]) -> Result<Results> {
        let failed = |why: String| self.http().failed(ACTION, why);
        let (mut results, mut samples) = (vec![Vec::new(); queries.len()], 0);
        let mut waiting = Vec::new();
        while let Some(bytes) = answer.next().await? {
            waiting.extend_from_slice(&bytes);
            let mut at = 0;
            while let Some((frame, length)) = frame(&waiting[at..]).map_err(failed)? {
                samples += take(frame, queries, &mut results).map_err(failed)?;
                at += length;
                if samples > SAMPLES_MAX {
                    return Err(failed(format!("an answer has more than {SAMPLES_MAX} samples")));
                }
            }
            waiting.drain(..at);
        }
        if waiting.is_empty() {
            Ok(results)
        } else {
            Err(failed("an answer breaks off within a frame".to_owned()))
        }
    }
}

/// The first frame, and how many bytes it takes with its length and its checksum; `None` if it is
/// not complete. The checksum is not looked at: TCP has one.
fn frame(bytes: &[u8]) -> std::result::Result<Option<(&[u8], usize)>, String> {
    const CHECKSUM: usize = 4;
    let (mut length, mut at) = (0_usize, 0);
    loop {
        let Some(byte) = bytes.get(at) else { return Ok(None) };
        length |= usize::from(byte & 0x7f) << (7 * at);
        at += 1;
        if length > FRAME_MAX || at > 4 {
            return Err(format!("a frame is longer than {FRAME_MAX} bytes"));
        }
        if *byte < 0x80 {
            break;
        }
    }
    let start = at + CHECKSUM;
    Ok(bytes.get(start..start + length).map(|frame| (frame, start + length)))
}

/// Adds the samples of a frame to the results, those within the query's range; returns their
/// number.
fn take(frame: &[u8], queries: &[ReadQuery], results: &mut Results) -> std::result::Result<usize, String> {
    let response = ChunkedResponse::decode(frame).map_err(|error| format!("a frame is none: {error}"))?;
    let index = response.query_index as usize;
    let (Some(query), Some(result)) = (queries.get(index), results.get_mut(index)) else {
        return Err(format!("it answers query {index}, which was not asked"));
    };
    let mut count = 0;
    for series in response.series {
        let mut samples = Vec::new();
        for chunk in &series.chunks {
            if chunk.encoding != XOR {
                return Err(format!("a chunk has the encoding {}, not XOR", chunk.encoding));
            }
            xor::decode(&chunk.data, &mut samples).map_err(|_| "a chunk breaks off".to_owned())?;
        }
        samples.retain(|sample| (query.start_ms..=query.end_ms).contains(&sample.at_ms));
        count += samples.len();
        match result.last_mut() {
            Some(TimeSeries { labels, samples: more }) if *labels == series.labels => more.append(&mut samples),
            _ => result.push(TimeSeries {
                labels: series.labels,
                samples,
            }),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::super::message::{Chunk, ChunkedSeries, Label};
    use super::*;

    /// Two samples: 1 s with 1.0 and 2 s with the same.
    const CHUNK: &[u8] = b"\0\x02\xd0\x0f\x3f\xf0\0\0\0\0\0\0\xe8\x07\0";

    fn framed(query_index: i64, encoding: i32) -> Vec<u8> {
        let series = ChunkedSeries {
            labels: vec![Label {
                name: "a".to_owned(),
                value: "b".to_owned(),
            }],
            chunks: vec![Chunk {
                encoding,
                data: CHUNK.to_vec(),
            }],
        };
        let response = ChunkedResponse {
            series: vec![series],
            query_index,
        };
        let bytes = response.encode_to_vec();
        [&[bytes.len() as u8, 1, 2, 3, 4], bytes.as_slice()].concat()
    }

    fn query(start_ms: i64, end_ms: i64) -> ReadQuery {
        ReadQuery {
            start_ms,
            end_ms,
            matchers: Vec::new(),
        }
    }

    #[test]
    fn frames_are_cut_to_what_was_asked() {
        let bytes = framed(1, XOR);
        for length in 0..bytes.len() {
            assert_eq!(frame(&bytes[..length]), Ok(None), "{length}");
        }
        let (found, length) = frame(&bytes).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        let queries = [query(0, 10_000), query(1_500, 2_000)];
        let mut results = vec![Vec::new(), Vec::new()];
        for samples in 1..=2 {
            assert_eq!(take(found, &queries, &mut results), Ok(1));
            assert!(results[0].is_empty() && results[1].len() == 1);
            assert_eq!(results[1][0].samples.len(), samples);
        }
        assert_eq!(
            (results[1][0].samples[0].at_ms, results[1][0].samples[0].value),
            (2_000, 1.0)
        );
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let mut results = vec![Vec::new()];
        for (bytes, why) in [(framed(3, XOR), "was not asked"), (framed(0, 7), "the encoding 7")] {
            let (found, _) = frame(&bytes).unwrap().unwrap();
            let error = take(found, &[query(0, 1)], &mut results).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(frame(b"\xff\xff\xff\xff\x0f").is_err());
        assert!(take(b"\xff", &[], &mut results).is_err());
    }
}
