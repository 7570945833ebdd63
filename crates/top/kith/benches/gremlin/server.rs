//! The rivals: servers in Java, whose libraries come from Maven.

use crate::support::{root, wait_until};
use kith_net::testing::free_address;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// The kind of server.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    TinkerGraph,
    JanusGraph,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::TinkerGraph => "Gremlin Server",
            Self::JanusGraph => "JanusGraph",
        }
    }

    /// JanusGraph keeps ids as they are only if they are texts.
    pub fn has_text_ids(self) -> bool {
        matches!(self, Self::JanusGraph)
    }

    fn folder(self) -> &'static str {
        match self {
            Self::TinkerGraph => "tinkergraph",
            Self::JanusGraph => "janusgraph",
        }
    }
}

/// A running server that holds a graph. It is stopped when dropped.
pub struct Server {
    pub kind: Kind,
    pub address: String,
    pub pid: u32,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts a server with the edges of a file. Returns `None` with a message if Java or Maven is not installed.
    pub fn start(kind: Kind, edges: &Path) -> Option<Self> {
        let jars = jars(kind)?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_address().port();
        let from = root().join("benches/rivals/gremlin");
        for (name, text) in [
            ("server.yaml", fs::read_to_string(from.join("server.yaml"))),
            ("graph.properties", fs::read_to_string(from.join(kind.folder()).join("graph.properties"))),
            ("load.groovy", fs::read_to_string(from.join("load.groovy"))),
        ] {
            let text = text.expect("the settings come with the project");
            let text = text
                .replace("PORT", &port.to_string())
                .replace("FOLDER", folder.path().to_str().expect("UTF-8"))
                .replace("EDGES", edges.to_str().expect("UTF-8"));
            fs::write(folder.path().join(name), text).expect("the folder can be written");
        }
        let log = fs::File::create(folder.path().join("log")).expect("the folder can be written");
        let mut child = Command::new("java")
            .args(OPTIONS)
            .arg("-cp")
            .arg(format!("{}/*", jars.display()))
            .arg("org.apache.tinkerpop.gremlin.server.GremlinServer")
            .arg(folder.path().join("server.yaml"))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("Java starts");
        let address = format!("127.0.0.1:{port}");
        wait_until("the server listens", || {
            let ended = child.try_wait().expect("it can be waited for");
            let log = || fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            assert!(ended.is_none(), "{kind:?} has ended:\n{}", log());
            std::net::TcpStream::connect(&address).is_ok()
        });
        Some(Self { kind, address, pid: child.id(), child, _folder: folder })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Groovy and JanusGraph look into classes of the platform.
const OPTIONS: [&str; 10] = [
    "-Xmx4g",
    "-XX:+UseParallelGC",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
];

/// The folder with the libraries of a server. Maven fetches them once.
fn jars(kind: Kind) -> Option<PathBuf> {
    for (program, flag) in [("java", "-version"), ("mvn", "-v")] {
        let found = Command::new(program).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err() {
            eprintln!("skipped: {} needs {program}, which is not installed", kind.name());
            return None;
        }
    }
    let folder = root().join("target/gremlin-rivals").join(kind.folder());
    let pom = root().join("benches/rivals/gremlin").join(kind.folder()).join("pom.xml");
    if !folder.join(".whole").exists() {
        let fetched = Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(pom)
            .args(["dependency:copy-dependencies", "-DincludeScope=runtime"])
            .arg(format!("-DoutputDirectory={}", folder.display()))
            .status();
        assert!(fetched.expect("Maven runs").success(), "Maven fetches the libraries of {}", kind.name());
        fs::write(folder.join(".whole"), "").expect("the folder can be written");
    }
    Some(folder)
}
