//! Clauses 1, 3, 4, 5, 8, 9, 11 and 12: puts, lists and deletions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::{Case, CheckResult, Context, of_all};
use crate::conformance::CheckOutcome;
use crate::conformance::failure::{Failure, ensure, equal};
use crate::keyed::contract::{KeyedStore, MAX_VALUE_BYTES, Put, PutAck};
use crate::keyed::key::Key;
use crate::store::{Reason, Refusals};

pub(super) const CASES: &[Case] = &[
    of_all("c1_many_threads_put_list_and_delete", many_threads),
    of_all("c3_values_come_back_to_the_byte", values_come_back),
    of_all("c3_a_long_value_is_refused_alone", a_long_value_is_refused),
    of_all("c4_an_ack_has_the_level_that_is_claimed", ack_level),
    of_all("c5_of_one_call_the_last_put_wins", last_of_a_call_wins),
    of_all("c8_a_list_has_whole_segments", list_has_whole_segments),
    of_all("c8_a_long_list_has_each_key_once", long_list),
    of_all("c8_a_visitor_ends_the_list", visitor_ends_the_list),
    of_all("c9_a_deletion_counts_what_was_there", deletion_counts),
    of_all("c9_deletes_below_a_prefix_alone", deletes_below),
    of_all("c11_a_full_store_refuses_new_keys", full),
    of_all("c12_directories_are_as_claimed", directories),
];

/// A key of the checks.
pub(super) fn key(text: impl AsRef<str>) -> Result<Key, Failure> {
    Key::new(text).map_err(|error| Failure::from(error.to_string()))
}

pub(super) fn put_of(text: impl AsRef<str>, value: &str) -> Result<Put, Failure> {
    Ok(Put::new(key(text)?, value))
}

/// Puts keys, of which none may be refused.
pub(super) fn put_all(store: &dyn KeyedStore, puts: &[Put]) -> Result<(), Failure> {
    put_acked(store, puts).map(drop)
}

/// As [`put_all`], with the ack.
fn put_acked(store: &dyn KeyedStore, puts: &[Put]) -> Result<PutAck, Failure> {
    let mut refused = Refusals::new();
    let ack = store.put(puts, &mut refused)?;
    equal("refused puts", &refused.as_slice(), &&[][..])?;
    equal("accepted and rejected", &(ack.accepted, ack.rejected), &(puts.len(), 0))?;
    Ok(ack)
}

/// Everything below a prefix. A key that is visited twice is a failure.
pub(super) fn listed(store: &dyn KeyedStore, prefix: Option<&Key>) -> Result<BTreeMap<String, String>, Failure> {
    let (mut found, mut twice) = (BTreeMap::new(), None);
    store.list(prefix, &mut |key, value| {
        if found.insert(key.to_string(), value.to_owned()).is_some() {
            twice = Some(key.clone());
        }
        ControlFlow::Continue(())
    })?;
    equal("a key that was visited twice", &twice, &None)?;
    Ok(found)
}

pub(super) fn expect_value(store: &dyn KeyedStore, text: &str, expected: Option<&str>) -> Result<(), Failure> {
    equal(
        &format!("the value of {text}"),
        &store.get(&key(text)?)?.as_deref(),
        &expected,
    )
}

fn many_threads(context: &Context) -> CheckResult {
    let store = context.store()?;
    let writer = |thread: usize| -> Result<(), Failure> {
        for round in 0..3 {
            for number in 0..20 {
                let value = format!("{round}");
                put_all(&store, &[put_of(format!("t/{thread}/{number}"), &value)?])?;
            }
            let mine = listed(&store, Some(&key(format!("t/{thread}"))?))?;
            let is_mine = mine.len() == 20 && mine.values().all(|value| *value == round.to_string());
            ensure(is_mine, || {
                format!("thread {thread} put 20 keys in round {round}, and lists {mine:?}")
            })?;
        }
        equal("deleted", &store.delete(&[key(format!("t/{thread}/0"))?])?, &1)
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|thread| scope.spawn(move || writer(thread))).collect();
        let joined = writers.into_iter().map(|writer| {
            writer
                .join()
                .map_err(|_| Failure::from("a thread panicked".to_owned()))?
        });
        joined.collect::<Result<(), Failure>>()
    })?;
    equal("keys in the end", &listed(&store, None)?.len(), &(4 * 19))?;
    Ok(CheckOutcome::Holds)
}

