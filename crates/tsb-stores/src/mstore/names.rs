//! The metrics that the files of a folder name: each has one number here, in every file its own.

use hashbrown::HashMap;

/// The names of all files and of all series defined since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_number: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32, foldhash::fast::RandomState>,
    // By number: whether a series with this name is defined, so that new files get it.
    defined: Vec<bool>,
    bytes: u64,
}

impl Names {
    /// The number of a name, which is new where no file has it.
    pub(super) fn number(&mut self, name: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.by_number.len() as u32;
        self.by_number.push(name.into());
        self.defined.push(false);
        self.numbers.insert(name.into(), number);
        self.bytes += 2 * (name.len() + size_of::<Box<[u8]>>()) as u64 + size_of::<u32>() as u64;
        number
    }

    /// The number of the name of a defined series.
    pub(super) fn define(&mut self, name: &[u8]) -> u32 {
        let number = self.number(name);
        if let Some(defined) = self.defined.get_mut(number as usize) {
            *defined = true;
        }
        number
    }

    /// The numbers and names of defined series.
    pub(super) fn defined(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let all = (0..).zip(&self.by_number).zip(&self.defined);
        all.filter_map(|((number, name), defined)| defined.then_some((number, &**name)))
    }

    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A name as text.
    pub(super) fn text(&self, number: u32) -> String {
        let name = self.by_number.get(number as usize).map(|name| &**name);
        super::geometry::key_of(name.unwrap_or_default())
            .map_or_else(|| format!("metric {number}"), |key| key.to_string())
    }
}
