//! Placement, phases and counts, held against the published numbers.

use super::*;

fn of(apps: usize) -> Simulator {
    Simulator::new(SimulatorOptions {
        apps,
        ..SimulatorOptions::default()
    })
}

/// Advertises, heartbeats and records of instances in one interval of ten seconds.
fn interval(simulator: &mut Simulator) -> (usize, usize, usize) {
    let (mut advertises, mut heartbeats, mut records) = (0, 0, 0);
    for _ in 0..HEARTBEAT_INTERVAL_S {
        simulator.tick(|at, event| match event {
            Event::Advertise(_) => advertises += 1,
            Event::Heartbeat(dea) => {
                heartbeats += 1;
                records += at.deas()[dea as usize].apps.len();
            }
        });
    }
    (advertises, heartbeats, records)
}

/// The published sizes: DEAs are max(10, N / 100), an interval of ten seconds has one heartbeat
/// and two advertises from each, and a record for each app.
#[test]
fn placement_and_counts_are_the_documents() {
    for (apps, deas, full) in [(1_000, 10, 10), (30_000, 300, 300), (200_000, 2_000, 2_000)] {
        let mut simulator = of(apps);
        assert_eq!(simulator.deas().len(), deas, "{apps} apps");
        assert_eq!(
            simulator
                .deas()
                .iter()
                .filter(|dea| dea.apps.len() == DEA_CAPACITY)
                .count(),
            full
        );
        // Apps per second are N / 10, heartbeats N / 1000, advertises N / 500.
        assert_eq!(interval(&mut simulator), (2 * deas, deas, apps), "{apps} apps");
        // Ten apps more, on one DEA more.
        assert_eq!((simulator.apps().len(), simulator.deas().len()), (apps + 10, deas + 1));
        assert_eq!(simulator.deas()[deas].apps.len(), 10);
        assert_eq!(interval(&mut simulator).2, apps + 10);
        assert_eq!(simulator.seconds(), 20);
    }
}

#[test]
fn few_apps_are_spread_evenly_and_many_fill_a_dea_after_the_other() {
    for apps in [0, 1, 7, 10, 995] {
        let loads: Vec<usize> = of(apps).deas().iter().map(|dea| dea.apps.len()).collect();
        let expected: Vec<usize> = (0..10).map(|dea| apps / 10 + usize::from(dea < apps % 10)).collect();
        assert_eq!(loads, expected, "{apps} apps");
    }
    let loads: Vec<usize> = of(1_250).deas().iter().map(|dea| dea.apps.len()).collect();
    assert_eq!(loads, [vec![100; 12], vec![50]].concat());
    let simulator = of(1_250);
    for (number, app) in simulator.apps().iter().enumerate() {
        assert!(simulator.deas()[app.dea as usize].apps.contains(&(number as u32)));
    }
}

#[test]
fn a_tick_has_advertises_before_heartbeats_in_the_phases_of_their_deas() {
    let mut simulator = of(30_000);
    for second in 0..20 {
        let mut events = Vec::new();
        simulator.tick(|_, event| events.push(event));
        let due = |dea: &Dea| (dea.advertise_second == second % 5, dea.heartbeat_second == second % 10);
        let deas: Vec<(u32, (bool, bool))> = (0..300).zip(simulator.deas().iter().map(due)).collect();
        let advertises = deas
            .iter()
            .filter(|(_, due)| due.0)
            .map(|(dea, _)| Event::Advertise(*dea));
        let heartbeats = deas
            .iter()
            .filter(|(_, due)| due.1)
            .map(|(dea, _)| Event::Heartbeat(*dea));
        let in_first_interval: Vec<Event> = advertises.chain(heartbeats).collect();
        if second < 10 {
            assert_eq!(events, in_first_interval, "second {second}");
        } else {
            // The DEA that was added since sends, too.
            assert!(
                in_first_interval.iter().all(|event| events.contains(event)),
                "second {second}"
            );
        }
    }
}

#[test]
fn one_seed_is_one_cluster_and_a_tenth_of_the_apps_is_crashed() {
    let (one, same) = (of(30_000), of(30_000));
    assert_eq!((one.apps(), one.deas()), (same.apps(), same.deas()));
    let crashed = |simulator: &Simulator| {
        simulator
            .apps()
            .iter()
            .filter(|app| app.state == AppState::Crashed)
            .count()
    };
    // Drawn for each app: 3,000 are expected, with a standard deviation of 52.
    let found = crashed(&one);
    assert!((2_740..3_260).contains(&found), "{found}");
    let other = Simulator::new(SimulatorOptions {
        apps: 30_000,
        seed: 2,
        ..SimulatorOptions::default()
    });
    assert_ne!(one.apps()[0].guid, other.apps()[0].guid);
    let none = Simulator::new(SimulatorOptions {
        crashed: 0.0,
        ..SimulatorOptions::default()
    });
    assert_eq!(crashed(&none), 0);
    let mut guids: Vec<Guid> = one
        .apps()
        .iter()
        .flat_map(|app| [app.guid, app.version, app.instance])
        .collect();
    guids.sort_unstable();
    guids.dedup();
    assert_eq!(guids.len(), 90_000);
}

#[test]
fn a_fixed_number_of_apps_stays() {
    let mut simulator = Simulator::new(SimulatorOptions {
        apps: 995,
        new_apps: 0,
        ..SimulatorOptions::default()
    });
    for _ in 0..3 {
        assert_eq!(interval(&mut simulator), (20, 10, 995));
    }
    assert_eq!((simulator.apps().len(), simulator.deas().len()), (995, 10));
}

#[test]
fn without_deas_at_the_start_they_are_made_for_the_apps() {
    let simulator = Simulator::new(SimulatorOptions {
        apps: 101,
        deas: 0,
        ..SimulatorOptions::default()
    });
    let loads: Vec<usize> = simulator.deas().iter().map(|dea| dea.apps.len()).collect();
    assert_eq!(loads, [100, 1]);
}
