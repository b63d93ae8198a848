//! Servers that are small programs: what happens around them is what is tested.

use std::process::Command;

use super::*;

/// A shell script in place of a server, and the ports that it is to listen on.
struct Script(&'static str, &'static [u16]);

impl Server for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn install(&self) -> Result<()> {
        Ok(())
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        site.spawn("script", Command::new("sh").args(["-c", self.0]), self.1)?;
        Ok("null:".to_owned())
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let said = std::fs::read_to_string(site.folder().join("script.log"))?;
        // A whole line: "address already in use" is none.
        if !said.lines().any(|line| line == "ready") {
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
    let launched = launch(&Script(script, &[]), &mut site, &Stopwatch::start());
    (folder, site, launched)
}

#[test]
fn a_running_server_is_known_to_every_caller_and_stopped_once() {
    let (folder, _, launched) = launched("echo ready; exec sleep 600");
    launched.expect("it says that it is ready");
    let mut site = Site::within(folder.path(), "script");
    assert_eq!((site.condition(), site.store()), (Condition::Up, "null:"));
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

/// A server that dies between its answer and the look at it.
struct ShortLivedServer;

impl Server for ShortLivedServer {
    fn name(&self) -> &'static str {
        "mayfly"
    }

    fn install(&self) -> Result<()> {
        Ok(())
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let gate = site.subfolder("gate")?;
        let script = "while [ -d \"$1\" ]; do :; done";
        site.spawn("mayfly", Command::new("sh").args(["-c", script, "sh"]).arg(gate), &[])?;
        Ok("null:".to_owned())
    }

    fn answers(&self, site: &Site) -> Result<()> {
        std::fs::remove_dir(site.folder().join("gate"))?;
        while site.first_dead().is_none() {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn program(&self) -> Option<String> {
        None
    }
}

#[test]
fn a_server_that_dies_after_its_answer_is_not_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut site = Site::within(folder.path(), "mayfly");
    let error = launch(&ShortLivedServer, &mut site, &Stopwatch::start()).expect_err("it has ended");
    assert!(error.to_string().contains("mayfly has ended by itself"), "{error}");
    assert_ne!(site.condition(), Condition::Up);
}

#[test]
fn a_port_that_another_program_has_is_not_an_answer() {
    let taken = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let port = taken.local_addr().expect("it is bound").port();
    let folder = tempfile::tempdir().expect("a folder");
    let mut site = Site::within(folder.path(), "script");
    let server = Script("echo ready; exec sleep 600", Box::leak(Box::new([port])));
    let error = launch(&server, &mut site, &Stopwatch::start()).expect_err("the port is ours");
    assert!(error.to_string().contains(&format!("port {port}")), "{error}");
    assert_ne!(site.condition(), Condition::Up);
    assert_eq!(site.stop().expect("it ends"), 1);
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
