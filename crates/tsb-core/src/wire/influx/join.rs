//! Which series may share a line, and the text between their values.

use std::collections::HashMap;

use super::{MAX_FIELDS, WireName};
use crate::wire::output_buffer::ShortText;

/// Marks a series that starts a line of its own; the index of the empty text.
const ALONE: u32 = 0;

/// For each series, how it continues the line of the previous series.
#[derive(Debug)]
pub(super) struct Joins {
    /// Index of a text, per series.
    numbers: Vec<u32>,
    /// The empty text, and each distinct `,field=` once. Most fleets have few fields, so the
    /// texts stay in the first-level cache, and the indexes in the second.
    texts: Vec<ShortText>,
}

impl Joins {
    /// For series in the order of their ids.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a WireName>) -> Self {
        let mut joins = Self {
            numbers: Vec::new(),
            texts: vec![ShortText::EMPTY],
        };
        let mut known = HashMap::new();
        let (mut head, mut fields) = (None, 0);
        for name in names {
            let may_join = head == Some(&name.head) && fields < MAX_FIELDS;
            let text = ShortText::new(format!(",{}=", name.field).as_bytes()).filter(|_| may_join);
            let number = text.map_or(ALONE, |text| {
                *known.entry(&name.field).or_insert_with(|| {
                    joins.texts.push(text);
                    joins.texts.len() as u32 - 1
                })
            });
            fields = if number == ALONE { 1 } else { fields + 1 };
            joins.numbers.push(number);
            head = Some(&name.head);
        }
        joins
    }

    /// The text before the value of a series that continues a line; empty for one that starts a
    /// line.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<&ShortText> {
        self.texts.get(*self.numbers.get(index)? as usize)
    }

    /// Whether a series always starts a line, at any position in a batch.
    #[inline(always)]
    pub(super) fn is_alone(&self, index: usize) -> bool {
        self.numbers.get(index).is_none_or(|number| *number == ALONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_join_whose_heads_agree_and_whose_field_is_short() {
        let name = |head: &str, field: &str| WireName {
            head: head.to_owned(),
            field: field.to_owned(),
        };
        let long = "f".repeat(ShortText::ROOM - 1);
        let names = [
            name("m,a=1", "x"),
            name("m,a=1", "y"),
            name("m,a=2", "x"),
            name("m,a=2", "y"),
            name("m,a=2", &long),
            name("m,a=2", "x"),
        ];
        let joins = Joins::new(names.iter());
        let alone: Vec<bool> = (0..names.len()).map(|index| joins.is_alone(index)).collect();
        assert_eq!(alone, [true, false, true, false, true, false]);
        assert_eq!(joins.get(0).map(ShortText::length), Some(0));
        assert_eq!(joins.get(5).map(ShortText::length), Some(3));
        // `,y=` is there once, and so is `,x=`.
        assert_eq!(joins.texts.len(), 3);
        assert!(joins.get(names.len()).is_none() && joins.is_alone(names.len()));
    }
}
