//! The messages of remote read: `prompb/remote.proto` and `types.proto` of Prometheus.

use prost::Message;

/// Several queries, answered in their order.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) queries: Vec<ReadQuery>,
}

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

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) results: Vec<QueryResult>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryResult {
    #[prost(message, repeated, tag = "1")]
    pub(super) series: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
    #[prost(int64, tag = "2")]
    pub(super) at_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the protobuf library for Python writes and reads them.
    #[test]
    fn messages_are_those_of_prometheus() {
        let request = ReadRequest {
            queries: vec![ReadQuery {
                start_ms: 1,
                end_ms: 300,
                matchers: vec![Matcher {
                    name: "a".to_owned(),
                    value: "b".to_owned(),
                }],
            }],
        };
        let bytes = b"\x0a\x0d\x08\x01\x10\xac\x02\x1a\x06\x12\x01a\x1a\x01b";
        assert_eq!(request.encode_to_vec(), bytes);
        let bytes = b"\x0a\x19\x0a\x17\x0a\x06\x0a\x01a\x12\x01b\x12\x0d\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x82\x01";
        let response = ReadResponse::decode(&bytes[..]).unwrap();
        let series = &response.results[0].series[0];
        assert_eq!((series.labels[0].name.as_str(), series.samples[0].value), ("a", 1.0));
        assert_eq!(series.samples[0].at_ms, 16_684);
    }
}
