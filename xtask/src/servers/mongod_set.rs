//! Starts three mongods as one replica set.

use anyhow::Result;

use super::mongod::{Mongod, command, hosts, probe};
use super::{Server, Site, ports, python};

/// Tells the first member of all three; harmless where it knows already.
const INITIATE: &str = "\
import sys, pymongo
hosts = sys.argv[1].split(',')
client = pymongo.MongoClient(hosts[0], directConnection=True, serverSelectionTimeoutMS=1000, socketTimeoutMS=20000)
members = [{'_id': number, 'host': host} for number, host in enumerate(hosts)]
try:
    client.admin.command('replSetInitiate', {'_id': 'tsb', 'members': members})
except pymongo.errors.OperationFailure as error:
    if error.details['codeName'] != 'AlreadyInitialized':
        raise
";

/// Three processes, each with a third of a gigabyte of cache.
#[derive(Debug)]
pub(super) struct MongodSet;

impl Server for MongodSet {
    fn name(&self) -> &'static str {
        "mongod-set"
    }

    fn install(&self) -> Result<()> {
        python::install()
    }

    fn start(&self, site: &mut Site) -> Result<String> {
        let ports = ports::free::<3>()?;
        for (number, port) in ports.iter().enumerate() {
            let name = format!("mongod-{}", number + 1);
            let data = site.subfolder(&name)?;
            let mut command = command(&data, *port)?;
            command.args(["--replSet", "tsb", "--oplogSize", "512"]);
            command.args(["--wiredTigerCacheSizeGB", "0.34"]);
            // A primary that is told to end would look for a successor for ten seconds.
            command.args(["--setParameter", "shutdownTimeoutMillisForSignaledShutdown=100"]);
            site.spawn(&name, &mut command, &[*port])?;
        }
        Ok(format!("mongo://{}/tsb?replica_set=tsb&w=majority", hosts(&ports)))
    }

    fn answers(&self, site: &Site) -> Result<()> {
        let ports = site.ports();
        python::script(INITIATE, &[hosts(&ports)])?;
        probe(&ports, "?replicaSet=tsb", "3")
    }

    fn program(&self) -> Option<String> {
        Mongod.program()
    }
}
