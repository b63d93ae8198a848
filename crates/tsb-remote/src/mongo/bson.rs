//! Writes BSON documents directly as bytes: a command of a hundred thousand samples is one
//! buffer, without boxed values.
//!
//! It supports only what the layouts write; the driver does the reading.
//! <https://bsonspec.org/spec.html>

use mongodb::bson::RawDocumentBuf;

use tsb_stores::error::{Error, Result};

/// The bytes of a document that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// The start positions of the open documents and arrays.
    open: Vec<usize>,
}

impl Writer {
    /// An open document.
    pub(super) fn new() -> Self {
        let mut writer = Self {
            bytes: Vec::with_capacity(1 << 12),
            open: Vec::new(),
        };
        writer.open();
        writer
    }

    /// The length so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn document(&mut self, key: impl ElementName) -> &mut Self {
        self.element(0x03, key).open();
        self
    }

    pub(super) fn array(&mut self, key: impl ElementName) -> &mut Self {
        self.element(0x04, key).open();
        self
    }

    /// Ends the innermost document or array.
    pub(super) fn end(&mut self) -> &mut Self {
        self.bytes.push(0);
        if let Some(start) = self.open.pop() {
            let length = (self.bytes.len() - start) as i32;
            self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        }
        self
    }

    pub(super) fn double(&mut self, key: impl ElementName, value: f64) -> &mut Self {
        self.element(0x01, key).bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn text(&mut self, key: impl ElementName, value: &str) -> &mut Self {
        self.element(0x02, key);
        self.bytes.extend_from_slice(&(value.len() as i32 + 1).to_le_bytes());
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(0);
        self
    }

    /// A binary value made of words of one width.
    pub(super) fn binary<const N: usize>(
        &mut self,
        key: impl ElementName,
        words: impl ExactSizeIterator<Item = [u8; N]>,
    ) -> &mut Self {
        self.element(0x05, key);
        self.bytes.extend_from_slice(&((words.len() * N) as i32).to_le_bytes());
        self.bytes.push(0);
        for word in words {
            self.bytes.extend_from_slice(&word);
        }
        self
    }

    pub(super) fn flag(&mut self, key: impl ElementName, value: bool) -> &mut Self {
        self.element(0x08, key).bytes.push(u8::from(value));
        self
    }

    /// A date, in milliseconds since the epoch.
    pub(super) fn date(&mut self, key: impl ElementName, millis: i64) -> &mut Self {
        self.element(0x09, key).bytes.extend_from_slice(&millis.to_le_bytes());
        self
    }

    pub(super) fn int(&mut self, key: impl ElementName, value: i32) -> &mut Self {
        self.element(0x10, key).bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn long(&mut self, key: impl ElementName, value: i64) -> &mut Self {
        self.element(0x12, key).bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Ends everything that is open.
    pub(super) fn finish(mut self) -> Result<RawDocumentBuf> {
        while !self.open.is_empty() {
            self.end();
        }
        RawDocumentBuf::from_bytes(self.bytes).map_err(|source| Error::Backend {
            action: "write a document for MongoDB".to_owned(),
            source: source.into(),
        })
    }

    fn open(&mut self) {
        self.open.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn element(&mut self, kind: u8, key: impl ElementName) -> &mut Self {
        self.bytes.push(kind);
        key.write(&mut self.bytes);
        self.bytes.push(0);
        self
    }
}

/// The name of an element: a string, or the index in an array.
pub(super) trait ElementName {
    fn write(self, bytes: &mut Vec<u8>);
}

impl ElementName for &str {
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }
}

impl ElementName for usize {
    fn write(self, bytes: &mut Vec<u8>) {
        let mut digits = [0; 20];
        let (mut start, mut rest) = (digits.len(), self);
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        bytes.extend_from_slice(&digits[start..]);
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{Binary, DateTime, Document, doc, spec::BinarySubtype};

    use super::*;

    #[test]
    fn the_driver_reads_what_was_written() {
        let mut writer = Writer::new();
        writer.text("insert", "samples").flag("ordered", false);
        writer.document("c").int("w", -1).long("big", i64::MIN).end();
        writer.array("documents");
        for index in [0, 9, 10, 123_456] {
            writer.document(index).date("t", -5).double("v", 0.5).end();
        }
        writer.end().binary("b", [1_i64, 2].into_iter().map(i64::to_le_bytes));
        let read = Document::try_from(writer.finish().unwrap()).unwrap();
        let one = doc! { "t": DateTime::from_millis(-5), "v": 0.5 };
        let mut bytes = vec![0; 16];
        (bytes[0], bytes[8]) = (1, 2);
        let expected = doc! {
            "insert": "samples", "ordered": false, "c": { "w": -1, "big": i64::MIN },
            "documents": [one.clone(), one.clone(), one.clone(), one],
            "b": Binary { subtype: BinarySubtype::Generic, bytes },
        };
        assert_eq!(read, expected);
    }
}
