//! Commands that write many documents, with the samples that each operation stands for.

use mongodb::bson::{Document, RawDocumentBuf};

use super::bson::Writer;
use tsb_stores::error::Result;
use tsb_stores::store::Reason;

/// Size limit for adding an operation. A command may have 16 MiB; this leaves room for one more
/// operation.
const BYTES_MAX: usize = 12 << 20;
/// Maximum number of operations per command: MongoDB's own limit.
const OPERATIONS_MAX: usize = 100_000;

/// One command.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) body: RawDocumentBuf,
    /// The samples of all operations in order, as indices of the batch.
    samples: Vec<u32>,
    /// The end of each operation's samples.
    ends: Vec<u32>,
}

impl Command {
    /// How many operations it holds.
    #[cfg(test)]
    pub(super) fn operations(&self) -> usize {
        self.ends.len()
    }

    /// The samples of an operation.
    pub(super) fn samples_of(&self, operation: usize) -> &[u32] {
        let start = operation
            .checked_sub(1)
            .map_or(Some(0), |before| self.ends.get(before).copied());
        match (start, self.ends.get(operation)) {
            (Some(start), Some(&end)) => &self.samples[start as usize..end as usize],
            _ => &[],
        }
    }
}

/// Packs operations into as few commands as possible.
pub(super) struct CommandBuilder<'a> {
    /// Writes everything before the operations, and opens their array.
    head: &'a dyn Fn(&mut Writer),
    done: Vec<Command>,
    writer: Writer,
    samples: Vec<u32>,
    ends: Vec<u32>,
}

impl<'a> CommandBuilder<'a> {
    pub(super) fn new(head: &'a dyn Fn(&mut Writer)) -> Self {
        let mut writer = Writer::new();
        head(&mut writer);
        Self {
            head,
            done: Vec::new(),
            writer,
            samples: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds an operation; `write` fills its document.
    pub(super) fn push(
        &mut self,
        samples: impl IntoIterator<Item = u32>,
        write: impl FnOnce(&mut Writer),
    ) -> Result<()> {
        if self.ends.len() == OPERATIONS_MAX || self.writer.len() >= BYTES_MAX {
            self.cut()?;
        }
        self.writer.document(self.ends.len());
        write(&mut self.writer);
        self.writer.end();
        self.samples.extend(samples);
        self.ends.push(self.samples.len() as u32);
        Ok(())
    }

    /// All commands; none is without operations.
    pub(super) fn finish(mut self) -> Result<Vec<Command>> {
        if !self.ends.is_empty() {
            self.cut()?;
        }
        Ok(self.done)
    }

    fn cut(&mut self) -> Result<()> {
        let mut next = Writer::new();
        (self.head)(&mut next);
        let writer = std::mem::replace(&mut self.writer, next);
        self.done.push(Command {
            body: writer.finish()?,
            samples: std::mem::take(&mut self.samples),
            ends: std::mem::take(&mut self.ends),
        });
        Ok(())
    }
}

/// A server's reply to a command that it executed, in full or in part.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WriteReply {
    /// Failed operations: index and MongoDB's code.
    pub(super) errors: Vec<(usize, i32)>,
    /// The command was executed, but not at the requested write concern; the reason.
    pub(super) concern: Option<String>,
}

impl WriteReply {
    /// Parses a reply.
    pub(super) fn of(answer: &Document) -> Self {
        let errors = answer.get_array("writeErrors").into_iter().flatten();
        let errors = errors.filter_map(|error| {
            let error = error.as_document()?;
            Some((error.get_i32("index").ok()? as usize, error.get_i32("code").ok()?))
        });
        let concern = answer.get_document("writeConcernError").ok();
        Self {
            errors: errors.collect(),
            concern: concern.map(|error| error.get_str("errmsg").unwrap_or("no reason is given").to_owned()),
        }
    }
}

/// MongoDB's code for two documents with the same `_id`.
pub(super) const DUPLICATE_KEY: i32 = 11_000;

/// The reason for a refusal, from MongoDB's code.
pub(super) fn reason_of(code: i32) -> Reason {
    match code {
        DUPLICATE_KEY => Reason::Duplicate,
        // BSONObjectTooLarge, a document that has grown too large, and a full disk.
        10_334 | 17_419 | 17_420 | 14_031 => Reason::Full,
        _ => Reason::Refused,
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    #[test]
    fn commands_are_cut_and_their_samples_stay_known() {
        let head = |writer: &mut Writer| {
            writer.text("insert", "c").array("documents");
        };
        let mut commands = CommandBuilder::new(&head);
        for operation in 0..=OPERATIONS_MAX as u32 {
            let samples = [2 * operation, 2 * operation + 1];
            commands
                .push(samples, |writer| {
                    writer.int("v", operation as i32);
                })
                .unwrap();
        }
        let commands = commands.finish().unwrap();
        let operations: Vec<usize> = commands.iter().map(Command::operations).collect();
        assert_eq!(operations, [OPERATIONS_MAX, 1]);
        assert_eq!(commands[0].samples_of(7), [14, 15]);
        assert_eq!(
            commands[1].samples_of(0),
            [2 * OPERATIONS_MAX as u32, 2 * OPERATIONS_MAX as u32 + 1]
        );
        assert!(
            commands[1].samples_of(1).is_empty(),
            "an answer about what was not asked"
        );
        let last = Document::try_from(&commands[1].body).unwrap();
        assert_eq!(
            last,
            doc! { "insert": "c", "documents": [{ "v": OPERATIONS_MAX as i32 }] }
        );
        assert!(CommandBuilder::new(&head).finish().unwrap().is_empty());
    }

    #[test]
    fn a_reply_lists_the_failed_operations() {
        let answer = doc! {
            "ok": 1.0, "n": 1,
            "writeErrors": [{ "index": 3, "code": 11_000, "errmsg": "E" }, { "index": 4, "code": 17_419 }, "odd"],
            "writeConcernError": { "code": 64, "errmsg": "waiting timed out" },
        };
        let reply = WriteReply::of(&answer);
        assert_eq!(reply.errors, [(3, 11_000), (4, 17_419)]);
        assert_eq!(reply.concern.as_deref(), Some("waiting timed out"));
        assert_eq!(WriteReply::of(&doc! { "ok": 1.0 }), WriteReply::default());
        assert_eq!(
            (reason_of(11_000), reason_of(17_419), reason_of(2)),
            (Reason::Duplicate, Reason::Full, Reason::Refused)
        );
    }
}
