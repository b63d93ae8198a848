//! The drain against what can be said without a simulation, and its fingerprint.

use super::*;
use crate::device::tests::profile;

const COSTS: DrainCosts = DrainCosts {
    accept_ns: 400,
    write_ns: 10_000,
    value_ns: 500,
    read_ns: 2_000,
    files_at_once: 1,
    is_in_seconds: false,
};

fn at_once(files: usize, updates: u64) -> DrainScenario {
    DrainScenario {
        files,
        updates,
        interval_ns: 0,
        data_step_s: 300,
        timeout_ns: 3_600 * SECOND_NS,
        ..DrainScenario::default()
    }
}

#[test]
fn a_warm_drain_takes_its_work_on_the_cores_and_then_its_pages() {
    let found = drain(&at_once(1_000, 10), &COSTS, &profile());
    assert_eq!((found.accepted, found.left, found.writes), (10_000, 10_000, 1_000));
    assert_eq!(
        (found.writes_before_drain, found.waiting_max, found.queued_max),
        (0, 10_000, 1_000)
    );
    // 1,000 writes of 15 us on two cores.
    assert_eq!((found.drain_ns(), found.core_ns), (7_500_000, 15_000_000));
    // Header, two archives of ten rows and two of one row; some cross a page, and some are on the
    // header's page.
    let pages = found.pages_written - 1_000_u64.div_ceil(16);
    assert!((4_850..5_150).contains(&pages), "{pages}");
    assert_eq!(found.sync_ns(), found.pages_written * 8_000 + 200_000);
    let one = DrainScenario {
        threads: 1,
        ..at_once(1_000, 10)
    };
    assert_eq!(drain(&one, &COSTS, &profile()).drain_ns(), 15_000_000);
}

#[test]
fn a_cold_drain_waits_for_reads_and_reading_ahead_hides_them() {
    let cold = DrainScenario {
        is_cold: true,
        ..at_once(2_000, 1)
    };
    let found = drain(&cold, &COSTS, &profile());
    // Header and two rows, but for rows on the header's page.
    assert!((5_800..6_000).contains(&found.pages_read), "{}", found.pages_read);
    // The headers are read one by one while updates are accepted.
    let accepted_ms = found.accepted_at_ns / 1_000_000;
    assert!((161..169).contains(&accepted_ms), "{accepted_ms}");
    // Four threads with a read of 80 us each: 50,000 reads per second.
    let rows = found.pages_read - 2_000;
    let expected_ns = rows * 80_000 / 4;
    assert!(
        (expected_ns..expected_ns * 3 / 2).contains(&found.drain_ns()),
        "{}",
        found.drain_ns()
    );
    let ahead = drain(
        &cold,
        &DrainCosts {
            files_at_once: 256,
            ..COSTS
        },
        &profile(),
    );
    assert_eq!(ahead.pages_read, found.pages_read);
    // 100,000 reads per second, which the device takes while others compute.
    assert!(
        (rows * 10_000..rows * 10_000 + 20_000_000).contains(&ahead.drain_ns()),
        "{}",
        ahead.drain_ns()
    );
}

#[test]
fn a_timeout_is_the_number_of_values_of_a_write_and_the_longest_wait() {
    let scenario = DrainScenario {
        timeout_ns: 60 * SECOND_NS,
        interval_ns: 10 * SECOND_NS,
        updates: 720,
        ..DrainScenario::default()
    };
    let found = drain(&scenario, &COSTS, &profile());
    // Due 60 s after the last write, so the seventh update finds the file due.
    assert!((found.coalescing() - 7.0).abs() < 0.1, "{}", found.coalescing());
    assert!(found.wait_max_ns < 71 * SECOND_NS, "{}", found.wait_max_ns);
    // With jitter writes come later, and at different times.
    let spread = drain(
        &DrainScenario {
            jitter_ns: 60 * SECOND_NS,
            ..scenario
        },
        &COSTS,
        &profile(),
    );
    assert!((9.0..11.0).contains(&spread.coalescing()), "{}", spread.coalescing());
}

/// rrdcached counts seconds: an update every 250 ms with a timeout of one second is written by the
/// first tick of each second, ours a tick after a second has passed since the write.
#[test]
fn a_server_that_counts_seconds_writes_at_their_turn() {
    let scenario = DrainScenario {
        files: 100,
        updates: 400,
        interval_ns: SECOND_NS / 4,
        is_spread: false,
        timeout_ns: SECOND_NS,
        ..DrainScenario::default()
    };
    let ours = drain(&scenario, &COSTS, &profile());
    let seconds = DrainCosts {
        is_in_seconds: true,
        ..COSTS
    };
    let daemon = drain(&scenario, &seconds, &profile());
    assert!((4.8..5.2).contains(&ours.coalescing()), "{}", ours.coalescing());
    assert!((3.9..4.1).contains(&daemon.coalescing()), "{}", daemon.coalescing());
}

/// The published mistake: a file that is updated once waits for the sweep, or for FLUSHALL.
#[test]
fn one_update_of_each_file_is_not_written_before_the_sweep() {
    let mut scenario = at_once(100, 1);
    scenario.timeout_ns = 60 * SECOND_NS;
    assert_eq!(drain(&scenario, &COSTS, &profile()).writes_before_drain, 0);
    // A second update 4,000 s later: the sweep at 3,600 s has written the first.
    let later = DrainScenario {
        updates: 2,
        interval_ns: 4_000 * SECOND_NS,
        is_spread: false,
        ..scenario
    };
    let found = drain(&later, &COSTS, &profile());
    assert_eq!(found.wait_max_ns / SECOND_NS, 3_600);
    // It comes a timeout later than that, so files are written again while the last arrive.
    assert!(
        (100..200).contains(&found.writes_before_drain),
        "{}",
        found.writes_before_drain
    );
    assert_eq!(found.writes, 200);
}

/// Ten hours of 2,000 files: the same bits on every machine.
#[test]
fn hours_of_a_scenario_have_one_fingerprint() {
    let scenario = DrainScenario {
        files: 2_000,
        updates: 3_600,
        jitter_ns: 120 * SECOND_NS,
        is_cold: true,
        ..DrainScenario::default()
    };
    let found = drain(&scenario, &COSTS, &profile());
    assert_eq!((found.accepted, found.accepted_at_ns / SECOND_NS), (7_200_000, 35_999));
    assert_eq!(found, drain(&scenario, &COSTS, &profile()));
    assert_eq!(format!("{:016x}", found.fingerprint), "f70ef0f3e8605341");
    let hour = |seed| {
        drain(
            &DrainScenario {
                seed,
                updates: 360,
                ..scenario.clone()
            },
            &COSTS,
            &profile(),
        )
        .fingerprint
    };
    assert_ne!(hour(1), hour(2));
}
