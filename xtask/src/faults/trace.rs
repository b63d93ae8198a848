//! Parses the output of `strace -f -y -xx`: the system calls of a process that change files or
//! promise something about them, each with its beginning and its end.
//!
//! What is written through a mapping is not in a trace; [`Trace::mapped`] names such files.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// What strace is asked for.
pub(super) const CALLS: &str = "trace=open,openat,creat,close,dup,dup2,dup3,fcntl,write,writev,pwrite64,pwritev,\
    pwritev2,lseek,fsync,fdatasync,syncfs,sync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,\
    ftruncate,truncate,fallocate,link,linkat,symlink,symlinkat,copy_file_range,sendfile,splice,sendto,sendmsg,mmap";

/// A call that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<Argument>,
    /// What it returned, 0 or more.
    pub(super) result: u64,
}

/// An argument as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// A descriptor, and what it stands for.
    Descriptor(i64, PathBuf),
    /// A text: a path, or bytes.
    Bytes(Vec<u8>),
    /// Buffers one after the other.
    Buffers(Vec<Vec<u8>>),
    /// A number.
    Number(i64),
    /// Flags and the like, as strace prints them.
    Words(String),
}

/// The beginning or the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Begins(usize),
    Ends(usize),
}

/// The calls of a process, and the order in which they began and ended.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) calls: Vec<Call>,
    pub(super) events: Vec<Event>,
    /// Files that were mapped so that writes through the mapping reach them.
    pub(super) mapped: Vec<PathBuf>,
}

/// Reads what `strace -f -o FILE` wrote.
pub(super) fn read(text: &str) -> Result<Trace> {
    let mut trace = Trace::default();
    // By process: the half line of a call that has not ended, and where its beginning stands.
    let mut open: HashMap<&str, (String, usize)> = HashMap::new();
    // Calls that ended well, by the place of their beginning among `begun`.
    let mut whole: HashMap<usize, Call> = HashMap::new();
    let mut order: Vec<(bool, usize)> = Vec::new();
    let mut begun = 0;
    for (number, line) in text.lines().enumerate() {
        let Some((process, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        let context = || {
            format!(
                "line {} of a trace: {}",
                number + 1,
                rest.chars().take(200).collect::<String>()
            )
        };
        let (line, id) = if let Some(head) = rest.strip_suffix(" <unfinished ...>") {
            open.insert(process, (head.to_owned(), begun));
            order.push((true, begun));
            begun += 1;
            continue;
        } else if let Some((_, tail)) = rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            let Some((head, id)) = open.remove(process) else {
                continue;
            };
            (head + tail, id)
        } else if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        } else {
            order.push((true, begun));
            begun += 1;
            (rest.to_owned(), begun - 1)
        };
        order.push((false, id));
        if let Some(call) = parse(&line).with_context(context)? {
            whole.insert(id, call);
        }
    }
    trace.put(order, whole);
    Ok(trace)
}

impl Trace {
    fn put(&mut self, order: Vec<(bool, usize)>, mut whole: HashMap<usize, Call>) {
        let mut places: HashMap<usize, usize> = HashMap::new();
        for (begins, id) in order {
            if begins && let Some(call) = whole.remove(&id) {
                self.note_mapping(&call);
                places.insert(id, self.calls.len());
                self.events.push(Event::Begins(self.calls.len()));
                self.calls.push(call);
            } else if !begins && let Some(&place) = places.get(&id) {
                self.events.push(Event::Ends(place));
            }
        }
    }

    fn note_mapping(&mut self, call: &Call) {
        let words = |index: usize, what: &str| matches!(call.arguments.get(index), Some(Argument::Words(words)) if words.contains(what));
        if call.name == "mmap"
            && words(2, "PROT_WRITE")
            && words(3, "MAP_SHARED")
            && let Some(Argument::Descriptor(_, path)) = call.arguments.get(4)
            && !self.mapped.contains(path)
        {
            self.mapped.push(path.clone());
        }
    }
}

/// A whole line; `None` where the call failed or did not end.
fn parse(line: &str) -> Result<Option<Call>> {
    let (name, rest) = line.split_once('(').context("no call")?;
    let (arguments, result) = rest.rsplit_once(" = ").context("no result")?;
    let arguments = arguments
        .trim_end()
        .strip_suffix(')')
        .context("no end of the arguments")?;
    let digits = result.split(['<', ' ']).next().unwrap_or_default();
    let result = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    };
    // An error is negative, and what did not end has a question mark.
    let Some(result) = result else { return Ok(None) };
    let arguments = split(arguments).into_iter().map(argument).collect::<Result<_>>()?;
    Ok(Some(Call {
        name: name.to_owned(),
        arguments,
        result,
    }))
}

