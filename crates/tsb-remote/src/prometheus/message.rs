//! The messages of remote read: `prompb/remote.proto` and `types.proto` of Prometheus.

use prost::Message;

/// Several queries; each frame of the answer names the one that it is of.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) queries: Vec<ReadQuery>,
    /// The forms of answers that are understood.
    #[prost(int32, repeated, tag = "2")]
    pub(super) accepted: Vec<i32>,
}

/// The form of an answer that keeps every bit.
pub(super) const STREAMED_CHUNKS: i32 = 1;

/// The encoding of a chunk of floats.
pub(super) const XOR: i32 = 1;

/// The samples of the series that match, both ends included.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadQuery {
    #[prost(int64, tag = "1")]
    pub(super) start_ms: i64,
    #[prost(int64, tag = "2")]
    pub(super) end_ms: i64,
    #[prost(message, repeated, tag = "3")]
    pub(super) matchers: Vec<Matcher>,
}

/// A label and its value. The type 0, which is not sent, is equality.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Matcher {
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) value: String,
}

/// A frame of an answer: chunks of series of one query.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ChunkedResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) series: Vec<ChunkedSeries>,
    #[prost(int64, tag = "2")]
    pub(super) query_index: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ChunkedSeries {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(super) chunks: Vec<Chunk>,
}

/// A chunk, whose times are in its data.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Chunk {
    #[prost(int32, tag = "3")]
    pub(super) encoding: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// A series and its samples, once its chunks are decoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimeSeries {
    pub(super) labels: Vec<Label>,
    pub(super) samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) value: f64,
    pub(super) at_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the protobuf library for Python writes it.
    #[test]
    fn a_request_is_that_of_prometheus() {
        let request = ReadRequest {
            queries: vec![ReadQuery {
                start_ms: 1,
                end_ms: 300,
                matchers: vec![Matcher {
                    name: "a".to_owned(),
                    value: "b".to_owned(),
                }],
            }],
            accepted: vec![STREAMED_CHUNKS],
        };
        let bytes = b"\x0a\x0d\x08\x01\x10\xac\x02\x1a\x06\x12\x01a\x1a\x01b\x12\x01\x01";
        assert_eq!(request.encode_to_vec(), bytes);
    }
}
