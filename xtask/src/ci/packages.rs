//! The system packages that the tests need, in one table; installs them where that is possible.

use std::process::Command;

use anyhow::{Result, bail};

use super::Outcome;
use crate::shell::{has, is_root, run, succeeds};

/// A program that some check needs and a Debian package that brings it.
struct Package {
    name: &'static str,
    /// A program, and arguments with which it does nothing and succeeds.
    probe: &'static [&'static str],
    /// The steps that do not run without it.
    steps: &'static [&'static str],
    needed_by: &'static str,
}

impl Package {
    fn is_there(&self) -> bool {
        let [program, arguments @ ..] = self.probe else {
            return false;
        };
        succeeds(Command::new(program).args(arguments))
    }
}

/// Everything that the checks need beyond the Rust toolchain and a C compiler.
const PACKAGES: &[Package] = &[
    Package {
        name: "git",
        probe: &["git", "--version"],
        steps: &[],
        needed_by: "tidy, which asks git for the list of files",
    },
    Package {
        name: "chromium",
        probe: &["chromium", "--version"],
        steps: &[],
        needed_by: "page, which opens a report in a browser",
    },
    Package {
        name: "tmux",
        probe: &["tmux", "-V"],
        steps: &[],
        needed_by: "page, which drives the live view in a terminal",
    },
    Package {
        name: "npm",
        probe: &["npm", "--version"],
        steps: &[],
        needed_by: "page, which fetches axe-core to judge the report's accessibility",
    },
    Package {
        name: "python3-venv",
        probe: &["python3", "-m", "ensurepip", "--version"],
        steps: &["servers", "clients", "slow-servers"],
        needed_by: "servers, which installs MongoDB's wheel, clients, which installs clients written in Python, and slow-servers, which installs Cassandra's shell",
    },
    Package {
        name: "collectd-core",
        probe: &["collectd", "-h"],
        steps: &["clients"],
        needed_by: "clients, which has collectd write to tsb",
    },
    Package {
        name: "graphite-carbon",
        probe: &["carbon-relay", "--help"],
        steps: &["servers", "clients"],
        needed_by: "servers, which starts carbon, and clients, which has a carbon relay pass on to tsb",
    },
    Package {
        name: "graphite-web",
        probe: &["/usr/bin/python3", "-c", "import graphite.render"],
        steps: &["servers"],
        needed_by: "servers, which reads carbon's files back by its render API",
    },
    Package {
        name: "rrdtool",
        probe: &["rrdtool", "--version"],
        steps: &[],
        needed_by: "the tests that hold our RRD files beside rrdtool's, byte for byte",
    },
    Package {
        name: "rrdcached",
        probe: &["sh", "-c", "command -v rrdcached"],
        steps: &[],
        needed_by: "the tests of its client and of what it promises and breaks",
    },
    Package {
        name: "dc",
        probe: &["dc", "--version"],
        steps: &["clients"],
        needed_by: "clients, which runs rrdtool's own tests",
    },
    Package {
        name: "etcd-server",
        probe: &["etcd", "--version"],
        steps: &["servers"],
        needed_by: "servers, which starts etcd",
    },
    Package {
        name: "etcd-client",
        probe: &["etcdctl", "version"],
        steps: &["servers"],
        needed_by: "servers, which asks etcd whether it answers",
    },
    Package {
        name: "prometheus",
        probe: &["prometheus", "--version"],
        steps: &["servers", "clients"],
        needed_by: "servers and clients, which start Prometheus",
    },
    Package {
        name: "clickhouse-server",
        probe: &["sh", "-c", "command -v clickhouse-server"],
        steps: &["servers"],
        needed_by: "servers, which starts ClickHouse",
    },
    Package {
        name: "default-jre-headless",
        probe: &["java", "-version"],
        steps: &["slow-servers"],
        needed_by: "slow-servers, which starts QuestDB, Cassandra and KairosDB",
    },
    Package {
        name: "maven",
        probe: &["mvn", "--version"],
        steps: &["slow-servers"],
        needed_by: "slow-servers, which fetches QuestDB, Cassandra and KairosDB",
    },
    Package {
        name: "influxdb",
        probe: &["influxd", "version"],
        steps: &["servers"],
        needed_by: "servers, which starts InfluxDB",
    },
    Package {
        name: "victoria-metrics",
        probe: &["victoria-metrics", "--version"],
        steps: &["servers"],
        needed_by: "servers, which starts VictoriaMetrics",
    },
    Package {
        name: "curl",
        probe: &["curl", "--version"],
        steps: &["servers", "clients"],
        needed_by: "servers and clients, which ask servers over HTTP whether they answer",
    },
    Package {
        name: "postgresql-15",
        probe: &["/usr/lib/postgresql/15/bin/postgres", "--version"],
        steps: &["servers"],
        needed_by: "servers, which starts PostgreSQL",
    },
    Package {
        name: "postgresql-client-15",
        probe: &["psql", "--version"],
        steps: &["servers"],
        needed_by: "servers, which asks PostgreSQL whether it answers",
    },
    Package {
        name: "strace",
        probe: &["strace", "--version"],
        steps: &["faults"],
        needed_by: "faults, which records system calls and makes them fail",
    },
    Package {
        name: "openssl",
        probe: &["openssl", "version"],
        steps: &["servers"],
        needed_by: "servers, which makes certificates for servers that speak TLS",
    },
    Package {
        name: "libcurl4",
        probe: &["sh", "-c", "ldconfig -p | grep -q libcurl.so.4"],
        steps: &["servers"],
        needed_by: "servers, which starts MongoDB's server, whose program is linked to it",
    },
    Package {
        name: "librrd-dev",
        probe: &["pkg-config", "--exists", "librrd"],
        steps: &[],
        needed_by: "the feature librrd",
    },
    Package {
        name: "libclang-dev",
        // Not `libclang-cpp.so`, which graphics drivers bring and bindgen cannot use.
        probe: &["sh", "-c", "ls /usr/lib/llvm-*/lib/libclang.so"],
        steps: &[],
        needed_by: "the feature librrd, whose bindings are made from rrd.h",
    },
];

