//! Three nodes that keep each row together, one of which is killed: what is lost at each level.

use std::net::Ipv4Addr;

use tsb_core::ledger::Counter;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::{AskedRate, Plan};
use tsb_stores::conformance::libtest_mimic::Failed;

use super::{Node, PERIODIC};
use crate::daemon::{free_ports, until};
use crate::in_flight::{AROUND_OUTAGE_NS, PATIENCE_S, interrupted, interrupted_by, plan};
use crate::outage::{Survivors, opened, survives_in_parts};

/// The node that is killed, which is not the one that clients ask first.
const VICTIM: usize = 1;
/// Until the others know that a node is gone.
const DETECTION_NS: u64 = 15 * SECOND_NS;

/// Each write waits for all three, or for one, or for two of them.
pub(super) fn a_node_is_killed(arguments: &str) -> Result<(), Failed> {
    let mut nodes = started(arguments)?;
    all_have_each_write(&mut nodes)?;
    one_has_each_write(&mut nodes)?;
    two_have_each_write(&mut nodes)
}

/// Nodes at three addresses, with the same ports: the driver learns only addresses from a node.
fn started(arguments: &str) -> Result<Vec<Node>, Failed> {
    let ports = free_ports()?;
    let mut nodes: Vec<Node> = Vec::new();
    for last in 1..=3 {
        nodes.push(Node::start_at(
            Ipv4Addr::new(127, 0, 0, last),
            ports,
            arguments,
            PERIODIC,
        )?);
        await_writes(&nodes)?;
    }
    Ok(nodes)
}

/// Until every node that was started takes a write: only then can another join.
fn await_writes(nodes: &[Node]) -> Result<(), Failed> {
    let statements = format!(
        "CONSISTENCY ALL; CREATE KEYSPACE IF NOT EXISTS probe WITH replication = \
         {{'class': 'SimpleStrategy', 'replication_factor': {}}}; \
         CREATE TABLE IF NOT EXISTS probe.probe (id int PRIMARY KEY); \
         INSERT INTO probe.probe (id) VALUES (1); DROP KEYSPACE probe",
        nodes.len()
    );
    until("all nodes take a write", || nodes[0].run(&statements)).map(drop)
}

fn spec(nodes: &[Node], keyspace: &str, options: &str) -> String {
    let port = nodes[0].daemon.port();
    format!("cassandra://127.0.0.1:{port},127.0.0.3:{port}/{keyspace}?replicas=3&{options}")
}

/// 20 writes per second: three nodes and a run share the cores of one machine.
fn steady(spec: &str) -> Result<Plan, Failed> {
    plan(
        &format!("{spec}&timeout={PATIENCE_S}s"),
        AskedRate::PerSecond(20 * 54),
        AROUND_OUTAGE_NS,
        64,
    )
}

/// Until every node answers a read.
fn await_all(nodes: &[Node], keyspace: &str) -> Result<(), Failed> {
    until("all nodes answer", || {
        nodes[0].run(&format!(
            "CONSISTENCY ALL; SELECT series FROM {keyspace}.samples LIMIT 1"
        ))
    })
    .map(drop)
}

/// While a node is gone nothing is acknowledged, and nothing that was is lost: of two nodes that answer a
/// read, one was not killed. A single one may be the other, which has lost the end of what it acknowledged.
fn all_have_each_write(nodes: &mut [Node]) -> Result<(), Failed> {
    let store = opened(&spec(nodes, "of_all", "consistency=all"))?;
    survives_in_parts(&*store, Survivors::All, |_| nodes[VICTIM].kill_and_restart())
}

/// What only the dead node had is lost until it is back, and what it had only in memory is lost: each
/// such sample is named.
fn one_has_each_write(nodes: &mut [Node]) -> Result<(), Failed> {
    let spec = spec(nodes, "of_one", "consistency=one&read_consistency=all");
    let plan = steady(&spec)?;
    let run = interrupted(&plan, || {
        nodes[VICTIM].kill_and_restart()?;
        await_all(nodes, "of_one")
    })?;
    let count = |counter| run.ledger.counts.get(counter).unwrap_or(0);
    let (verified, lost) = (count(Counter::Verified), count(Counter::Lost));
    println!("of what one node had: {lost} lost, {verified} verified");
    if verified == 0 || count(Counter::Accepted) != verified + lost {
        return Err(format!("{:?}, {:?}", run.verdict, run.ledger).into());
    }
    Ok(())
}

/// A node is gone for good: the other two take and have everything.
fn two_have_each_write(nodes: &mut [Node]) -> Result<(), Failed> {
    let spec = spec(nodes, "of_two", "consistency=quorum");
    let plan = steady(&spec)?;
    let run = interrupted_by(&plan, || {
        nodes[VICTIM].daemon.kill()?;
        MonotonicClock::new().wait_until(DETECTION_NS);
        Ok(())
    })?;
    let count = |counter| run.ledger.counts.get(counter).unwrap_or(0);
    let (accepted, verified) = (count(Counter::Accepted), count(Counter::Verified));
    println!(
        "of what two nodes had: {verified} of {accepted} verified, {} unknown",
        count(Counter::Unknown)
    );
    if verified == 0 || accepted != verified {
        return Err(format!("{:?}, {:?}", run.verdict, run.ledger).into());
    }
    Ok(())
}
