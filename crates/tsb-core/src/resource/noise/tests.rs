//! Counters as the kernel writes them, from both sides of the verdict's threshold.

use super::*;
use crate::verdict::NOISE_SHARE_MAX;

const TICK_NS: u64 = 10_000_000;
const MS: u64 = 1_000_000;

/// What a machine of two CPUs did up to a moment, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct MachineState {
    at: u64,
    /// CPU time of this process.
    own: u64,
    /// CPU time of the target's process.
    target: u64,
    /// CPU time of all others.
    foreign: u64,
    stolen: u64,
    /// How long our threads waited for a CPU.
    waited: u64,
}

impl MachineState {
    /// The same, as the kernel's files say it.
    fn snapshot(self) -> NoiseSnapshot {
        let busy = (self.own + self.target + self.foreign) / 10;
        let steal = self.stolen / 10;
        let idle = (self.at / 5).saturating_sub(busy + steal);
        // Half of it in user mode, a tick of it nice, and interrupts beside it.
        let (user, system) = (busy / 2, busy - busy / 2);
        let stat = format!(
            "cpu  {user} 0 {system} {idle} 3 0 5 {steal} 0 0\ncpu0 {user} 0 {system} {idle} 3 0 5 {steal} 0 0\nintr 7 7\n"
        );
        let target = format!(
            "77 (mongod) S 1 77 77 0 -1 4194304 11 0 13 0 {} {} 0 0 20 0 40 0 99 4096 25 18446744073709551615 0",
            self.target / 20,
            self.target / 10 - self.target / 20
        );
        let threads = [
            (8, format!("{} {} 12\n", self.own * MS, self.waited * MS / 4)),
            (9, format!("0 {} 3\n", self.waited * MS - self.waited * MS / 4)),
        ];
        let targets = [(77, Stat::parse(&target).unwrap())];
        let threads = threads.map(|(tid, text)| (tid, Schedstat::parse(&text).unwrap()));
        NoiseSnapshot::new(
            (self.at * MS, self.own * MS),
            CpuTimes::parse(&stat, Some(&BTreeSet::from([0]))),
            &targets,
            &threads,
        )
    }
}

/// Ten seconds in windows of a quarter of a second, which all go as `every_second` says.
fn ten_seconds(every_second: MachineState) -> Noise {
    let mut meter = NoiseMeter::with_tick(MachineState::default().snapshot(), TICK_NS);
    for window in 1..=40u64 {
        let so_far = |ms: u64| ms * window / 4;
        let moment = MachineState {
            at: so_far(1_000),
            own: so_far(every_second.own),
            target: so_far(every_second.target),
            foreign: so_far(every_second.foreign),
            stolen: so_far(every_second.stolen),
            waited: so_far(every_second.waited),
        };
        meter.add(moment.snapshot());
    }
    meter.noise()
}

fn near(share: Option<f64>, expected: f64) -> bool {
    share.is_some_and(|share| (share - expected).abs() < 0.006)
}

#[test]
fn foreign_use_that_our_threads_waited_for_is_a_disturbance_on_a_busy_machine_as_well() {
    // A busy loop beside two workers on two CPUs: each gets two thirds.
    let beside_a_loop = ten_seconds(MachineState {
        own: 1_330,
        foreign: 670,
        waited: 670,
        ..MachineState::default()
    });
    assert!(near(beside_a_loop.foreign_share, 0.333), "{beside_a_loop:?}");
    // A nice process that shares our only CPU.
    let nice = ten_seconds(MachineState {
        own: 940,
        foreign: 60,
        waited: 60,
        ..MachineState::default()
    });
    assert!(near(nice.foreign_share, 0.058), "{nice:?}");
}

#[test]
fn the_threshold_of_the_verdict_has_two_sides() {
    let taken = |foreign| {
        let saturated = ten_seconds(MachineState {
            own: 2_000 - foreign,
            foreign,
            waited: 900,
            ..MachineState::default()
        });
        saturated.foreign_share.unwrap()
    };
    assert!(taken(36) <= NOISE_SHARE_MAX, "{}", taken(36));
    assert!(taken(48) > NOISE_SHARE_MAX, "{}", taken(48));
}