fn values_come_back(context: &Context) -> CheckResult {
    let store = context.store()?;
    let long = "x".repeat(100_000);
    let values = [
        "",
        " ",
        "0,RUNNING,0.0,7f3a",
        "{\"timestamp\":1}",
        "a=b&ttl=3&value=c",
        "100%25 + 7\r\n\t\\\"'",
        "\u{e9}\u{1f600}",
        "\u{0}",
        &long,
    ];
    for (number, value) in values.iter().enumerate() {
        put_all(&store, &[put_of(format!("values/a-b_c,d.e:{number}"), value)?])?;
    }
    let all = listed(&store, Some(&key("values")?))?;
    for (number, value) in values.iter().enumerate() {
        let text = format!("values/a-b_c,d.e:{number}");
        let is_same =
            all.get(&text).map(String::as_str) == Some(*value) && store.get(&key(&text)?)?.as_deref() == Some(*value);
        ensure(is_same, || format!("value {number} came back changed"))?;
    }
    Ok(CheckOutcome::Holds)
}

fn a_long_value_is_refused(context: &Context) -> CheckResult {
    let store = context.store()?;
    let puts = [
        put_of("a/0", "before")?,
        put_of("a/1", &"x".repeat(MAX_VALUE_BYTES + 1))?,
        put_of("a/2", "behind")?,
    ];
    let mut refused = Refusals::new();
    refused.push(7, Reason::Injected);
    let ack = store.put(&puts, &mut refused)?;
    equal("accepted and rejected", &(ack.accepted, ack.rejected), &(2, 1))?;
    let found: Vec<_> = refused
        .as_slice()
        .iter()
        .map(|refusal| (refusal.index, refusal.reason))
        .collect();
    equal(
        "refusals",
        &found,
        &vec![(7, Reason::Injected), (1, Reason::Unrepresentable)],
    )?;
    expect_value(&store, "a/1", None)?;
    equal("keys", &listed(&store, None)?.len(), &2)?;
    Ok(CheckOutcome::Holds)
}

fn ack_level(context: &Context) -> CheckResult {
    let store = context.store()?;
    for puts in [
        vec![],
        vec![put_of("a", "1")?],
        vec![put_of("a", "2")?, put_of("b", "1")?],
    ] {
        let ack = put_acked(&store, &puts)?;
        let claimed = context.capabilities.acknowledges;
        ensure(ack.durability >= claimed, || {
            format!("the ack says {}, the capabilities promise {claimed}", ack.durability)
        })?;
    }
    equal(
        "capabilities of another store",
        &store.capabilities(),
        &context.capabilities,
    )?;
    Ok(CheckOutcome::Holds)
}

fn last_of_a_call_wins(context: &Context) -> CheckResult {
    let store = context.store()?;
    let puts = [
        put_of("a", "1")?,
        put_of("b", "2")?,
        put_of("a", "3")?,
        put_of("b", "4")?,
        put_of("a", "5")?,
    ];
    put_all(&store, &puts)?;
    expect_value(&store, "a", Some("5"))?;
    expect_value(&store, "b", Some("4"))?;
    equal("keys", &listed(&store, None)?.len(), &2)?;
    Ok(CheckOutcome::Holds)
}

