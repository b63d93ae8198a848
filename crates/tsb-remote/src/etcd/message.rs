//! The messages of etcd's API that are used here, with the field numbers of `rpc.proto` and
//! `kv.proto` of etcd 3.4. Other fields are skipped when read, and have their defaults when
//! written. A `oneof` is declared as optional fields, which have the same encoding.

use prost::Message;
use prost::bytes::Bytes;

/// A request of the API, with its reply.
pub(super) trait Request: Message + Clone + 'static {
    /// The type of the reply.
    type Reply: Message + Default + 'static;
    /// The path of the method.
    const PATH: &'static str;
    /// Whether it may change something, so that it must not be repeated.
    const CHANGES: bool;
}

macro_rules! requests {
    ($($request:ty => $reply:ty, $path:literal, changes: $changes:literal;)*) => {
        $(impl Request for $request {
            type Reply = $reply;
            const PATH: &'static str = concat!("/etcdserverpb.", $path);
            const CHANGES: bool = $changes;
        })*
    };
}

requests! {
    Range => RangeReply, "KV/Range", changes: false;
    Ranges => TxnReply, "KV/Txn", changes: false;
    Txn => TxnReply, "KV/Txn", changes: true;
    DeleteRange => DeleteRangeReply, "KV/DeleteRange", changes: true;
    LeaseGrant => LeaseGrantReply, "Lease/LeaseGrant", changes: true;
    MemberList => MemberListReply, "Cluster/MemberList", changes: false;
    StatusRequest => StatusReply, "Maintenance/Status", changes: false;
    Authenticate => AuthenticateReply, "Auth/Authenticate", changes: false;
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) value: Bytes,
}

/// Keys from `key` (included) to `end` (excluded, `range_end` in etcd); without `end`, the single
/// key.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Range {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) end: Bytes,
    #[prost(int64, tag = "3")]
    pub(super) limit: i64,
    /// [`DESCENDING`], or 0. The server reads the whole range before it sorts.
    #[prost(int32, tag = "5")]
    pub(super) sort_order: i32,
    #[prost(bool, tag = "8")]
    pub(super) keys_only: bool,
    #[prost(bool, tag = "9")]
    pub(super) count_only: bool,
}

/// `SortOrder.DESCEND`; the sort target is the key by default.
pub(super) const DESCENDING: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeReply {
    #[prost(message, repeated, tag = "2")]
    pub(super) pairs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(super) more: bool,
    #[prost(int64, tag = "4")]
    pub(super) count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Put {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRange {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) end: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeReply {
    #[prost(int64, tag = "2")]
    pub(super) deleted: i64,
}

/// Exactly one of the three is set.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Operation {
    #[prost(message, optional, tag = "1")]
    pub(super) range: Option<Range>,
    #[prost(message, optional, tag = "2")]
    pub(super) put: Option<Put>,
    #[prost(message, optional, tag = "3")]
    pub(super) delete: Option<DeleteRange>,
}

impl From<Range> for Operation {
    fn from(range: Range) -> Self {
        Self {
            range: Some(range),
            ..Self::default()
        }
    }
}

impl From<Put> for Operation {
    fn from(put: Put) -> Self {
        Self {
            put: Some(put),
            ..Self::default()
        }
    }
}

impl From<DeleteRange> for Operation {
    fn from(delete: DeleteRange) -> Self {
        Self {
            delete: Some(delete),
            ..Self::default()
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OperationReply {
    #[prost(message, optional, tag = "1")]
    pub(super) range: Option<RangeReply>,
    #[prost(message, optional, tag = "3")]
    pub(super) delete: Option<DeleteRangeReply>,
}

/// The condition that a key does not exist: its creation revision is 0, which is the default.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Compare {
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    key: Bytes,
}

impl Compare {
    /// The key does not exist.
    pub(super) fn absent(key: Bytes) -> Self {
        const CREATE: i32 = 1;
        Self { target: CREATE, key }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Txn {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<Operation>,
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<Operation>,
}

/// A transaction that only reads.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Ranges {
    #[prost(message, repeated, tag = "2")]
    pub(super) ranges: Vec<Operation>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnReply {
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) replies: Vec<OperationReply>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseGrant {
    /// In seconds.
    #[prost(int64, tag = "1")]
    pub(super) ttl_s: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseGrantReply {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberList {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Member {
    /// It has no vote yet.
    #[prost(bool, tag = "5")]
    pub(super) is_learner: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberListReply {
    #[prost(message, repeated, tag = "2")]
    pub(super) members: Vec<Member>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusReply {
    #[prost(int64, tag = "3")]
    pub(super) file_bytes: i64,
    #[prost(int64, tag = "9")]
    pub(super) used_bytes: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Authenticate {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AuthenticateReply {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as protobuf's own rules have them: a tag is the field's number times eight and
    /// the kind (0 a number, 2 bytes).
    #[test]
    fn messages_are_the_bytes_that_the_api_describes() {
        let key = Bytes::from_static(b"k");
        let put = Put {
            key: key.clone(),
            value: Bytes::from_static(b"v"),
            lease: 5,
        };
        let txn = Txn {
            compare: vec![Compare::absent(key.clone())],
            success: vec![put.into()],
            failure: Vec::new(),
        };
        let put = [0x0a, 1, b'k', 0x12, 1, b'v', 0x18, 5];
        let mut expected = vec![0x0a, 5, 0x10, 1, 0x1a, 1, b'k'];
        expected.extend([0x12, put.len() as u8 + 2, 0x12, put.len() as u8]);
        expected.extend(put);
        assert_eq!(txn.encode_to_vec(), expected);
        let range = Range {
            key,
            limit: 300,
            sort_order: DESCENDING,
            keys_only: true,
            ..Range::default()
        };
        assert_eq!(
            range.encode_to_vec(),
            [0x0a, 1, b'k', 0x18, 0xac, 0x02, 0x28, 2, 0x40, 1]
        );
    }

    #[test]
    fn unknown_fields_are_skipped() {
        // A header, a pair with revisions and a version, `more`, and a count.
        let pair = [0x0a, 1, b'k', 0x10, 7, 0x18, 9, 0x20, 1, 0x2a, 1, b'v'];
        let mut bytes = vec![0x0a, 2, 0x18, 9, 0x12, pair.len() as u8];
        bytes.extend(pair);
        bytes.extend([0x18, 1, 0x20, 4]);
        let reply = RangeReply::decode(bytes.as_slice()).unwrap();
        assert_eq!((reply.pairs.len(), reply.more, reply.count), (1, true, 4));
        assert_eq!((&*reply.pairs[0].key, &*reply.pairs[0].value), (&b"k"[..], &b"v"[..]));
        assert!(RangeReply::decode(&bytes[..bytes.len() - 3]).is_err() || bytes.len() < 3);
    }
}
