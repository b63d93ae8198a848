//! Mutates JSON so that it stays valid JSON.

use serde_json::{Map, Value};

/// Generates texts from a corpus; the same seed gives the same texts.
#[derive(Debug)]
pub(crate) struct Changer {
    state: u64,
    corpus: Vec<Value>,
}

impl Changer {
    /// Uses the texts of the corpus that are JSON.
    pub(crate) fn new(seed: u64, corpus: &[String]) -> Self {
        let trees = corpus.iter().filter_map(|text| serde_json::from_str(text).ok());
        Self {
            state: seed,
            corpus: trees.collect(),
        }
    }

    /// A text of the corpus with a few nodes changed; `None` if none is JSON.
    pub(crate) fn next_input(&mut self) -> Option<String> {
        let index = self.below(self.corpus.len());
        let mut tree = self.corpus.get(index)?.clone();
        for _ in 0..1 << self.below(4) {
            let depth = self.below(12);
            self.change(&mut tree, depth);
        }
        Some(tree.to_string())
    }

    /// Changes a node about `depth` levels down.
    fn change(&mut self, node: &mut Value, depth: usize) {
        let children = match node {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        if depth == 0 || children == 0 {
            *node = self.other(node);
            return;
        }
        let index = self.below(children);
        let is_cut = self.below(20) == 0;
        match node {
            Value::Array(items) if is_cut => drop(items.remove(index)),
            Value::Array(items) => self.change(&mut items[index], depth - 1),
            Value::Object(fields) => {
                let Some(key) = fields.keys().nth(index).cloned() else {
                    return;
                };
                if is_cut {
                    fields.remove(&key);
                } else if let Some(child) = fields.get_mut(&key) {
                    self.change(child, depth - 1);
                }
            }
            _ => {}
        }
    }

    /// A replacement for a node.
    fn other(&mut self, node: &Value) -> Value {
        let numbers = [0.0, -1.0, 0.5, 1e308, -1e-308, 9_007_199_254_740_993.0];
        let texts = [
            "",
            "nan",
            "-0",
            "\u{1b}[2J",
            "=1+1",
            "memory:",
            "sqlite:/x?commit=1s",
            "9e999s",
            "\u{fc}",
        ];
        match self.below(9) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => Value::from(u64::MAX),
            3 => Value::from(i64::MIN),
            4 => Value::from(numbers[self.below(numbers.len())]),
            5 => Value::from(texts[self.below(texts.len())]),
            6 => Value::Array(vec![node.clone(), node.clone()]),
            7 => Value::Object(Map::new()),
            _ => match node.as_f64() {
                Some(number) => Value::from(number * 1e6),
                None => Value::Array(Vec::new()),
            },
        }
    }

    /// SplitMix64.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}