fn list_has_whole_segments(context: &Context) -> CheckResult {
    let store = context.store()?;
    let texts = [
        "a/b/1", "a/b/2/x", "a/b-c", "a/b,c/d", "a/b.c/e", "a/b0/f", "a/bc", "b/a/b",
    ];
    let puts: Vec<Put> = texts.iter().map(|text| put_of(text, text)).collect::<Result<_, _>>()?;
    put_all(&store, &puts)?;
    for (prefix, expected) in [
        (Some("a/b"), vec!["a/b/1", "a/b/2/x"]),
        (Some("a/b/2"), vec!["a/b/2/x"]),
        (Some("b"), vec!["b/a/b"]),
        (Some("a/b/1"), vec![]),
        (Some("c"), vec![]),
        (None, texts.to_vec()),
    ] {
        let found = listed(&store, prefix.map(key).transpose()?.as_ref())?;
        let expected: BTreeMap<_, _> = expected
            .iter()
            .map(|text| ((*text).to_owned(), (*text).to_owned()))
            .collect();
        equal(&format!("the list below {prefix:?}"), &found, &expected)?;
    }
    Ok(CheckOutcome::Holds)
}

/// More keys than any page holds.
const LONG: usize = 2_100;

fn long_list(context: &Context) -> CheckResult {
    let store = context.store()?;
    let puts: Vec<Put> = (0..LONG)
        .map(|number| put_of(format!("n/{number}"), "v"))
        .collect::<Result<_, _>>()?;
    put_all(&store, &puts)?;
    put_all(&store, &[put_of("m", "v")?, put_of("o", "v")?])?;
    equal("keys below the prefix", &listed(&store, Some(&key("n")?))?.len(), &LONG)?;
    equal("keys", &listed(&store, None)?.len(), &(LONG + 2))?;
    store.delete_below(Some(&key("n")?))?;
    equal("keys left", &listed(&store, None)?.len(), &2)?;
    Ok(CheckOutcome::Holds)
}

