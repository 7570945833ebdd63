//! Nodes that are started by hand beside a `kith dev`, and what commands that change a cluster's shape say.

use super::cluster::{Cluster, kith, signal, text};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

/// A node that was started by hand: nobody starts it again when it dies. Ended when dropped.
pub struct Spare {
    pub node: u32,
    child: Child,
    pub addr: String,
    metadata: String,
    /// The files that it keeps.
    pub data: PathBuf,
}

impl Spare {
    /// Starts it and waits until the cluster lists it; `folder` holds the cluster's `data`, and will hold the node's.
    pub fn start(cluster: &mut Cluster, node: u32, folder: &Path) -> Self {
        let metadata = metadata_address(&folder.join("data"));
        Self::start_at(cluster, node, metadata, folder.join(format!("spare-{node}")))
    }

    /// Starts another process with the same id, with a directory of its own.
    pub fn start_beside(&self, cluster: &mut Cluster) -> Self {
        let data = self.data.with_extension("beside");
        Self::start_at(cluster, self.node, self.metadata.clone(), data)
    }

    fn start_at(cluster: &mut Cluster, node: u32, metadata: String, data: PathBuf) -> Self {
        let child = spawn(node, &metadata, &data);
        let mut spare = Self { node, child, addr: String::new(), metadata, data };
        spare.wait_until_up(cluster);
        spare
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once; it stays down.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Starts it again from what it keeps, on another port; returns when the cluster has seen it.
    pub fn restart(&mut self, cluster: &mut Cluster) {
        self.child = spawn(self.node, &self.metadata, &self.data);
        self.wait_until_up(cluster);
    }

    /// Returns when the cluster lists this very process as the node.
    pub fn wait_until_up(&mut self, cluster: &mut Cluster) {
        let (node, pid) = (self.node, self.pid());
        let addr = &mut self.addr;
        cluster.wait_until("the node has registered", |cluster| {
            let status = run_json(cluster, &["cluster", "status"]);
            let mut nodes = status["nodes"].as_array().expect("a list").iter();
            let found = nodes.find(|it| it["node"] == node && it["pid"] == pid && it["state"] == "up");
            found.map(|it| *addr = it["addr"].as_str().expect("text").to_owned()).is_some()
        });
    }
}

/// Where the metadata of a `kith dev` with this directory is.
pub fn metadata_address(data: &Path) -> String {
    fs::read_to_string(data.join("metadata-address")).expect("it is there").trim().to_owned()
}

fn spawn(node: u32, metadata: &str, data: &Path) -> Child {
    let id = node.to_string();
    let mut command =
        kith(&["node", "--node", &id, "--metadata", metadata, "--zone", "z", "--end-with-stdin"]);
    let log = fs::File::options().create(true).append(true).open(data.with_extension("log"));
    command
        .arg("--data")
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log.expect("a log file"));
    command.spawn().expect("kith node starts")
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // A process that does not move does not end either.
            signal(self.child.id(), "CONT");
        }
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The answer of a command that must succeed.
pub fn run_json(cluster: &Cluster, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
    serde_json::from_str(&cluster.must(&arguments)).expect("JSON")
}

/// The code and message that a command fails with.
pub fn refused(cluster: &Cluster, arguments: &[&str]) -> (String, String) {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
    let output = cluster.kith(&arguments).output().expect("kith runs");
    assert!(!output.status.success(), "{}", text(&output));
    let error: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let field = |name: &str| error["error"][name].as_str().expect("text").to_owned();
    (field("code"), field("message"))
}
