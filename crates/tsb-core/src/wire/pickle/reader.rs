//! Parses pickles to plain objects: a stack machine without any callable.
//!
//! Memory is bounded by the pickle's length: each opcode creates at most one object, and an object
//! fetched from the memo is shared, not copied.

use crate::bytes::{cut, cut_slice};

/// An object. Its members are indexes of other objects.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Object<'a> {
    None,
    Integer(i64),
    /// An integer beyond 64 bits, which no sample needs.
    Huge,
    Float(f64),
    Text(&'a [u8]),
    List(Vec<u32>),
    Tuple(Vec<u32>),
}

/// Every object of one pickle.
#[derive(Debug, Default)]
pub(super) struct Reader<'a> {
    objects: Vec<Object<'a>>,
    stack: Vec<u32>,
    /// Height of the stack at each mark.
    marks: Vec<usize>,
    memo: Vec<Option<u32>>,
}

/// The highest memo index that is kept: each costs at least two bytes of pickle.
const MAX_MEMO: usize = super::MAX_PICKLE;

impl<'a> Reader<'a> {
    /// Parses a pickle; returns its objects and the index of the result. `None` if it is not a
    /// pickle of plain objects.
    pub(super) fn load(mut bytes: &'a [u8]) -> Option<(Self, u32)> {
        let mut reader = Self::default();
        loop {
            let (&code, rest) = bytes.split_first()?;
            bytes = rest;
            if code == b'.' {
                let top = reader.stack.pop()?;
                return Some((reader, top));
            }
            reader.step(code, &mut bytes)?;
        }
    }

    pub(super) fn object(&self, number: u32) -> Option<&Object<'a>> {
        self.objects.get(number as usize)
    }

    fn step(&mut self, code: u8, bytes: &mut &'a [u8]) -> Option<()> {
        match code {
            0x80 => (cut::<1>(bytes)?[0] <= 5).then_some(()), // PROTO
            0x95 => cut::<8>(bytes).map(|_| ()),              // FRAME
            b'(' => {
                self.marks.push(self.stack.len());
                Some(())
            }
            b'0' => self.stack.pop().map(|_| ()), // POP
            b'N' => self.push(Object::None),
            b'K' => self.push(Object::Integer(i64::from(cut::<1>(bytes)?[0]))),
            b'M' => self.push(Object::Integer(i64::from(u16::from_le_bytes(cut(bytes)?)))),
            b'J' => self.push(Object::Integer(i64::from(i32::from_le_bytes(cut(bytes)?)))),
            b'G' => self.push(Object::Float(f64::from_be_bytes(cut(bytes)?))),
            0x88 => self.push(Object::Integer(1)), // NEWTRUE
            0x89 => self.push(Object::Integer(0)), // NEWFALSE
            0x8a => self.long(bytes),
            b'I' | b'L' | b'F' => self.number(code, bytes),
            b'X' | b'T' => {
                let length = u32::from_le_bytes(cut(bytes)?) as usize;
                self.text(bytes, length)
            }
            0x8c | b'U' => {
                let [length] = cut(bytes)?;
                self.text(bytes, usize::from(length))
            }
            b'q' => {
                let [memo] = cut(bytes)?;
                self.put(usize::from(memo))
            }
            b'r' => {
                let memo = u32::from_le_bytes(cut(bytes)?);
                self.put(memo as usize)
            }
            0x94 => self.put(self.memo.len()), // MEMOIZE
            b'h' => {
                let [memo] = cut(bytes)?;
                self.get(usize::from(memo))
            }
            b'j' => {
                let memo = u32::from_le_bytes(cut(bytes)?);
                self.get(memo as usize)
            }
            b'p' => self.put(decimal(line(bytes)?)?),
            b'g' => self.get(decimal(line(bytes)?)?),
            _ => self.gather(code),
        }
    }

    /// Executes the opcodes that take objects from the stack.
    fn gather(&mut self, code: u8) -> Option<()> {
        match code {
            b']' => self.push(Object::List(Vec::new())),
            b')' => self.push(Object::Tuple(Vec::new())),
            0x85..=0x87 => {
                let start = self.stack.len().checked_sub(usize::from(code - 0x84))?;
                let members = self.since(start)?;
                self.push(Object::Tuple(members))
            }
            b't' | b'l' => {
                let start = self.marks.pop()?;
                let members = self.since(start)?;
                self.push(if code == b't' {
                    Object::Tuple(members)
                } else {
                    Object::List(members)
                })
            }
            b'a' => {
                let start = self.stack.len().checked_sub(1)?;
                self.append(start)
            }
            b'e' => {
                let start = self.marks.pop()?;
                self.append(start)
            }
            _ => None,
        }
    }

    fn push(&mut self, object: Object<'a>) -> Option<()> {
        self.stack.push(u32::try_from(self.objects.len()).ok()?);
        self.objects.push(object);
        Some(())
    }

    /// Removes the objects from `start` on from the stack. Must not cross a mark.
    fn since(&mut self, start: usize) -> Option<Vec<u32>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        (start >= floor && start <= self.stack.len()).then(|| self.stack.split_off(start))
    }

    /// Appends the stack's objects from `start` on to the list below them.
    fn append(&mut self, start: usize) -> Option<()> {
        let members = self.since(start)?;
        let list = *self.stack.last()?;
        match self.objects.get_mut(list as usize)? {
            Object::List(list) => list.extend(members),
            _ => return None,
        }
        Some(())
    }

    fn put(&mut self, memo: usize) -> Option<()> {
        let top = *self.stack.last()?;
        if memo >= MAX_MEMO {
            return None;
        }
        if memo >= self.memo.len() {
            self.memo.resize(memo + 1, None);
        }
        self.memo[memo] = Some(top);
        Some(())
    }

    fn get(&mut self, memo: usize) -> Option<()> {
        let object = (*self.memo.get(memo)?)?;
        self.stack.push(object);
        Some(())
    }

    fn text(&mut self, bytes: &mut &'a [u8], length: usize) -> Option<()> {
        let text = cut_slice(bytes, length)?;
        self.push(Object::Text(text))
    }

    /// LONG1: an integer with its number of bytes.
    fn long(&mut self, bytes: &mut &'a [u8]) -> Option<()> {
        let [length] = cut(bytes)?;
        let digits = cut_slice(bytes, usize::from(length))?;
        let is_negative = digits.last().is_some_and(|last| *last >= 0x80);
        let mut integer = [if is_negative { 0xff } else { 0 }; 8];
        let Some(room) = integer.get_mut(..digits.len()) else {
            return self.push(Object::Huge);
        };
        room.copy_from_slice(digits);
        self.push(Object::Integer(i64::from_le_bytes(integer)))
    }

    /// The decimal numbers of protocol 0.
    fn number(&mut self, code: u8, bytes: &mut &'a [u8]) -> Option<()> {
        let text = std::str::from_utf8(line(bytes)?).ok()?;
        let text = if code == b'L' {
            text.strip_suffix('L').unwrap_or(text)
        } else {
            text
        };
        if code == b'F' {
            return self.push(Object::Float(text.parse().ok()?));
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.push(text.parse().map_or(Object::Huge, Object::Integer))
    }
}

/// The bytes up to the next line feed.
fn line<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = memchr::memchr(b'\n', bytes)?;
    let (line, rest) = bytes.split_at(end);
    *bytes = &rest[1..];
    Some(line)
}

fn decimal(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