fn visitor_ends_the_list(context: &Context) -> CheckResult {
    let store = context.store()?;
    put_all(&store, &[put_of("a/1", "v")?, put_of("a/2", "v")?, put_of("a/3", "v")?])?;
    let mut visits = 0;
    store.list(None, &mut |_, _| {
        visits += 1;
        if visits == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    equal("visits until the visitor breaks", &visits, &2)?;
    Ok(CheckOutcome::Holds)
}

fn deletion_counts(context: &Context) -> CheckResult {
    let store = context.store()?;
    put_all(&store, &[put_of("a/1", "v")?, put_of("a/2", "v")?, put_of("a/3", "v")?])?;
    let keys = [key("a/1")?, key("a/none")?, key("a/3")?, key("a/1")?];
    equal("deleted", &store.delete(&keys)?, &2)?;
    equal("deleted again", &store.delete(&keys)?, &0)?;
    equal("deleted without keys", &store.delete(&[])?, &0)?;
    equal(
        "keys left",
        &listed(&store, None)?.into_keys().collect::<Vec<_>>(),
        &vec!["a/2".to_owned()],
    )?;
    expect_value(&store, "a/1", None)?;
    // Deleted keys are keys like any other afterwards.
    put_all(&store, &[put_of("a/1", "new")?])?;
    expect_value(&store, "a/1", Some("new"))?;
    Ok(CheckOutcome::Holds)
}

fn deletes_below(context: &Context) -> CheckResult {
    let store = context.store()?;
    let texts = ["a/b/1", "a/b/2/x", "a/b-c", "a/bc", "b/a/b"];
    let puts: Vec<Put> = texts.iter().map(|text| put_of(text, "v")).collect::<Result<_, _>>()?;
    put_all(&store, &puts)?;
    for (prefix, left) in [
        (Some("c"), 5),
        (Some("a/bc"), 5),
        (Some("a/b"), 3),
        (Some("a/b"), 3),
        (Some("a"), 1),
        (None, 0),
        (None, 0),
    ] {
        store.delete_below(prefix.map(key).transpose()?.as_ref())?;
        equal(
            &format!("keys left without those below {prefix:?}"),
            &listed(&store, None)?.len(),
            &left,
        )?;
    }
    Ok(CheckOutcome::Holds)
}

fn full(context: &Context) -> CheckResult {
    let Some((place, limit)) = context.fixture.bounded()? else {
        return Ok(CheckOutcome::NotShown("the fixture has no bounded store"));
    };
    let store = place.open()?;
    let puts: Vec<Put> = (0..limit)
        .map(|number| put_of(format!("k/{number}"), "v"))
        .collect::<Result<_, _>>()?;
    put_all(&store, &puts)?;
    let mixed = [
        put_of("k/0", "replaced")?,
        put_of("k/new", "v")?,
        put_of("k/1", "replaced")?,
    ];
    let mut refused = Refusals::new();
    let ack = store.put(&mixed, &mut refused)?;
    let found: Vec<_> = refused
        .as_slice()
        .iter()
        .map(|refusal| (refusal.index, refusal.reason))
        .collect();
    equal("refusals of a full store", &found, &vec![(1, Reason::Full)])?;
    equal("accepted and rejected", &(ack.accepted, ack.rejected), &(2, 1))?;
    expect_value(&store, "k/1", Some("replaced"))?;
    equal("keys", &listed(&store, None)?.len(), &limit)?;
    // One deleted key leaves room for one.
    let ttl_ns = context.fixture.ttl_ns();
    equal("deleted", &store.delete(&[key("k/0")?])?, &1)?;
    let ack = store.put(&[put_of("k/new", "v")?.expiring(ttl_ns)], &mut Refusals::new())?;
    let has_room = usize::from(!context.capabilities.names_stay);
    equal("accepted after a deletion", &ack.accepted, &has_room)?;
    let ack = store.put(&[put_of("k/newer", "v")?], &mut Refusals::new())?;
    equal("accepted without room", &ack.accepted, &0)?;
    // And so does one that has expired.
    let clock = place.clock();
    clock.wait_until(clock.now() + ttl_ns + context.capabilities.late_expiry_ns);
    let ack = store.put(&[put_of("k/newer", "v")?], &mut Refusals::new())?;
    equal("accepted after an expiry", &ack.accepted, &has_room)?;
    expect_value(&store, "k/new", None)?;
    Ok(CheckOutcome::Holds)
}

fn directories(context: &Context) -> CheckResult {
    let store = context.store()?;
    put_all(&store, &[put_of("a/b", "leaf")?, put_of("c", "leaf")?])?;
    let puts = [
        put_of("a", "above")?,
        put_of("a/b/d", "below")?,
        put_of("a/e", "beside")?,
        put_of("c/x/y", "below")?,
    ];
    let mut refused = Refusals::new();
    let ack = store.put(&puts, &mut refused)?;
    let mut found: Vec<_> = refused
        .as_slice()
        .iter()
        .map(|refusal| (refusal.index, refusal.reason))
        .collect();
    found.sort_unstable();
    let expected = if context.capabilities.directories {
        [0, 1, 3].map(|index| (index, Reason::Refused)).to_vec()
    } else {
        Vec::new()
    };
    equal("refusals", &found, &expected)?;
    equal("rejected", &ack.rejected, &expected.len())?;
    equal("keys", &listed(&store, None)?.len(), &(6 - expected.len()))?;
    expect_value(&store, "a/b", Some("leaf"))?;
    expect_value(&store, "a/e", Some("beside"))?;
    let is_put = !context.capabilities.directories;
    expect_value(&store, "a", is_put.then_some("above"))?;
    expect_value(&store, "a/b/d", is_put.then_some("below"))?;
    let (above, below) = (key("a")?, key("a/b/d")?);
    equal("deleted", &store.delete(&[above, below])?, &(2 * usize::from(is_put)))?;
    Ok(CheckOutcome::Holds)
}
