//! The lines of an answer, one by one.

use std::fmt;

use super::BodyChunks;
use tsb_stores::error::Result;

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Reads an answer line by line; empty lines are skipped.
pub struct LineReader {
    body: Option<BodyChunks>,
    /// Bytes that no line has been made of yet.
    unread: Vec<u8>,
    /// The part of them that was returned, or holds no line feed.
    start: usize,
    searched: usize,
}

impl LineReader {
    /// The lines of a body.
    pub const fn new(body: BodyChunks) -> Self {
        Self {
            body: Some(body),
            unread: Vec::new(),
            start: 0,
            searched: 0,
        }
    }

    /// The next line, without its line feed; `None` at the end.
    ///
    /// # Errors
    /// As [`BodyChunks::next`], and for a line of more than 16 MiB.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            let found = self.unread[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(place) = found {
                let end = self.searched + place;
                let line = self.unread[self.start..end].to_vec();
                (self.start, self.searched) = (end + 1, end + 1);
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            self.unread.drain(..self.start);
            (self.start, self.searched) = (0, self.unread.len());
            let Some(body) = &mut self.body else {
                let rest = std::mem::take(&mut self.unread);
                self.searched = 0;
                return Ok(Some(rest).filter(|rest| !rest.trim_ascii().is_empty()));
            };
            if self.unread.len() > LINE_BYTES_MAX {
                return Err(body.unanswered(format!("a line is longer than {LINE_BYTES_MAX} bytes")));
            }
            match body.next().await? {
                Some(bytes) => self.unread.extend_from_slice(&bytes),
                None => self.body = None,
            }
        }
    }
}

impl fmt::Debug for LineReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineReader")
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}