/// At the commas that stand in no quotes and no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut is_quoted) = (Vec::new(), 0, 0_i32, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'[' | b'{' if !is_quoted => depth += 1,
            b']' | b'}' if !is_quoted => depth -= 1,
            b',' if !is_quoted && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn argument(text: &str) -> Result<Argument> {
    if text.starts_with("[{") {
        let buffers = text.split("iov_base=").skip(1);
        let buffers = buffers.map(|rest| bytes(rest.split(", iov_len").next().unwrap_or_default()));
        return Ok(Argument::Buffers(buffers.collect::<Result<_>>()?));
    }
    if text.starts_with('"') {
        return Ok(Argument::Bytes(bytes(text)?));
    }
    if let Some((number, path)) = text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        let number = if number == "AT_FDCWD" {
            -1
        } else {
            number.parse().context("no descriptor")?
        };
        return Ok(Argument::Descriptor(number, path_of(&unescape(path)?)));
    }
    Ok(text
        .parse()
        .map_or_else(|_| Argument::Words(text.to_owned()), Argument::Number))
}

/// A quoted text; one that strace cut off is an error.
fn bytes(text: &str) -> Result<Vec<u8>> {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        bail!("a text that is cut off or not quoted: ask strace for more with -s");
    };
    unescape(inner)
}

/// `\x` and two digits for each byte.
fn unescape(text: &str) -> Result<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).context("no hexadecimal digit");
    if !text.starts_with("\\x") {
        return Ok(text.as_bytes().to_vec());
    }
    let pairs = text.as_bytes().chunks(4);
    let pairs = pairs.map(|four| match *four {
        [b'\\', b'x', high, low] => Ok((digit(high)? * 16 + digit(low)?) as u8),
        _ => bail!("bytes that are not written as \\x and two digits"),
    });
    pairs.collect()
}

fn path_of(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `strace -xx` prints it.
    fn hex(text: &str) -> String {
        text.bytes()
            .fold(String::new(), |hex, byte| hex + &format!("\\x{byte:02x}"))
    }

    #[test]
    fn calls_are_read_with_their_arguments() {
        let text = format!(
            "7 openat(AT_FDCWD<{}>, \"{}\", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 9<{}>\n\
             7 pwrite64(9<{}>, \"{}\", 3, 4096) = 3\n\
             7 writev(9<{}>, [{{iov_base=\"{}\", iov_len=1}}, {{iov_base=\"{}\", iov_len=1}}], 2) = 2\n\
             7 unlink(\"{}\") = -1 ENOENT (No such file or directory)\n7 +++ exited with 0 +++\n",
            hex("/tmp"),
            hex("/tmp/a"),
            hex("/tmp/a"),
            hex("/tmp/a"),
            hex("x,y"),
            hex("/tmp/a"),
            hex("1"),
            hex("2"),
            hex("b"),
        );
        let trace = read(&text).expect("a trace");
        let names: Vec<&str> = trace.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["openat", "pwrite64", "writev"]);
        assert_eq!(trace.calls[0].result, 9);
        assert_eq!(trace.calls[0].arguments[1], Argument::Bytes(b"/tmp/a".to_vec()));
        let nine = Argument::Descriptor(9, "/tmp/a".into());
        assert_eq!(
            trace.calls[1].arguments,
            [
                nine,
                Argument::Bytes(b"x,y".to_vec()),
                Argument::Number(3),
                Argument::Number(4096)
            ]
        );
        assert_eq!(
            trace.calls[2].arguments[1],
            Argument::Buffers(vec![b"1".to_vec(), b"2".to_vec()])
        );
    }

    #[test]
    fn a_call_ends_where_it_is_resumed() {
        let text = format!(
            "7 fsync(9<{0}> <unfinished ...>\n8 write(9<{0}>, \"{1}\", 1) = 1\n7 <... fsync resumed>) = 0\n\
             8 write(9<{0}>, \"{1}\", 1 <unfinished ...>\n",
            hex("/tmp/a"),
            hex("x")
        );
        let trace = read(&text).expect("a trace");
        // The last one never ended, and says nothing.
        assert_eq!(
            trace.events,
            [Event::Begins(0), Event::Begins(1), Event::Ends(1), Event::Ends(0)]
        );
    }

    #[test]
    fn shared_mappings_are_named_and_cut_texts_are_errors() {
        let text = format!(
            "7 mmap(NULL, 32768, PROT_READ|PROT_WRITE, MAP_SHARED, 6<{0}>, 0) = 0x7f00\n\
             7 mmap(NULL, 32768, PROT_READ, MAP_SHARED, 6<{1}>, 0) = 0x7f00\n",
            hex("/tmp/shm"),
            hex("/tmp/b")
        );
        assert_eq!(read(&text).expect("a trace").mapped, [PathBuf::from("/tmp/shm")]);
        let cut = format!("7 write(9<{}>, \"{}\"..., 100) = 100\n", hex("/a"), hex("x"));
        assert!(read(&cut).is_err());
    }
}
