//! Clauses 5 to 9 on a random history, compared with a sorted map after each step.

use std::collections::BTreeMap;

use super::cases::{key, listed, put_of};
use super::{Case, CheckResult, Context, of_all};
use crate::conformance::CheckOutcome;
use crate::conformance::failure::{Failure, equal};
use crate::conformance::rng::Rng;
use crate::keyed::contract::{KeyedStore, Put};
use crate::keyed::key::Key;
use crate::store::Refusals;

pub(super) const CASES: &[Case] = &[of_all("c7_a_random_history_is_as_the_model_says", random_history)];

const STEPS: usize = 150;
/// No key is below another.
const FOLDERS: [&str; 4] = ["a", "a-b", "a/b", "b"];

/// A key of the history: its last segment is never a folder.
fn any_key(rng: &mut Rng) -> String {
    format!("{}/k{}", rng.pick(&FOLDERS), rng.below(6))
}

fn random_history(context: &Context) -> CheckResult {
    for seed in 0..4 {
        let store = context.store()?;
        history(&store, &mut Rng::new(seed)).map_err(|failure| Failure::from(format!("seed {seed}: {failure}")))?;
    }
    Ok(CheckOutcome::Holds)
}

fn history(store: &dyn KeyedStore, rng: &mut Rng) -> Result<(), Failure> {
    let mut model: BTreeMap<String, String> = BTreeMap::new();
    for step in 0..STEPS {
        match rng.below(8) {
            0 => {
                let keys = [any_key(rng), any_key(rng)];
                let was_there = keys.iter().filter(|text| model.remove(*text).is_some()).count();
                let keys: Vec<Key> = keys.iter().map(key).collect::<Result<_, _>>()?;
                equal(&format!("step {step}: deleted"), &store.delete(&keys)?, &was_there)?;
            }
            1 if rng.one_in(4) => {
                let prefix = key(rng.pick(&FOLDERS))?;
                store.delete_below(Some(&prefix))?;
                model.retain(|text, _| !text.starts_with(&format!("{prefix}/")));
            }
            _ => {
                let mut puts: Vec<Put> = Vec::new();
                for number in 0..=rng.below(4) {
                    let (text, value) = (any_key(rng), format!("{step}.{number}"));
                    puts.push(put_of(&text, &value)?);
                    model.insert(text, value);
                }
                let ack = store.put(&puts, &mut Refusals::new())?;
                equal(&format!("step {step}: accepted"), &ack.accepted, &puts.len())?;
            }
        }
        let text = any_key(rng);
        let value = store.get(&key(&text)?)?;
        equal(&format!("step {step}: {text}"), &value.as_ref(), &model.get(&text))?;
        let prefix = rng.pick(&FOLDERS);
        let expected = model.iter().filter(|(text, _)| text.starts_with(&format!("{prefix}/")));
        let expected: BTreeMap<_, _> = expected.map(|(text, value)| (text.clone(), value.clone())).collect();
        equal(
            &format!("step {step}: below {prefix}"),
            &listed(store, Some(&key(prefix)?))?,
            &expected,
        )?;
    }
    equal("in the end", &listed(store, None)?, &model)
}
