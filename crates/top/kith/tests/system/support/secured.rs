//! A cluster of separate processes over TLS, its certificates made for one test. Its metadata is served here, in the clear, as `kith
//! dev` does for its children.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use super::{
    cluster::{kith, metric_at, text},
    redis::{Redis, Tls},
    wait_until_or_tell,
};
use kith_cluster::metadata::{EmbeddedMetadata, MetadataService, MetadataStore, keys};
use kith_net::security::secret;
use kith_router::admin::cluster::{Shape, create_cluster};
use kith_wire::documents::{DatabaseDocument, Document, NodeDocument, RouterDocument};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
};
use tokio::{net::TcpListener, runtime::Runtime};
use tonic::transport::server::TcpIncoming;

/// Signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own, as PEM.
    pub pem: PathBuf,
    folder: PathBuf,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct Papers {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    /// A new one, whose files go to `folder`.
    pub fn new(folder: &Path, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = folder.join(format!("{name}-ca.pem"));
        fs::write(&pem, params.self_signed(&key).expect("signed").pem()).expect("written");
        Self { issuer: Issuer::new(params, key), pem, folder: folder.to_owned() }
    }

    /// A certificate for this machine, and for whoever is called `name`.
    pub fn papers(&self, name: &str) -> Papers {
        self.write(name, false)
    }

    /// One that has expired.
    pub fn expired(&self, name: &str) -> Papers {
        self.write(name, true)
    }

    fn write(&self, name: &str, has_expired: bool) -> Papers {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
        params.distinguished_name = named(name);
        if has_expired {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        }
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.issuer).expect("signed");
        let path = |end: &str| self.folder.join(format!("{name}.{end}"));
        let papers = Papers { cert: path("pem"), key: path("key") };
        fs::write(&papers.cert, cert.pem()).expect("written");
        secret::testing::write(&papers.key, key.serialize_pem());
        papers
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

impl Papers {
    /// As flags name them.
    pub fn flags(&self) -> [String; 4] {
        let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        ["--tls-cert".to_owned(), path(&self.cert), "--tls-key".to_owned(), path(&self.key)]
    }
}

/// The cluster. Dropped, it ends.
pub struct SecuredCluster {
    pub folder: tempfile::TempDir,
    pub authority: Authority,
    /// Of all nodes and routers.
    pub papers: Papers,
    metadata: String,
    store: Arc<EmbeddedMetadata>,
    /// Flags of every process.
    flags: Vec<String>,
    children: Vec<Child>,
    runtime: Runtime,
}

impl SecuredCluster {
    /// Two groups of one node, and a router. `flags` are theirs besides the certificates.
    pub fn start(flags: impl FnOnce(&Path) -> Vec<String>) -> Self {
        Self::start_nodes(1, &[0, 1], flags)
    }

    /// Two groups of so many nodes, of which these are processes, and a router.
    pub fn start_nodes(per_group: u32, processes: &[u32], flags: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let authority = Authority::new(folder.path(), "own");
        let papers = authority.papers("kith");
        let runtime = Runtime::new().expect("a runtime");
        let store = Arc::new(EmbeddedMetadata::in_memory());
        let shape =
            Shape { groups: Some(2), nodes: Some(per_group), partitions: Some(24), ..Shape::default() };
        let objects = folder.path().join("objects").display().to_string();
        runtime.block_on(create_cluster(&*store, &shape, &objects)).expect("a cluster");
        let metadata = serve(&runtime, Arc::clone(&store));
        let ca = authority.pem.to_str().expect("UTF-8").to_owned();
        let flags = ["--tls-client-ca".to_owned(), ca].into_iter().chain(flags(folder.path())).collect();
        let mut cluster =
            Self { folder, authority, papers, metadata, store, flags, children: Vec::new(), runtime };
        let papers = cluster.papers.clone();
        for node in processes {
            cluster.spawn(&["node", "--node", &node.to_string()], &papers);
        }
        cluster.spawn(&["router", "--id", "0"], &papers);
        processes.iter().for_each(|node| drop(cluster.node(*node)));
        cluster
    }

    /// Starts a process of the cluster with these papers.
    pub fn spawn(&mut self, role: &[&str], papers: &Papers) {
        // Named by what it is and its id, whatever flags follow.
        let data = self.folder.path().join(role[..role.len().min(3)].concat());
        let log = fs::File::options().create(true).append(true).open(data.with_extension("log"));
        let mut command = kith(role);
        command
            .args(["--metadata", &self.metadata, "--end-with-stdin", "--data"])
            .arg(&data)
            .args(&self.flags)
            .args(papers.flags())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.expect("a log file"));
        self.children.push(command.spawn().expect("kith starts"));
    }

    /// The metadata that its processes share.
    pub fn metadata(&self) -> Arc<dyn MetadataStore> {
        Arc::clone(&self.store) as Arc<dyn MetadataStore>
    }

    /// The address of a router, once it has registered.
    pub fn router(&self, id: u32) -> String {
        self.registered(&keys::router(id), |value| RouterDocument::decode(value).map(|it| it.addr))
    }

    /// The address of a node, once it has registered.
    pub fn node(&self, id: u32) -> String {
        self.registered(&keys::node(id), |value| NodeDocument::decode(value).map(|it| it.addr))
    }

    /// The addresses of a database process, once it has registered: for calls, and for metrics.
    pub fn database(&self, id: u32) -> [String; 2] {
        let key = keys::database(id);
        [
            self.registered(&key, |value| DatabaseDocument::decode(value).map(|it| it.addr)),
            self.registered(&key, |value| DatabaseDocument::decode(value).map(|it| it.http)),
        ]
    }

    /// The process of the first router.
    pub fn router_pid(&self) -> u32 {
        self.registered(&keys::router(0), |value| RouterDocument::decode(value).map(|it| it.pid.to_string()))
            .parse()
            .expect("a process id")
    }

    /// Where the first router serves Redis clients, who show these papers.
    pub fn redis(&self, papers: Option<&Papers>) -> Redis {
        self.redis_of(&keys::router(0), |value| RouterDocument::decode(value).map(|it| it.resp), papers)
    }

    /// Where a router does.
    pub fn redis_of_router(&self, id: u32, papers: Option<&Papers>) -> Redis {
        self.redis_of(&keys::router(id), |value| RouterDocument::decode(value).map(|it| it.resp), papers)
    }

    /// Where a node does.
    pub fn redis_of_node(&self, id: u32, papers: Option<&Papers>) -> Redis {
        self.redis_of(&keys::node(id), |value| NodeDocument::decode(value).map(|it| it.resp), papers)
    }

    fn redis_of<E: std::fmt::Debug>(
        &self,
        key: &str,
        resp: impl Fn(&[u8]) -> Result<String, E>,
        papers: Option<&Papers>,
    ) -> Redis {
        let papers = papers.map(|papers| (papers.cert.clone(), papers.key.clone()));
        let tls = Tls { ca: self.authority.pem.clone(), papers };
        Redis { addr: self.registered(key, resp), tls: Some(tls) }
    }

    /// Where the first router serves health and metrics.
    pub fn http(&self) -> String {
        self.registered(&keys::router(0), |value| RouterDocument::decode(value).map(|it| it.http))
    }

    /// The value of a metric of the first router.
    pub fn metric(&self, name: &str) -> Option<f64> {
        metric_at(&self.http(), name)
    }

    /// The log of the first router.
    pub fn router_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("router--id0.log")).expect("a log file")
    }

    fn registered<E: std::fmt::Debug>(&self, key: &str, addr: impl Fn(&[u8]) -> Result<String, E>) -> String {
        let mut found = None;
        self.wait_until("a process has registered", || {
            let snapshot = self.runtime.block_on(self.store.read(key)).expect("the metadata is here");
            found = snapshot.get(key).map(|entry| addr(&entry.value).expect("a document"));
            found.is_some()
        });
        found.expect("it was waited for")
    }

    /// Waits, not for ever, until something holds.
    pub fn wait_until(&self, what: &str, holds: impl FnMut() -> bool) {
        let logs = || {
            let entries = fs::read_dir(self.folder.path()).expect("a folder").flatten();
            let logs = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "log"));
            logs.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default()).collect()
        };
        wait_until_or_tell(what, holds, logs);
    }

    /// A command to the first router, that believes the cluster's authority.
    pub fn kith(&self, arguments: &[&str]) -> Command {
        self.kith_at(&self.router(0), arguments)
    }

    /// A command to this router.
    pub fn kith_at(&self, router: &str, arguments: &[&str]) -> Command {
        let mut command = kith(arguments);
        command.args(["--router", router, "--tls-ca"]).arg(&self.authority.pem);
        command
    }
}

