//! The answer to an export: what of it was rejected.

use crate::bytes::varint;
use crate::wire::protobuf::{Field, Fields, push_bytes};

/// Maximum length of the message, in bytes.
const MAX_MESSAGE: usize = 1 << 10;

/// The part of an export that was not accepted, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// Number of data points that were rejected.
    pub rejected: u64,
    /// Why, for people; empty if nothing was rejected.
    pub message: String,
}

impl Partial {
    /// As an `ExportMetricsServiceResponse`, which is empty if nothing was rejected.
    pub fn response(&self) -> Vec<u8> {
        let (mut partial, mut response) = (Vec::new(), Vec::new());
        if self.rejected > 0 {
            partial.push(1 << 3);
            varint::put(&mut partial, self.rejected);
            let end = self.message.floor_char_boundary(MAX_MESSAGE);
            push_bytes(2, &self.message.as_bytes()[..end], &mut partial);
            push_bytes(1, &partial, &mut response);
        }
        response
    }

    /// Of such a response; `None` if it is none.
    pub fn read(response: &[u8]) -> Option<Self> {
        let mut found = Self::default();
        let mut fields = Fields::new(response);
        while let Some(field) = fields.next().ok()? {
            let (1, Field::Bytes(partial)) = field else { continue };
            let mut partial = Fields::new(partial);
            while let Some(field) = partial.next().ok()? {
                match field {
                    (1, Field::Varint(count)) => found.rejected = count,
                    (2, Field::Bytes(text)) => found.message = String::from_utf8_lossy(text).into_owned(),
                    _ => {}
                }
            }
        }
        Some(found)
    }
}
