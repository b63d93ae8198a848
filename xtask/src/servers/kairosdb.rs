//! Starts KairosDB, a Java program from Maven, on its own H2 database or on a Cassandra.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::cassandra::Cassandra;
use super::{Server, Site, curl, ports};
use crate::ci;
use crate::golang;
use crate::maven;
use crate::shell::empty_folder;

pub(super) const VERSION: &str = "1.3.0-1";
const HEAP: &str = "-Xmx512m";
const MAIN: &str = "org.kairosdb.core.Main";

/// One process, or two.
#[derive(Debug)]
pub(super) struct KairosDb {
    name: &'static str,
    is_on_cassandra: bool,
}

impl KairosDb {
    pub(super) const ON_H2: Self = Self {
        name: "kairosdb",
        is_on_cassandra: false,
    };
    pub(super) const ON_CASSANDRA: Self = Self {
        name: "kairosdb-on-cassandra",
        is_on_cassandra: true,
    };
}

impl Server for KairosDb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self) -> Result<()> {
        ci::require(&["default-jre-headless", "maven", "curl"])?;
        if self.is_on_cassandra {
            Cassandra::LONE.install()?;
        }
        if arguments()?.is_file() {
            return Ok(());
        }
        let folder = empty_folder(folder()?)?;
        maven::copy_with_dependencies(&dependencies(), &folder)?;
        let opened = ["java.lang", "java.util", "sun.nio.ch"];
        let opened = opened.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED\n"));
        let text = format!("-cp \"{}/jars/*\"\n{}", folder.display(), opened.concat());
        // Last: with it the programs are whole.
        Ok(fs::write(arguments()?, text)?)
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let datastore = if self.is_on_cassandra {
            let port = Cassandra::LONE.spawn(site)?;
            // Since version 4, Cassandra knows no compact storage.
            format!(
                "service.datastore: \"org.kairosdb.datastore.cassandra.CassandraModule\"\n\
                 datastore.cassandra.write_cluster.cql_host_list: [\"127.0.0.1:{port}\"]\n\
                 datastore.cassandra.table_create_with.data_points: \"\"\n"
            )
        } else {
            format!("datastore.h2.database_path: \"{}/h2\"\n", site.folder().display())
        };
        let [port, put] = ports::free()?;
        // A folder of its own: KairosDB reads every configuration beside the one that it is given.
        let folder = site.subfolder("kairosdb")?;
        let conf = format!(
            "kairosdb: {{\ntelnetserver.port: {put}\ntelnetserver.address: \"127.0.0.1\"\n\
             jetty.port: {port}\njetty.address: \"127.0.0.1\"\n{datastore}\
             queue_processor.queue_path: \"{0}/queue\"\nquery_cache.cache_dir: \"{0}/cache\"\n}}\n",
            folder.display()
        );
        let conf = site.write("kairosdb/kairosdb.conf", &conf)?;
        let mut command = Command::new("java");
        command
            .arg(format!("@{}", arguments()?.display()))
            .args([HEAP, MAIN, "-c", "run", "-p"]);
        command.arg(conf).current_dir(&folder);
        site.spawn("kairosdb", &mut command, &[port, put])?;
        Ok(format!("kairosdb://127.0.0.1:{port}/tsb"))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let port = *site.ports().last().context("it has no port")?;
        let url = |path: &str| format!("http://127.0.0.1:{port}/api/v1/{path}");
        let sample = r#"[{"name":"probe","datapoints":[[1,42.5]],"tags":{"a":"b"}}]"#;
        curl(&url("datapoints"), &["--data", sample])?;
        let question = r#"{"start_absolute":0,"end_absolute":9,"metrics":[{"name":"probe"}]}"#;
        let got = curl(&url("datapoints/query"), &["--data", question])?;
        if !got.contains("[1,42.5]") {
            bail!("it answers {got:?}");
        }
        curl(&url("metric/probe"), &["--request", "DELETE"]).map(drop)
    }

    fn program(&self) -> Option<String> {
        let arguments = arguments().ok()?;
        arguments.is_file().then(|| arguments.display().to_string())
    }
}

/// KairosDB, and what it needs and its own description does not name: the last three went from Java with
/// version 11.
fn dependencies() -> String {
    let guice = "<dependency><groupId>com.sun.jersey.contribs</groupId><artifactId>jersey-guice</artifactId>\
                 <version>1.19.4</version><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId>\
                 </exclusion></exclusions></dependency>";
    [
        maven::dependency("org.kairosdb", "kairosdb", VERSION),
        guice.to_owned(),
        maven::dependency("com.sun.xml.bind", "jaxb-impl", "2.3.0.1"),
        maven::dependency("com.sun.xml.bind", "jaxb-core", "2.3.0.1"),
        maven::dependency("javax.xml.bind", "jaxb-api", "2.3.1"),
    ]
    .concat()
}

/// The file with the arguments of Java that are the same for every server.
fn arguments() -> Result<PathBuf> {
    Ok(folder()?.join("java.args"))
}

fn folder() -> Result<PathBuf> {
    Ok(golang::folder()?.join(format!("kairosdb-{VERSION}")))
}
