//! Clients of real servers: conformance through the bridge, and what happens when a server
//! is killed or misbehaves.
//!
//! The client of Hawkular and Mohawk runs against our own endpoint, in this process.
//! Where another server is comes from the environment, as `cargo xtask ci --only servers` sets it for the
//! servers of its table; without it the tests are listed as ignored, with what is missing.

#![expect(clippy::print_stdout, reason = "what a kill cost is its result")]

use std::process::ExitCode;

mod canary;
mod cassandra;
mod certificates;
mod clickhouse;
mod daemon;
mod etcd;
mod graphite;
mod hawkular;
#[cfg(feature = "hosts")]
mod hosts;
mod in_flight;
mod influx;
mod kairosdb;
#[cfg(feature = "etcd")]
mod keyed;
mod life;
#[cfg(feature = "mongo")]
mod mongo;
mod outage;
mod places;
mod postgres;
mod prometheus;
mod questdb;
mod records;
mod relay;
mod victoriametrics;

use places::ServerKind;
use tsb_stores::conformance::libtest_mimic::{Arguments, Completion, Failed, Trial, run};
use tsb_stores::conformance::{Fixture, trials, was_writer};

/// They use MongoDB's driver to do what an administrator does.
#[cfg(not(feature = "mongo"))]
mod mongo {
    pub(crate) fn trials() -> Vec<super::Trial> {
        super::of_program(super::places::MONGO, "TSB_TEST_MONGOD", &[("all", |_| Ok(()))])
    }
}

/// They speak to etcd without a spec, by its client.
#[cfg(not(feature = "etcd"))]
mod keyed {
    pub(crate) fn trials() -> Vec<super::Trial> {
        super::of_program(super::places::ETCD, "TSB_TEST_ETCD", &[("keyed", |_| Ok(()))])
    }
}

/// A test of servers of its own, which it starts by this program.
type Test = fn(&str) -> Result<(), Failed>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let foreign = places::servers()
        .into_iter()
        .map(|server| Box::new(server) as Box<dyn Fixture>);
    let own = hawkular::servers()
        .into_iter()
        .map(|server| Box::new(server) as Box<dyn Fixture>);
    let servers: Vec<Box<dyn Fixture>> = foreign.chain(own).collect();
    if was_writer(&arguments, &servers) {
        return ExitCode::SUCCESS;
    }
    // Those that wait the longest begin first.
    let trials = victoriametrics::trials()
        .into_iter()
        .chain(servers.into_iter().flat_map(trials))
        .chain(mongo::trials())
        .chain(etcd::trials())
        .chain(influx::trials())
        .chain(keyed::trials())
        .chain(records::trials())
        .chain(prometheus::trials())
        .chain(graphite::trials())
        .chain(postgres::trials())
        .chain(clickhouse::trials())
        .chain(questdb::trials())
        .chain(cassandra::trials())
        .chain(kairosdb::trials())
        .chain(hawkular::trials())
        .collect();
    run(&arguments, trials).exit_code()
}

/// Tests, or why they cannot run: a variable has to name the program.
fn of_program(kind: ServerKind, variable: &'static str, tests: &[(&str, Test)]) -> Vec<Trial> {
    let trial = |&(name, test): &(&str, Test)| {
        let name = format!("{}-hazards::{name}", kind.feature);
        Trial::ignorable_test(name, move || match kind.missing(variable) {
            Some(why) => Ok(Completion::ignored_with(why)),
            None => test(&std::env::var(variable)?).map(|()| Completion::Completed),
        })
    };
    tests.iter().map(trial).collect()
}