/// Whether the feature `librrd` can be built here.
pub(crate) fn has_librrd() -> bool {
    let needed = PACKAGES
        .iter()
        .filter(|package| package.needed_by.starts_with("the feature librrd"));
    needed.into_iter().all(Package::is_there)
}

/// The packages that the step `clients` needs and that are not here.
pub(super) fn missing_for_clients() -> Vec<&'static str> {
    missing_for("clients")
}

/// The packages that the step `servers` needs and that are not here.
pub(super) fn missing_for_servers() -> Vec<&'static str> {
    missing_for("servers")
}

/// The packages that the step `slow-servers` needs beside those of `servers`.
pub(super) fn missing_for_slow_servers() -> Vec<&'static str> {
    missing_for("slow-servers")
}

/// The packages that the step `faults` needs and that are not here.
pub(super) fn missing_for_faults() -> Vec<&'static str> {
    missing_for("faults")
}

fn missing_for(step: &str) -> Vec<&'static str> {
    let needed = PACKAGES.iter().filter(|package| package.steps.contains(&step));
    needed
        .filter(|package| !package.is_there())
        .map(|package| package.name)
        .collect()
}

/// Fails if one of these packages is missing, or is not in the table, and says how it is installed.
pub(crate) fn require(names: &[&str]) -> Result<()> {
    let is_known = |name: &&&str| PACKAGES.iter().any(|package| package.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        bail!("{unknown} is not in the table of packages");
    }
    let named = PACKAGES.iter().filter(|package| names.contains(&package.name));
    let missing: Vec<&str> = named
        .filter(|package| !package.is_there())
        .map(|package| package.name)
        .collect();
    if !missing.is_empty() {
        bail!("install {}; cargo xtask ci --only packages does", missing.join(" and "));
    }
    Ok(())
}

/// What to do about missing packages.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Nothing,
    Install(Vec<&'static str>),
    /// They cannot be installed here; say so and go on.
    Tell(String),
}

/// Installs missing packages, or says which ones must be installed by hand.
pub(super) fn install() -> Result<Outcome> {
    for package in PACKAGES {
        println!("{}: for {}", package.name, package.needed_by);
    }
    let missing: Vec<&Package> = PACKAGES.iter().filter(|package| !package.is_there()).collect();
    match decide(&missing, is_root().unwrap_or(false), has("apt-get", "--version")) {
        Action::Nothing => Ok(Outcome::Passed(format!("{} present", PACKAGES.len()))),
        Action::Tell(why) => Ok(Outcome::NotRun(why)),
        Action::Install(names) => {
            run(Command::new("apt-get").args(["update", "--quiet"]))?;
            let mut command = Command::new("apt-get");
            command
                .args(["install", "--yes", "--no-install-recommends"])
                .args(&names);
            run(command.env("DEBIAN_FRONTEND", "noninteractive"))?;
            Ok(Outcome::Passed(format!("installed {}", names.join(" "))))
        }
    }
}

fn decide(missing: &[&Package], is_root: bool, has_apt: bool) -> Action {
    let names: Vec<&'static str> = missing.iter().map(|package| package.name).collect();
    if names.is_empty() {
        return Action::Nothing;
    }
    if is_root && has_apt {
        return Action::Install(names);
    }
    let why = if has_apt {
        "this is not root"
    } else {
        "there is no apt-get"
    };
    let needs: Vec<String> = missing
        .iter()
        .map(|package| format!("{} (for {})", package.name, package.needed_by))
        .collect();
    Action::Tell(format!("{why}; install {}", needs.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_only_by_root_with_apt() {
        let git = &PACKAGES[0];
        assert_eq!(decide(&[], true, true), Action::Nothing);
        assert_eq!(decide(&[git], true, true), Action::Install(vec!["git"]));
        let told = decide(&[git], false, true);
        assert!(
            matches!(&told, Action::Tell(why) if why.starts_with("this is not root; install git")),
            "{told:?}"
        );
        let told = decide(&[git], true, false);
        assert!(
            matches!(&told, Action::Tell(why) if why.starts_with("there is no apt-get")),
            "{told:?}"
        );
    }
}
