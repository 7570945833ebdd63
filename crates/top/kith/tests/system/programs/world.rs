//! Two clusters on one bucket, and how they are asked.

use super::{
    model::Model,
    program::{NODES, ROUTERS, STORES},
    support::{TIMEOUT, cluster::Cluster},
};
use kith_client::{QueryError, RouterClient, security::Dialer};
use kith_files::{
    objects::{Access, Objects},
    testing::{ACCESS_KEY, BUCKET, S3, SECRET_KEY},
};
use kith_wire::{
    documents::{DefinitionDocument, Document, HoldsDocument, StoreDocument},
    v1::{self, store_request::Command as Ask},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

pub const PARTITIONS: u32 = 4;

/// An upload is handed over within this time; twice as long after its last write, what nobody names goes.
const HAND_OVER: Duration = Duration::from_secs(8);

/// One cluster.
pub struct Site {
    pub name: &'static str,
    pub cluster: Cluster,
    pub routers: Vec<RouterClient>,
    /// Its part of the bucket.
    pub objects: Objects,
}

/// All that programs work on.
pub struct World {
    pub server: S3,
    pub sites: Vec<Site>,
    pub model: Model,
    pub folder: tempfile::TempDir,
}

/// A store's name: the same in both clusters.
pub fn store_name(store: usize) -> String {
    format!("s{store}")
}

impl World {
    /// Starts both clusters, each with all of its stores.
    pub fn start(runtime: &Runtime) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = S3::start();
        fs::create_dir(folder.path().join("tmp")).expect("made");
        let config = folder.path().join("routers.toml");
        fs::write(&config, format!("[uploads]\nhand-over-ms = {}\n", HAND_OVER.as_millis()))
            .expect("written");
        let _inside = runtime.enter();
        let sites = ["a", "b"].map(|name| Site::start(name, &server, &config)).into();
        let world = Self { server, sites, model: Model::default(), folder };
        for (site, store) in
            (0..world.sites.len()).flat_map(|site| (0..STORES).map(move |store| (site, store)))
        {
            let created = runtime.block_on(world.sites[site].create(0, &store_name(store)));
            created.expect("nobody is in the way");
        }
        world
    }

    /// A fresh folder.
    pub fn scratch(&self) -> tempfile::TempDir {
        tempfile::tempdir_in(self.folder.path()).expect("a folder")
    }

    /// Where commands put what they build.
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

impl Site {
    fn start(name: &'static str, server: &S3, config: &Path) -> Self {
        let url = format!("s3://{BUCKET}/{name}");
        let (routers, partitions) = (ROUTERS.to_string(), PARTITIONS.to_string());
        let shape = ["--processes", "--routers", &routers, "--groups", "2", "--nodes", "1", "--threads", "2"];
        let more =
            ["--partitions", &partitions, "--objects", &url, "--config", config.to_str().expect("UTF-8")];
        let mut env = server.settings();
        env.push(("KITH_OBJECTS_RETRY_SECONDS".to_owned(), "5".to_owned()));
        let cluster = Cluster::start_in(&[&shape[..], &more].concat(), &env);
        let ready = cluster.ready();
        assert_eq!(ready["nodes"].as_array().expect("a list").len(), NODES);
        let addrs = ready["routers"].as_array().expect("a list").iter();
        let addrs = addrs.map(|router| router["addr"].as_str().expect("an address").to_owned());
        let routers = addrs.map(|addr| RouterClient::lazy(addr, &Dialer::default()).expect("an address"));
        let (routers, objects) = (routers.collect(), open(server, &url));
        Self { name, cluster, routers, objects }
    }

    /// As the model names a store of this cluster.
    pub fn of(&self, store: &str) -> String {
        format!("{}/{store}", self.name)
    }

    /// Asks one of its routers to do something with a store.
    pub async fn ask(&self, router: usize, store: &str, command: Ask) -> Result<v1::StoreReply, QueryError> {
        let request =
            v1::StoreRequest { store: store.to_owned(), who: "programs".to_owned(), command: Some(command) };
        self.routers[router].store(request).await
    }

    pub async fn create(&self, router: usize, store: &str) -> Result<v1::StoreReply, QueryError> {
        let holds = HoldsDocument::Values { key: "id".into(), value: "text".into(), key_field: None };
        let definition = serde_json::to_vec(&DefinitionDocument::new(holds)).expect("documents are JSON");
        self.ask(router, store, Ask::Create(v1::CreateStore { definition: definition.into() })).await
    }

    /// A store's record.
    pub async fn describe(&self, router: usize, store: &str) -> Result<StoreDocument, QueryError> {
        let reply = self.ask(router, store, Ask::Describe(v1::DescribeStore {})).await?;
        Ok(StoreDocument::decode(&reply.records[0]).expect("a record"))
    }

    /// The records of all stores.
    pub async fn stores(&self, router: usize) -> Result<Vec<StoreDocument>, QueryError> {
        let reply = self.ask(router, "", Ask::List(v1::ListStores {})).await?;
        Ok(reply.records.iter().map(|record| StoreDocument::decode(record).expect("a record")).collect())
    }

    /// Kills one of its processes, `routers` or `nodes`; the supervisor starts it again.
    pub fn kill(&self, of: &str, index: usize) {
        let pid = self.cluster.ready()[of][index]["pid"].as_i64().expect("a process");
        // The file may be a moment old, and the process another one's by now.
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let data = self.cluster.data();
        let is_ours = String::from_utf8_lossy(&arguments).contains(data.to_str().expect("UTF-8"));
        if let Some(pid) = Pid::from_raw(pid as i32).filter(|_| is_ours) {
            // It may end by itself meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// A folder of built files in its part of the bucket.
    pub fn objects(&self, store: &str, folder: &str) -> Objects {
        self.objects.join(&format!("{store}/values/{folder}"))
    }
}

fn open(server: &S3, url: &str) -> Objects {
    let settings = [
        ("aws_access_key_id", ACCESS_KEY.to_owned()),
        ("aws_secret_access_key", SECRET_KEY.to_owned()),
        ("aws_endpoint_url", server.endpoint()),
        ("aws_region", "us-east-1".to_owned()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let access = Access { settings, retry_for: Duration::from_secs(5) };
    Objects::open(&url.parse().expect("a place"), &access).expect("settings that make sense")
}

/// Waits, not for ever, until something holds; an error says why it does not yet.
pub async fn until<T>(what: &str, mut holds: impl AsyncFnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match holds().await {
            Ok(done) => return done,
            Err(why) => assert!(started.elapsed() < TIMEOUT, "waited too long until {what}: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