#[test]
fn threads_of_ours_that_wait_for_each_other_are_no_disturbance() {
    let crowded = ten_seconds(MachineState {
        own: 2_000,
        waited: 2_000,
        ..MachineState::default()
    });
    assert_eq!(crowded.foreign_share, Some(0.0), "{crowded:?}");
    assert!(near(crowded.own_wait_share, 0.5), "{crowded:?}");
}

#[test]
fn a_server_that_the_run_drives_is_no_disturbance() {
    let beside_the_target = ten_seconds(MachineState {
        own: 1_000,
        target: 1_000,
        waited: 800,
        ..MachineState::default()
    });
    assert!(near(beside_the_target.foreign_share, 0.0), "{beside_the_target:?}");
    assert!(near(beside_the_target.own_wait_share, 0.286), "{beside_the_target:?}");
}

#[test]
fn foreign_use_that_nobody_waited_for_is_no_disturbance() {
    let beside = ten_seconds(MachineState {
        own: 1_000,
        foreign: 1_000,
        waited: 2,
        ..MachineState::default()
    });
    assert!(near(beside.foreign_share, 0.002), "{beside:?}");
}

#[test]
fn rounding_of_counters_in_one_window_is_no_noise_in_the_next() {
    // Each window shows a tick too much or too little, while our threads always wait.
    let mut meter = NoiseMeter::with_tick(MachineState::default().snapshot(), TICK_NS);
    for window in 1..=40 {
        let error = if window % 2 == 0 { 10 } else { 0 };
        meter.add(
            MachineState {
                at: window * 250,
                own: window * 480,
                foreign: error,
                waited: window * 500,
                ..MachineState::default()
            }
            .snapshot(),
        );
    }
    assert_eq!(meter.noise().foreign_share, Some(0.0));
}

#[test]
fn stolen_time_is_of_all_cpu_time() {
    let stolen = ten_seconds(MachineState {
        own: 500,
        stolen: 40,
        ..MachineState::default()
    });
    assert!(near(stolen.stolen_share, 0.02), "{stolen:?}");
}

#[test]
fn a_process_that_stood_still_is_late_and_one_that_waited_for_a_cpu_is_not() {
    let mut meter = NoiseMeter::with_tick(MachineState::default().snapshot(), TICK_NS);
    meter.woke(1_900_000, 0);
    meter.woke(50 * MS, 49 * MS);
    assert_eq!(meter.late_ns, 0);
    meter.woke(3_000 * MS, MS);
    meter.add(
        MachineState {
            at: 10_000,
            ..MachineState::default()
        }
        .snapshot(),
    );
    let noise = meter.noise();
    assert_eq!((noise.late_share, noise.late_max_ms), (0.299_9, 2_999.0));
}

#[test]
fn a_thread_that_came_or_went_between_two_readings_is_counted_once() {
    let before = BTreeMap::from([(1, 10), (2, 20)]);
    let now = BTreeMap::from([(2, 25), (3, 7)]);
    assert_eq!(grown(&now, &before), 12);
}

#[test]
fn this_machine_says_how_long_our_threads_waited() {
    let parties = MeasuredProcesses::with_targets(&[std::process::id(), u32::MAX]);
    let mut meter = NoiseMeter::since(parties.read(0));
    let until = process_cpu_ns() + 20_000_000;
    while process_cpu_ns() < until {}
    meter.add(parties.read(1_000_000_000));
    let noise = meter.noise();
    assert!(
        noise.stolen_share.is_some_and(|share| (0.0..=1.0).contains(&share)),
        "{noise:?}"
    );
    assert!(
        noise.foreign_share.is_some_and(|share| (0.0..=1.0).contains(&share)),
        "{noise:?}"
    );
    assert!(
        noise.own_wait_share.is_some_and(|share| (0.0..=1.0).contains(&share)),
        "{noise:?}"
    );
    assert!(own_thread_waited_ns() < u64::MAX);
}
