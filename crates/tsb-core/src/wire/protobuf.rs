//! Protobuf's wire format: the fields of a message, read where they stand, and written.
//!
//! For messages of which a decoder needs a few fields of many records. It knows no schema, and
//! groups, which proto3 does not have, are an error.

use crate::bytes::varint;

/// The value of a field, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// An integer, a boolean or an enumeration.
    Varint(u64),
    /// Eight bytes, such as a double.
    Fixed64(u64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotProtobuf;

/// Reads the fields of a message in their order.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The bytes that are not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number and value of the next field; `None` at the end of the message.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Field<'a>)>, NotProtobuf> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| NotProtobuf)?;
        if number == 0 {
            return Err(NotProtobuf);
        }
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(*self.fixed()?)),
            2 => Field::Bytes(self.bytes()?),
            5 => Field::Fixed32(u32::from_le_bytes(*self.fixed()?)),
            _ => return Err(NotProtobuf),
        };
        Ok(Some((number, field)))
    }

    /// The value of the next field if it has this one-byte key, which must be of bytes.
    #[inline(always)]
    pub(crate) fn next_bytes(&mut self, key: u8) -> Result<Option<&'a [u8]>, NotProtobuf> {
        match self.rest.split_first() {
            Some((first, rest)) if *first == key => {
                self.rest = rest;
                self.bytes().map(Some)
            }
            _ => Ok(None),
        }
    }

    #[inline(always)]
    fn varint(&mut self) -> Result<u64, NotProtobuf> {
        match self.rest.split_first() {
            Some((byte, rest)) if *byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, NotProtobuf> {
        let mut value = 0;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            // The tenth byte holds the highest bit alone.
            if index == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(NotProtobuf)
    }

    #[inline(always)]
    fn bytes(&mut self) -> Result<&'a [u8], NotProtobuf> {
        let length = usize::try_from(self.varint()?).map_err(|_| NotProtobuf)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(NotProtobuf)?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline(always)]
    fn fixed<const N: usize>(&mut self) -> Result<&'a [u8; N], NotProtobuf> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(NotProtobuf)?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// The key of a field of bytes.
pub(crate) const fn bytes_key(number: u8) -> u8 {
    number << 3 | 2
}

/// Appends a field of bytes; its number is in [1, 15].
pub(crate) fn push_bytes(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(bytes_key(number));
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(message: &[u8]) -> Result<Vec<(u32, Field<'_>)>, NotProtobuf> {
        let (mut fields, mut found) = (Fields::new(message), Vec::new());
        while let Some(field) = fields.next()? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn fields_of_every_type_are_read_and_others_are_an_error() {
        let message = b"\x08\x96\x01\x12\x02hi\x19\x01\0\0\0\0\0\0\0\x25\x02\0\0\0";
        let expected = [
            (1, Field::Varint(150)),
            (2, Field::Bytes(b"hi")),
            (3, Field::Fixed64(1)),
            (4, Field::Fixed32(2)),
        ];
        assert_eq!(all(message).unwrap(), expected);
        for length in 1..message.len() {
            let is_boundary = [3, 7, 16].contains(&length);
            assert_eq!(all(&message[..length]).is_ok(), is_boundary, "{length}");
        }
        for bad in [
            b"\x00\x01".as_slice(),
            b"\x0b",
            b"\x0c",
            b"\x0e",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ] {
            assert_eq!(all(bad), Err(NotProtobuf), "{}", bad.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<u64>(), shift in 0..64, text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let value = value >> shift;
            let mut out = vec![0x08];
            varint::put(&mut out, value);
            prop_assert_eq!(out.len() - 1, varint::len(value));
            push_bytes(2, &text, &mut out);
            prop_assert_eq!(all(&out).unwrap(), [(1, Field::Varint(value)), (2, Field::Bytes(&text))]);
        }
    }
}
