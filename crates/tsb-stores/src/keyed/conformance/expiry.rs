//! Clauses 5 and 6: time to live.

use super::cases::{expect_value, key, listed, put_all, put_of};
use super::{Case, CheckResult, Context, KeyedPlace, of_all};
use crate::conformance::CheckOutcome;
use crate::conformance::failure::{ensure, equal};
use crate::store::Refusals;

pub(super) const CASES: &[Case] = &[
    of_all("c5_a_put_replaces_the_time_to_live", replaces_ttl),
    of_all("c6_there_until_its_time_to_live", there_until),
    of_all("c6_gone_after_its_time_to_live", gone_after),
    Case {
        name: "c6_time_goes_on_while_closed",
        applies: |capabilities| capabilities.persistent,
        run: goes_on_while_closed,
    },
];

/// Waits until keys with the time to live of the fixture that were acknowledged by now must be
/// gone.
fn wait_for_expiry(context: &Context, place: &dyn KeyedPlace) {
    let clock = place.clock();
    clock.wait_until(clock.now() + context.fixture.ttl_ns() + context.capabilities.late_expiry_ns);
}

fn replaces_ttl(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let store = place.open()?;
    let (ttl_ns, clock) = (context.fixture.ttl_ns(), place.clock());
    let now_stays = || put_of("ttl/stays", "stays");
    put_all(
        &store,
        &[
            now_stays()?.expiring(ttl_ns),
            put_of("ttl/goes", "stays")?,
            put_of("ttl/call", "goes")?.expiring(ttl_ns),
            put_of("ttl/call", "stays")?,
        ],
    )?;
    put_all(&store, &[now_stays()?, put_of("ttl/goes", "goes")?.expiring(ttl_ns)])?;
    // Renewed for much longer, before it expires.
    put_all(&store, &[put_of("ttl/renewed", "1")?.expiring(ttl_ns)])?;
    let began = clock.now();
    put_all(&store, &[put_of("ttl/renewed", "2")?.expiring(100 * ttl_ns)])?;
    wait_for_expiry(context, &*place);
    expect_value(&store, "ttl/stays", Some("stays"))?;
    expect_value(&store, "ttl/goes", None)?;
    expect_value(&store, "ttl/call", Some("stays"))?;
    let renewed = store.get(&key("ttl/renewed")?)?;
    ensure(
        renewed.as_deref() == Some("2") || clock.now() >= began + 100 * ttl_ns,
        || format!("a key that was renewed for 100 times as long is {renewed:?}"),
    )?;
    Ok(CheckOutcome::Holds)
}

/// Number of times that a machine may be too busy to look in time.
const TRIES: usize = 20;

fn there_until(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let store = place.open()?;
    let (ttl_ns, clock) = (context.fixture.ttl_ns(), place.clock());
    for part in [1, 2, 3, 4] {
        let mut is_shown = false;
        for attempt in 0..TRIES {
            let text = format!("there/{part}/{attempt}");
            let began = clock.now();
            put_all(&store, &[put_of(&text, "v")?.expiring(ttl_ns)])?;
            // With the last part, until just before the end; only virtual time can show it.
            clock.wait_until(began + ttl_ns / 4 * part - 1);
            let value = store.get(&key(&text)?)?;
            let list = listed(&store, Some(&key(format!("there/{part}"))?))?;
            if clock.now() >= began + ttl_ns {
                continue;
            }
            ensure(value.is_some() && list.contains_key(&text), || {
                format!("before {part} quarters of its time to live the key is {value:?}, in the list {list:?}")
            })?;
            is_shown = true;
            break;
        }
        if !is_shown && part < 4 {
            return Ok(CheckOutcome::NotShown("the machine is too busy to look in time"));
        }
    }
    Ok(CheckOutcome::Holds)
}

fn gone_after(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let store = place.open()?;
    let ttl_ns = context.fixture.ttl_ns();
    put_all(
        &store,
        &[put_of("gone/1", "v")?.expiring(ttl_ns), put_of("gone/2", "v")?],
    )?;
    put_all(&store, &[put_of("gone/3", "v")?.expiring(1)])?;
    wait_for_expiry(context, &*place);
    expect_value(&store, "gone/1", None)?;
    expect_value(&store, "gone/3", None)?;
    equal(
        "keys left",
        &listed(&store, None)?.into_keys().collect::<Vec<_>>(),
        &vec!["gone/2".to_owned()],
    )?;
    equal("expired keys deleted", &store.delete(&[key("gone/1")?])?, &0)?;
    put_all(&store, &[put_of("gone/1", "again")?])?;
    expect_value(&store, "gone/1", Some("again"))?;
    Ok(CheckOutcome::Holds)
}

fn goes_on_while_closed(context: &Context) -> CheckResult {
    let place = context.fixture.place()?;
    let store = place.open()?;
    let ttl_ns = context.fixture.ttl_ns();
    let puts = [
        put_of("closed/goes", "v")?.expiring(ttl_ns),
        put_of("closed/later", "v")?.expiring(1_000 * ttl_ns),
        put_of("closed/stays", "v")?,
    ];
    let _ = store.put(&puts, &mut Refusals::new())?;
    store.close()?;
    wait_for_expiry(context, &*place);
    let store = place.open()?;
    let left: Vec<_> = listed(&store, None)?.into_keys().collect();
    equal(
        "keys left",
        &left,
        &vec!["closed/later".to_owned(), "closed/stays".to_owned()],
    )?;
    Ok(CheckOutcome::Holds)
}
