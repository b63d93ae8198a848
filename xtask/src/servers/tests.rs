//! Servers that are small programs: what happens around them is what is tested.

use std::process::Command;

use super::*;

/// A shell script in place of a server.
struct Script(&'static str);

impl Server for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn install(&self) -> Result<()> {
        Ok(())
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        site.spawn("script", Command::new("sh").args(["-c", self.0]), &[4_711])?;
        Ok("null:".to_owned())
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let said = std::fs::read_to_string(site.folder().join("script.log"))?;
        if !said.contains("ready") {
            bail!("not yet");
        }
        Ok(())
    }

    fn program(&self) -> Option<String> {
        None
    }
}

fn launched(script: &'static str) -> (tempfile::TempDir, Site, Result<()>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut site = Site::within(folder.path(), "script");
    let launched = launch(&Script(script), &mut site, &Stopwatch::start());
    (folder, site, launched)
}

#[test]
fn what_is_up_is_known_to_whoever_looks_and_stopped_once() {
    let (folder, _, launched) = launched("echo ready; exec sleep 600");
    launched.expect("it says that it is ready");
    let mut site = Site::within(folder.path(), "script");
    assert_eq!((site.condition(), site.store()), (Condition::Up, "null:"));
    assert_eq!(site.ports(), [4_711]);
    assert!(site.state()["processes"][0]["rss_bytes"].as_u64() > Some(0));
    assert_eq!(site.stop().expect("it ends"), 1);
    assert_eq!(site.stop().expect("nothing to do"), 0);
    assert_eq!(Site::within(folder.path(), "script").condition(), Condition::Down);
}

#[test]
fn a_server_that_dies_at_start_leaves_its_last_words() {
    let (_folder, mut site, launched) = launched("echo address already in use; exit 3");
    let error = launched.expect_err("it has ended");
    assert!(error.to_string().contains("script has ended by itself"), "{error}");
    assert!(
        site.last_words().contains("address already in use"),
        "{}",
        site.last_words()
    );
    assert_eq!(site.condition(), Condition::Broken);
    assert_eq!(site.stop().expect("nothing is left"), 0);
}

#[test]
fn a_server_that_lost_a_process_is_broken() {
    let (_folder, mut site, launched) = launched("echo ready; exec sleep 600");
    launched.expect("it says that it is ready");
    let mut again = Command::new("true");
    site.spawn("second", &mut again, &[]).expect("true is everywhere");
    while site.first_dead().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(
        (site.condition(), site.first_dead()),
        (Condition::Broken, Some("second"))
    );
    assert!(table(&Value::Array(vec![site.state()])).contains("ended"));
    assert_eq!(site.stop().expect("it ends"), 1);
}

#[test]
fn names_are_known_or_the_known_ones_are_said() {
    assert_eq!(choose(&[]).expect("all").len(), SERVERS.len());
    assert_eq!(choose(&["etcd"]).expect("one")[0].name(), "etcd");
    let error = choose(&["oracle"]).err().expect("there is none");
    assert!(error.to_string().contains("mongod-set"), "{error}");
    assert!(command(&["sideways"]).is_err());
}
