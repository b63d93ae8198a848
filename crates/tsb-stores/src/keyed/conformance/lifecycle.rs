//! Clauses 4, 9 and 10: closing and reopening.

use std::ops::ControlFlow;

use super::cases::{expect_value, key, listed, put_all, put_of};
use super::{Case, CheckResult, Context, of_all};
use crate::conformance::CheckOutcome;
use crate::conformance::failure::{equal, is_closed, refused};
use crate::keyed::contract::KeyedCapabilities;
use crate::store::Refusals;

pub(super) const CASES: &[Case] = &[
    of_all("c10_everything_after_close_is_closed", everything_is_closed),
    Case {
        name: "c4_reopened_without_a_close",
        applies: comes_back,
        run: reopened_without_a_close,
    },
    Case {
        name: "c9_what_was_deleted_does_not_come_back",
        applies: comes_back,
        run: deleted_stays_deleted,
    },
    Case {
        name: "c10_reopened_with_every_key",
        applies: comes_back,
        run: reopened_with_every_key,
    },
];

fn comes_back(capabilities: &KeyedCapabilities) -> bool {
    capabilities.persistent
}

fn everything_is_closed(context: &Context) -> CheckResult {
    let store = context.store()?;
    put_all(&store, &[put_of("a/b", "v")?])?;
    for _ in 0..3 {
        store.close()?;
    }
    let key = key("a/b")?;
    let puts = [put_of("a/b", "v")?];
    refused("put", store.put(&puts, &mut Refusals::new()), "Closed", is_closed)?;
    refused(
        "put of nothing",
        store.put(&[], &mut Refusals::new()),
        "Closed",
        is_closed,
    )?;
    refused("get", store.get(&key), "Closed", is_closed)?;
    refused(
        "list",
        store.list(None, &mut |_, _| ControlFlow::Continue(())),
        "Closed",
        is_closed,
    )?;
    refused("delete", store.delete(std::slice::from_ref(&key)), "Closed", is_closed)?;
    refused("delete of nothing", store.delete(&[]), "Closed", is_closed)?;
    refused("delete below", store.delete_below(Some(&key)), "Closed", is_closed)?;
    equal("capabilities", &store.capabilities(), &context.capabilities)?;
    Ok(CheckOutcome::Holds)
}

fn reopened_without_a_close(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let store = place.open()?;
    put_all(&store, &[put_of("a/1", "first")?, put_of("a/2", "v")?])?;
    put_all(&store, &[put_of("a/1", "second")?])?;
    drop(store);
    let store = place.open()?;
    expect_value(&store, "a/1", Some("second"))?;
    equal("keys", &listed(&store, None)?.len(), &2)?;
    Ok(CheckOutcome::Holds)
}

fn deleted_stays_deleted(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let store = place.open()?;
    put_all(&store, &[put_of("a/1", "v")?, put_of("a/2", "v")?, put_of("b/3", "v")?])?;
    equal("deleted", &store.delete(&[key("a/1")?])?, &1)?;
    store.delete_below(Some(&key("b")?))?;
    drop(store);
    let store = place.open()?;
    equal(
        "keys",
        &listed(&store, None)?.into_keys().collect::<Vec<_>>(),
        &vec!["a/2".to_owned()],
    )?;
    Ok(CheckOutcome::Holds)
}

fn reopened_with_every_key(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let mut closed = Vec::new();
    for round in 0..4 {
        let store = place.open()?;
        equal(
            &format!("keys before round {round}"),
            &listed(&store, None)?.len(),
            &round,
        )?;
        put_all(
            &store,
            &[put_of(format!("a/{round}"), "v")?, put_of("a/0", &round.to_string())?],
        )?;
        expect_value(&store, "a/0", Some(&round.to_string()))?;
        store.close()?;
        // The closed value lives on.
        closed.push(store);
    }
    Ok(CheckOutcome::Holds)
}
