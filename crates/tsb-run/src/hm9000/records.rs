//! The texts of HM9000: messages of its bus, and keys and values of its store.

use std::fmt::Write as _;

use tsb_stores::keyed::Key;
use tsb_stores::{Error, Result};

use super::guid::Guid;
use super::simulator::{App, Simulator};

/// The key that is there while the actual state counts as fresh.
pub const ACTUAL_FRESH: &str = "v1/actual-fresh";
/// The key that is there while the desired state counts as fresh.
pub const DESIRED_FRESH: &str = "v1/desired-fresh";
/// What the keys of all instances are below.
pub(crate) const ACTUAL: &str = "v1/apps/actual";

/// The payload of `dea.advertise` from a DEA, by its number; it is written over `into`.
///
/// # Panics
/// If there is no such DEA.
pub fn advertise_payload(simulator: &Simulator, dea: u32, into: &mut String) {
    into.clear();
    // Writing to a string cannot fail.
    let _ = write!(into, r#"{{"dea":"{}"}}"#, simulator.deas()[dea as usize].guid);
}

/// The payload of `dea.heartbeat` from a DEA, by its number; it is written over `into`.
///
/// # Panics
/// If there is no such DEA.
pub fn heartbeat_payload(simulator: &Simulator, dea: u32, into: &mut String) {
    let dea = &simulator.deas()[dea as usize];
    into.clear();
    let _ = write!(into, r#"{{"dea":"{}","droplets":["#, dea.guid);
    for (place, app) in dea.apps.iter().map(|app| &simulator.apps()[*app as usize]).enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(
            into,
            r#"{comma}{{"droplet":"{}","version":"{}","instance":"{}","index":0,"state":"{}","state_timestamp":0,"dea_guid":"{}"}}"#,
            app.guid, app.version, app.instance, app.state, dea.guid
        );
    }
    into.push_str("]}");
}

/// The key of an instance in the store: etcd's without the slash at its start, so one byte
/// shorter.
///
/// # Errors
/// None that a caller can cause; the text is checked like that of any key.
pub fn instance_key(app: &App) -> Result<Key> {
    key(format!("{ACTUAL}/{},{}/{}", app.guid, app.version, app.instance))
}

/// The value of an instance in the store: index, state, the time of its state, and its DEA.
///
/// # Panics
/// If the app is not of this simulator.
pub fn instance_value(simulator: &Simulator, app: &App) -> String {
    format!("0,{},0.0,{}", app.state, simulator.deas()[app.dea as usize].guid)
}

/// The key that is there while a DEA sends heartbeats.
///
/// # Errors
/// As [`instance_key`].
pub fn presence_key(dea: Guid) -> Result<Key> {
    key(format!("v1/dea-presence/{dea}"))
}

/// A key from a text that is known to be one.
pub(crate) fn key(text: impl AsRef<str>) -> Result<Key> {
    Key::new(&text).map_err(|error| Error::Backend {
        action: format!("name {}", text.as_ref()),
        source: error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::simulator::{AppState, DEA_CAPACITY, SimulatorOptions};
    use super::*;

    /// The acceptance numbers of the experiment.
    #[test]
    fn records_have_the_published_sizes() {
        let simulator = Simulator::new(SimulatorOptions {
            apps: 2_000,
            ..SimulatorOptions::default()
        });
        let app = simulator
            .apps()
            .iter()
            .find(|app| app.state == AppState::Running)
            .unwrap();
        assert_eq!(instance_key(app).unwrap().as_str().len() + 1, 126);
        assert_eq!(instance_value(&simulator, app).len(), 50);
        let mut payload = String::new();
        advertise_payload(&simulator, 3, &mut payload);
        assert_eq!(payload, format!(r#"{{"dea":"{}"}}"#, simulator.deas()[3].guid));
        assert_eq!(payload.len(), 46);
        heartbeat_payload(&simulator, 3, &mut payload);
        let parsed: serde_json::Value = serde_json::from_str(&payload).unwrap();
        let droplets = parsed["droplets"].as_array().unwrap();
        assert_eq!(droplets.len(), DEA_CAPACITY);
        let around = r#"{"dea":"","droplets":[]}"#.len() + 36;
        // CRASHED has as many letters as RUNNING; commas are between the instances.
        assert_eq!(payload.len() - around, 247 * DEA_CAPACITY + DEA_CAPACITY - 1);
        let first = &simulator.apps()[simulator.deas()[3].apps[0] as usize];
        assert_eq!(droplets[0]["droplet"], first.guid.to_string());
        assert_eq!(droplets[0]["instance"], first.instance.to_string());
        assert_eq!(droplets[0]["state"], first.state.to_string());
    }
}