impl Drop for SecuredCluster {
    fn drop(&mut self) {
        self.children.iter_mut().for_each(|child| drop(child.stdin.take()));
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

/// The command of whoever has these papers.
pub fn with(mut command: Command, papers: &Papers) -> Command {
    command.args(papers.flags());
    command
}

/// Makes a store of texts by id and has `rows` rows of it served.
pub fn fill(cluster: &SecuredCluster, store: &str, rows: u64, papers: &Papers) {
    let file = cluster.folder.path().join(format!("{store}.csv"));
    let lines: String = (0..rows).map(|row| format!("{row},value {row} of {store}\n")).collect();
    fs::write(&file, format!("key,value\n{lines}")).expect("written");
    must(with(cluster.kith(&["store", "create", store, "--key", "id", "--value", "text"]), papers));
    must(with(cluster.kith(&["store", "push", store, file.to_str().expect("UTF-8")]), papers));
}

/// A file of rights: the cluster's own, those of some certificates, and of subjects by name, token and rights.
pub fn access(subjects: &[(&str, &str, &str)]) -> String {
    let mut file = "[[subject]]\nname = \"cluster\"\ncertificate = [\"CN=kith\"]\ncluster = true\n\
                    [[subject]]\nname = \"ops\"\ncertificate = [\"CN=ops\"]\nadmin = [\"*\"]\n\
                    [[subject]]\nname = \"writer\"\ncertificate = [\"CN=writer\"]\nread = [\"pages\"]\nwrite = [\"pages\"]\n"
        .to_owned();
    for (name, token, rights) in subjects {
        let hash: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
        file += &format!("[[subject]]\nname = \"{name}\"\ntoken-sha256 = [\"{hash}\"]\n{rights}\n");
    }
    file
}

/// Serves the metadata; where.
fn serve(runtime: &Runtime, store: Arc<EmbeddedMetadata>) -> String {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    let service = MetadataService::new(store);
    let incoming = TcpIncoming::from(listener);
    runtime.spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    addr
}

/// The output of a command that must succeed.
pub fn must(mut command: Command) -> String {
    let output = command.output().expect("kith runs");
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The code, message and help that a command fails with.
pub fn refused(mut command: Command) -> (String, String, String) {
    let output: Output = command.args(["-o", "json"]).output().expect("kith runs");
    assert!(!output.status.success(), "{}", text(&output));
    let error: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
    let field = |name: &str| error["error"][name].as_str().expect("text").to_owned();
    (field("code"), field("message"), field("help"))
}
