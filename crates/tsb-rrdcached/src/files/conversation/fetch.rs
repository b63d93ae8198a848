//! The `FETCH` commands: rows of a file, as text or as bytes.

use std::fmt::Write;

use tsb_core::wire::rrdcached::{Command, Reply, Words, scientific};
use tsb_rrd::{Cf, FORECASTS, Fetched};

use super::super::error::FileError;
use super::Conversation;
use super::execute::{CommandResult, needed};

/// Without a start, rows of the last day are returned.
const DAY_S: i64 = 86_400;

impl Conversation {
    pub(super) fn fetch(&mut self, command: Command, mut words: Words<'_>) -> CommandResult {
        let (file, cf) = (needed(command, &mut words)?, needed(command, &mut words)?);
        let now_s = self.cache.shared.clock.wall().as_secs();
        let start_s = time(words.next().as_deref(), "start", now_s, now_s - DAY_S)?;
        let end_s = time(words.next().as_deref(), "end", now_s, now_s)?;
        let columns: Vec<_> = words.collect();
        if Cf::from_name(&cf).is_none() && !FORECASTS.contains(&&*cf) {
            return Err(format!("rrd_fetch_r failed: unknown consolidation function '{cf}'"));
        }
        let fetched = self.cache.fetch(&file, &cf, (start_s, end_s), &mut self.session);
        let (sources, fetched) = fetched.map_err(|error| match error {
            FileError::Missing(path) => format!("rrd_fetch_r failed: opening '{path}': No such file or directory"),
            FileError::Create(what) => format!("rrd_fetch_r failed: {what}"),
            error => error.to_string(),
        })?;
        let mut chosen = Vec::new();
        for column in &columns {
            let index = sources.iter().position(|source| source == column);
            chosen.push(index.ok_or_else(|| format!("field {column} not found in {}", sources.join(" ")))?);
        }
        if columns.is_empty() {
            chosen = (0..sources.len()).collect();
        }
        if command == Command::FetchBin {
            self.reply_binary(&sources, &chosen, &fetched);
        } else {
            self.reply_text(&sources, &chosen, &fetched);
        }
        Ok(())
    }

    fn reply_head(&mut self, lines: usize, chosen: usize, fetched: &Fetched) {
        self.append_reply(Reply::Lines(lines, "Success"));
        let head = format!(
            "FlushVersion: 1\nStart: {}\nEnd: {}\nStep: {}\nDSCount: {chosen}\n",
            fetched.start_s, fetched.end_s, fetched.step_s
        );
        self.reply.extend_from_slice(head.as_bytes());
    }

    fn reply_text(&mut self, sources: &[String], chosen: &[usize], fetched: &Fetched) {
        let rows = fetched.values.len() / sources.len().max(1);
        self.reply_head(6 + rows, chosen.len(), fetched);
        let names: Vec<&str> = chosen.iter().map(|&index| sources[index].as_str()).collect();
        let mut text = format!("DSName: {}\n", names.join(" "));
        let mut end_s = fetched.start_s;
        for row in fetched.values.chunks_exact(sources.len().max(1)) {
            end_s += fetched.step_s;
            let _ = write!(text, "{end_s:>10}:");
            for &index in chosen {
                text.push(' ');
                scientific(&mut text, row[index], 17);
            }
            text.push('\n');
        }
        self.reply.extend_from_slice(text.as_bytes());
    }

    fn reply_binary(&mut self, sources: &[String], chosen: &[usize], fetched: &Fetched) {
        let width = sources.len().max(1);
        self.reply_head(5 + chosen.len(), chosen.len(), fetched);
        for &index in chosen {
            let rows = fetched.values.len() / width;
            let head = format!("DSName-{}: BinaryData {rows} 8 LITTLE\n", sources[index]);
            self.reply.extend_from_slice(head.as_bytes());
            let column = fetched.values.iter().skip(index).step_by(width);
            self.reply.extend(column.flat_map(|value| value.to_le_bytes()));
            self.reply.push(b'\n');
        }
    }
}

/// Parses a time in seconds since the epoch; a negative number counts from now.
fn time(word: Option<&str>, which: &str, now_s: i64, default_s: i64) -> CommandResult<i64> {
    let Some(word) = word else { return Ok(default_s) };
    let seconds: i64 = word
        .parse()
        .map_err(|_| format!("Cannot parse {which} time `{word}': Only simple integers are allowed."))?;
    Ok(if seconds < 0 {
        now_s.saturating_add(seconds)
    } else {
        seconds
    })
}
