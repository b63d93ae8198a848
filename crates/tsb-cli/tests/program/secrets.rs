//! A password that was typed is printed by no command, whatever is wrong with the rest.

use std::fs;

use crate::output::output_of;

/// Passwords are `hunter`, a question mark perhaps, and `second`.
fn prints_no_password(arguments: &[&str]) {
    let output = output_of(arguments);
    let said = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(
        !text.contains("hunter") && !text.contains("second"),
        "{arguments:?}: {text}"
    );
    assert!(text.starts_with("tsb: cannot"), "{arguments:?}: {text}");
}

const STORES: [&str; 9] = [
    "mongo://me:hunter@h/db?layuot=rows",
    "mongo://me:hunter?second@h/db?layuot=rows",
    "mongo://me:hunter?w=second@h/db?layuot=rows",
    "mongo:me:hunter@h",
    "etcd://me:hunter/second@h",
    "etcd://h/p?pwd=hunter",
    "etcd://h/p?user=me&pass=hunter",
    "unheard://me:hunter?second@h/k",
    "monog://me:hunter?second@h/db",
];

#[test]
fn a_password_in_a_store_is_printed_by_no_command() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("r.json");
    let made = output_of(&[
        "run",
        "--quiet",
        "--no-calibrate",
        "--transport",
        "inproc",
        "--series",
        "54",
        "--duration",
        "200ms",
        "--out",
        report.to_str().unwrap(),
    ]);
    assert!(report.exists(), "{made:?}");
    let plan = folder.path().join("plan.toml");
    for store in STORES {
        fs::write(&plan, format!("store = \"{store}\"\n")).unwrap();
        prints_no_password(&["run", "--store", store]);
        prints_no_password(&["run", "--plan", plan.to_str().unwrap()]);
        prints_no_password(&["ingest", "--listen", "tsb+tcp://127.0.0.1:0", "--store", store]);
        let rrdcached = folder.path().join("sock");
        let rrdcached = format!("rrdcached+unix:{}", rrdcached.display());
        prints_no_password(&["ingest", "--listen", &rrdcached, "--store", store]);
        prints_no_password(&["verify", report.to_str().unwrap(), "--store", store]);
        prints_no_password(&["query", store, "--series", "a"]);
        prints_no_password(&["query", "--store", store, "--list"]);
    }
}

#[test]
fn a_password_in_an_address_is_printed_by_no_command() {
    for address in [
        "influx+http://me:hunter@h:1",
        "influx+http://me:hunter?second@h:1",
        "influx+http://me:hunter?db=second@h:1",
        "inflxu+http://me:hunter?second@h:1",
        "graphite+tcp:me:hunter@h:1",
        "influx+http://127.0.0.1:1?pwd=hunter",
        "influx+http://127.0.0.1:1?token=hunter",
    ] {
        prints_no_password(&["emit", "--to", address]);
        prints_no_password(&["ingest", "--listen", address]);
    }
}

#[test]
fn a_file_that_clap_or_toml_refuses_prints_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    for text in [
        "store = \"mongo://me:hunter?second@h/db\nrate = 1\n",
        "stroe = \"mongo://me:hunter?second@h/db\"\n",
        "store = [\"memory:\", \"mongo://me:hunter?second@h/db?layuot=rows\"]\n",
    ] {
        fs::write(&plan, text).unwrap();
        prints_no_password(&["run", "--plan", plan.to_str().unwrap()]);
    }
}
