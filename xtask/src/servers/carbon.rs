//! Starts carbon with graphite-web: one cache, or two behind a relay.

use std::process::Command;

use anyhow::{Result, bail};

use super::{Server, Site, graphite, ports};
use crate::ci;

/// Carbon-cache alone, or a relay before two of them.
#[derive(Debug)]
pub(super) struct Carbon {
    name: &'static str,
    caches: &'static [&'static str],
}

/// The ports of a daemon: lines, pickles, queries.
#[derive(Clone, Copy, Debug)]
struct Ports {
    line: u16,
    pickle: u16,
    query: u16,
}

impl Carbon {
    pub(super) const CACHE: Self = Self {
        name: "carbon",
        caches: &["a"],
    };
    pub(super) const RELAY: Self = Self {
        name: "carbon-relay",
        caches: &["a", "b"],
    };
}

impl Server for Carbon {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self) -> Result<()> {
        ci::require(&["graphite-carbon", "graphite-web"])
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let free = ports::free::<10>()?;
        let of = |place: usize| Ports {
            line: free[3 * place],
            pickle: free[3 * place + 1],
            query: free[3 * place + 2],
        };
        site.subfolder("conf")?;
        let whisper = site.subfolder("storage/whisper")?;
        graphite::write_schemas(site)?;
        for (place, cache) in self.caches.iter().enumerate() {
            let ports = of(place);
            let text = cache_section(site, ports)?;
            start_daemon(
                site,
                "carbon-cache",
                cache,
                &text,
                &[ports.line, ports.pickle, ports.query],
            )?;
        }
        let relay = of(self.caches.len());
        let mut address = format!("{}/tsb?protocol=plaintext", of(0).line);
        let mut others = vec![format!("127.0.0.1:{}", of(0).query)];
        if self.caches.len() > 1 {
            let places = 0..self.caches.len();
            let destinations = places.map(|place| format!("127.0.0.1:{}:{}", of(place).pickle, self.caches[place]));
            let text = relay_section(site, relay, &destinations.collect::<Vec<_>>())?;
            start_daemon(site, "carbon-relay", "relay", &text, &[relay.line, relay.pickle])?;
            address = format!("{}/tsb?protocol=pickle", relay.pickle);
            others.push(format!("127.0.0.1:{}", of(1).query));
        }
        let queries = self.caches.iter().enumerate();
        let queries: Vec<String> = queries
            .map(|(place, cache)| format!("127.0.0.1:{}:{cache}", of(place).query))
            .collect();
        let web = free[9];
        start_web(site, web, &queries)?;
        Ok(format!(
            "graphite://127.0.0.1:{address}&render=127.0.0.1:{web}&processes={}&folder={}&archives={}",
            others.join(","),
            whisper.display(),
            graphite::ARCHIVES
        ))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        // The relay is the last before graphite-web, and a cache alone is the first.
        let ports = site.ports();
        let [.., line, web] = ports[..] else {
            bail!("not all of its processes are recorded");
        };
        graphite::probe(line, web, &site.folder().join("storage/whisper"))
    }

    fn program(&self) -> Option<String> {
        self.install().ok()?;
        Some("carbon-cache".to_owned())
    }
}

/// The settings of all daemons: their folders, and no limit on updates and new series.
fn folders(site: &Site) -> Result<String> {
    let folder = site.folder().display();
    site.subfolder("log")?;
    Ok(format!(
        "STORAGE_DIR = {folder}/storage\nCONF_DIR = {folder}/conf\nLOG_DIR = {folder}/log\nPID_DIR = {folder}\n\
         LOCAL_DATA_DIR = {folder}/storage/whisper\nENABLE_UDP_LISTENER = False\nENABLE_TAGS = False\n\
         MAX_CACHE_SIZE = inf\nMAX_UPDATES_PER_SECOND = inf\nMAX_CREATES_PER_MINUTE = inf\n\
         CARBON_METRIC_INTERVAL = 0\nLOG_UPDATES = False\nLOG_CREATES = False\nWHISPER_SPARSE_CREATE = True\n"
    ))
}

fn cache_section(site: &Site, ports: Ports) -> Result<String> {
    Ok(format!(
        "[cache]\n{}LINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {}\n\
         PICKLE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = {}\n\
         CACHE_QUERY_INTERFACE = 127.0.0.1\nCACHE_QUERY_PORT = {}\n",
        folders(site)?,
        ports.line,
        ports.pickle,
        ports.query
    ))
}

fn relay_section(site: &Site, ports: Ports, destinations: &[String]) -> Result<String> {
    Ok(format!(
        "[relay]\n{}LINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {}\n\
         PICKLE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = {}\n\
         RELAY_METHOD = consistent-hashing\nREPLICATION_FACTOR = 1\nDESTINATIONS = {}\n\
         MAX_QUEUE_SIZE = 1000000\nUSE_FLOW_CONTROL = True\n",
        folders(site)?,
        ports.line,
        ports.pickle,
        destinations.join(", ")
    ))
}

/// Starts a daemon with a configuration of its own. `instance` tells caches apart on the relay's
/// ring.
fn start_daemon(site: &mut Site, program: &str, instance: &str, configuration: &str, ports: &[u16]) -> Result<()> {
    let name = format!("{program}-{instance}");
    let file = site.write(&format!("conf/{name}.conf"), configuration)?;
    let mut command = Command::new(program);
    command.arg(format!("--config={}", file.display()));
    command.args([&format!("--instance={instance}"), "--nodaemon", "start"]);
    site.spawn(&name, &mut command, ports)
}

/// Starts graphite-web over the files and the caches.
fn start_web(site: &mut Site, port: u16, caches: &[String]) -> Result<()> {
    let (web, folder) = (site.subfolder("web")?, site.folder().display().to_string());
    let settings = format!(
        "SECRET_KEY = 'loopback only'\nALLOWED_HOSTS = ['127.0.0.1']\nSTORAGE_DIR = '{folder}/storage'\n\
         WHISPER_DIR = '{folder}/storage/whisper'\nLOG_DIR = '{folder}/log'\nINDEX_FILE = '{folder}/storage/index'\n\
         CARBONLINK_HOSTS = {caches:?}\n\
         DATABASES = {{'default': {{'ENGINE': 'django.db.backends.sqlite3', 'NAME': '{folder}/web/graphite.db'}}}}\n"
    );
    site.write("web/tsb_graphite.py", &settings)?;
    // Debian's graphite is of Debian's Python.
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-m", "django", "runserver", "--noreload", &format!("127.0.0.1:{port}")]);
    command.env("DJANGO_SETTINGS_MODULE", "graphite.settings");
    command.env("GRAPHITE_SETTINGS_MODULE", "tsb_graphite");
    command.env("PYTHONPATH", &web);
    site.spawn("graphite-web", &mut command, &[port])
}
