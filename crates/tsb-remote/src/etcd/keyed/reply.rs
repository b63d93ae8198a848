//! What a server of version 2 answers: the JSON of one key or of a tree, in the flat form of
//! 2013's release candidate or with a `node`, and errors with a code.

use serde::Deserialize;

/// "Key not found".
pub(super) const KEY_NOT_FOUND: u32 = 100;
/// "Not a file": the key is a directory.
pub(super) const NOT_A_FILE: u32 = 102;
/// "Not a directory": a key above it has a value.
pub(super) const NOT_A_DIRECTORY: u32 = 104;

/// An error, by its code.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Failure {
    pub(super) error_code: u32,
    message: String,
    cause: String,
}

impl Failure {
    /// The code, 0 where the body is no error of etcd.
    pub(super) fn parse(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// As go-etcd prints it.
    pub(super) fn text(&self, status: http::StatusCode) -> String {
        if self.error_code == 0 {
            return format!("status {status} without an error of etcd");
        }
        format!("{}: {} ({})", self.error_code, self.message, self.cause)
    }
}

/// A key or a directory.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    /// With a slash at its start; the root of all has none.
    pub(super) key: String,
    pub(super) value: Option<String>,
    pub(super) dir: bool,
    nodes: Vec<Node>,
}

/// The answer to a `GET`: of the two forms one is there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reply {
    node: Option<Node>,
    key: String,
    value: Option<String>,
    dir: bool,
    kvs: Vec<FlatNode>,
}

/// A node of the flat form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FlatNode {
    key: String,
    value: Option<String>,
    dir: bool,
    kvs: Vec<FlatNode>,
}

impl From<FlatNode> for Node {
    fn from(flat: FlatNode) -> Self {
        Self {
            key: flat.key,
            value: flat.value,
            dir: flat.dir,
            nodes: flat.kvs.into_iter().map(Self::from).collect(),
        }
    }
}

impl Node {
    /// The node that a `GET` asked for.
    pub(super) fn parse(body: &[u8]) -> serde_json::Result<Self> {
        let reply: Reply = serde_json::from_slice(body)?;
        let flat = FlatNode {
            key: reply.key,
            value: reply.value,
            dir: reply.dir,
            kvs: reply.kvs,
        };
        Ok(reply.node.unwrap_or_else(|| flat.into()))
    }

    /// Every key below a directory, as etcd's key without the slash at its start, and its value.
    pub(super) fn entries(self) -> Vec<(String, String)> {
        let (mut found, mut left) = (Vec::new(), self.nodes);
        while let Some(node) = left.pop() {
            if node.dir {
                left.extend(node.nodes);
            } else {
                found.push((
                    node.key.trim_start_matches('/').to_owned(),
                    node.value.unwrap_or_default(),
                ));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_tree_are_the_same_keys() {
        let nested = br#"{"action":"get","node":{"key":"/p","dir":true,"nodes":[
            {"key":"/p/a","value":"1","modifiedIndex":7,"createdIndex":7},
            {"key":"/p/d","dir":true,"nodes":[{"key":"/p/d/b","value":"","ttl":29}]},
            {"key":"/p/empty","dir":true}]}}"#;
        let flat = br#"{"action":"get","key":"/p","dir":true,"index":9,"kvs":[
            {"key":"/p/a","value":"1"},
            {"key":"/p/d","dir":true,"kvs":[{"key":"/p/d/b","value":""}]},
            {"key":"/p/empty","dir":true}]}"#;
        let [nested, flat] = [&nested[..], flat].map(|body| Node::parse(body).unwrap());
        assert_eq!(nested, flat);
        let mut entries = nested.entries();
        entries.sort_unstable();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(entries, [pair("p/a", "1"), pair("p/d/b", "")]);
        let single = Node::parse(br#"{"action":"get","key":"/p/a","value":"x","ttl":3}"#).unwrap();
        assert_eq!((single.value.as_deref(), single.dir), (Some("x"), false));
    }

    #[test]
    fn an_error_has_its_code_and_reads_as_go_etcd_prints_it() {
        let failure = Failure::parse(br#"{"errorCode":100,"message":"Key Not Found","cause":"/a","index":3}"#);
        assert_eq!(failure.error_code, KEY_NOT_FOUND);
        assert_eq!(failure.text(http::StatusCode::NOT_FOUND), "100: Key Not Found (/a)");
        let none = Failure::parse(b"404 page not found");
        assert_eq!(none.error_code, 0);
        assert_eq!(
            none.text(http::StatusCode::NOT_FOUND),
            "status 404 Not Found without an error of etcd"
        );
    }
}
