//! Starts etcd as one node or as three.

use std::process::Command;

use anyhow::{Result, bail};

use super::{Server, Site, ports};
use crate::ci;
use crate::shell::{capture, has};

/// One cluster.
#[derive(Debug)]
pub(super) struct Etcd {
    name: &'static str,
    nodes: usize,
}

impl Etcd {
    pub(super) const SINGLE: Self = Self { name: "etcd", nodes: 1 };
    pub(super) const THREE: Self = Self {
        name: "etcd-three",
        nodes: 3,
    };
}

impl Server for Etcd {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self) -> Result<()> {
        ci::require(&["etcd-server", "etcd-client"])
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        // Three at the most: a client and a peer port for each.
        let ports = ports::free::<6>()?;
        let nodes: Vec<(String, u16, u16)> = (0..self.nodes)
            .map(|node| (format!("node-{}", node + 1), ports[2 * node], ports[2 * node + 1]))
            .collect();
        let cluster: Vec<String> = nodes
            .iter()
            .map(|(name, _, peer)| format!("{name}={}", url(*peer)))
            .collect();
        for (name, client, peer) in &nodes {
            let (client_url, peer_url) = (url(*client), url(*peer));
            let mut command = Command::new("etcd");
            command.args(["--name", name, "--data-dir"]).arg(site.subfolder(name)?);
            command.args([
                "--listen-client-urls",
                &client_url,
                "--advertise-client-urls",
                &client_url,
            ]);
            command.args([
                "--listen-peer-urls",
                &peer_url,
                "--initial-advertise-peer-urls",
                &peer_url,
            ]);
            command.args([
                "--initial-cluster",
                &cluster.join(","),
                "--initial-cluster-state",
                "new",
            ]);
            // HM9000's experiment speaks version 2.
            command.args(["--enable-v2=true", "--quota-backend-bytes=4294967296", "--logger=zap"]);
            site.spawn(name, &mut command, &[*client, *peer])?;
        }
        let clients: Vec<u16> = nodes.iter().map(|(_, client, _)| *client).collect();
        Ok(format!("etcd://{}/tsb", super::mongod::hosts(&clients)))
    }

    /// Every node has to answer: one that lags would be a cluster of two.
    fn answers(&self, site: &Site) -> Result<()> {
        for port in site.ports() {
            ask(port, &["put", "tsb-probe", "42"])?;
            let got = ask(port, &["get", "tsb-probe", "--print-value-only"])?;
            if got.trim() != "42" {
                bail!("{} answers {got:?}", url(port));
            }
            ask(port, &["del", "tsb-probe"])?;
        }
        Ok(())
    }

    fn program(&self) -> Option<String> {
        has("etcd", "--version").then(|| "etcd".to_owned())
    }

    fn leader(&self, site: &Site) -> Result<usize> {
        for (place, port) in site.ports().into_iter().enumerate() {
            let status = ask(port, &["endpoint", "status", "--write-out=fields"])?;
            let member = field(&status, "MemberID");
            if member.is_some() && member == field(&status, "Leader") {
                return Ok(place);
            }
        }
        bail!("no member of {} leads", self.name)
    }
}

/// What etcdctl prints for one member.
fn ask(port: u16, words: &[&str]) -> Result<String> {
    let mut command = Command::new("etcdctl");
    command.args(["--command-timeout=2s", "--endpoints", &url(port)]);
    capture(command.args(words).env("ETCDCTL_API", "3"))
}

/// A field of `--write-out=fields`: a line of `"NAME" : VALUE`.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    lines.find_map(|line| line.strip_prefix(&format!("\"{name}\" : ")))
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_of_a_status_is_found_by_its_whole_name() {
        let status = "\"ClusterID\" : 7\n\"MemberID\" : 42\n\"Leader\" : 42\n";
        assert_eq!(field(status, "MemberID"), Some("42"));
        assert_eq!(field(status, "Member"), None);
    }
}
