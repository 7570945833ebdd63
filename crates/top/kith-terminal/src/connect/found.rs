//! Finds the addresses of the cluster: in flags, the environment, or ready files.

use super::TargetFlags;
use crate::failure::Failure;
use kith_types::ErrorCode;
use serde::Deserialize;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The paths of the ready file that `kith dev` writes, in the current directory and in `$XDG_RUNTIME_DIR`.
pub const WELL_KNOWN: [&str; 2] = [".kith/ready.json", "kith/ready.json"];

/// The part of the process's environment that can name the cluster.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// `KITH_ROUTER`.
    router: Option<String>,
    current_dir: PathBuf,
    /// `XDG_RUNTIME_DIR`.
    runtime_dir: Option<PathBuf>,
}

/// The part of a ready file that clients read.
#[derive(Debug, Deserialize)]
struct ReadyFile {
    router: String,
    #[serde(default)]
    routers: Vec<ReadyProcess>,
    #[serde(default)]
    nodes: Vec<ReadyProcess>,
}

#[derive(Debug, Deserialize)]
struct ReadyProcess {
    addr: String,
    pid: Option<u32>,
}

/// Returns the surroundings of this process.
pub fn surroundings() -> Surroundings {
    Surroundings {
        router: env::var("KITH_ROUTER").ok().filter(|addrs| !addrs.is_empty()),
        current_dir: PathBuf::new(),
        runtime_dir: env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    }
}

/// The addresses of a cluster, and the source that named them.
#[derive(Debug, PartialEq)]
pub struct FoundCluster {
    pub routers: Vec<String>,
    /// The addresses of nodes, which only ready files contain. A fast client can start from them as well.
    pub nodes: Vec<String>,
    /// The process ids of routers and nodes, each once. Only ready files contain them.
    pub pids: Vec<u32>,
    /// The source of the addresses, as messages name it.
    pub named_by: String,
}

impl FoundCluster {
    fn named(routers: Vec<String>, named_by: &str) -> Self {
        Self { routers, nodes: Vec::new(), pids: Vec::new(), named_by: named_by.to_owned() }
    }
}

/// Finds the addresses of the cluster. A flag takes precedence over the environment, and the environment over a ready file.
///
/// # Errors
/// If nothing names a cluster, if two flags contradict each other, or if a ready file cannot be read.
pub fn find(target: &TargetFlags, surroundings: &Surroundings) -> Result<FoundCluster, Failure> {
    if let Some(file) = &target.ready_file {
        if !target.routers.is_empty() {
            return Err(Failure::usage("--router and --ready-file both name a cluster", "give one of them"));
        }
        return read(file);
    }
    if !target.routers.is_empty() {
        return Ok(FoundCluster::named(target.routers.clone(), "--router"));
    }
    if let Some(addrs) = &surroundings.router {
        let addrs = addrs.split(',').map(|addr| addr.trim().to_owned()).collect();
        return Ok(FoundCluster::named(addrs, "KITH_ROUTER"));
    }
    let files = well_known(surroundings);
    match files.iter().find(|file| file.exists()) {
        Some(file) => read(file),
        None => {
            let looked: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            let message = format!("no cluster is named and there is no ready file ({})", looked.join(", "));
            let help = "start one with `kith dev`, or name one with --router HOST:PORT";
            Err(Failure::new(ErrorCode::NoCluster, message, help))
        }
    }
}

fn well_known(surroundings: &Surroundings) -> Vec<PathBuf> {
    let folders = [Some(&surroundings.current_dir), surroundings.runtime_dir.as_ref()];
    let files = folders.into_iter().zip(WELL_KNOWN).filter_map(|(folder, file)| Some(folder?.join(file)));
    files.collect()
}

fn read(file: &Path) -> Result<FoundCluster, Failure> {
    let help =
        "`kith dev` keeps it while it runs: start `kith dev`, or name a router with --router HOST:PORT";
    let text = fs::read(file).and_then(kith_types::without_mark).map_err(|error| {
        Failure::new(
            ErrorCode::ReadyFileUnreadable,
            format!("cannot read ready file {}: {error}", file.display()),
            help,
        )
    })?;
    let ready: ReadyFile = serde_json::from_str(&text).map_err(|error| {
        Failure::new(
            ErrorCode::ReadyFileUnreadable,
            format!("{} is not a ready file: {error}", file.display()),
            help,
        )
    })?;
    let mut pids: Vec<u32> =
        ready.routers.iter().chain(&ready.nodes).filter_map(|process| process.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let others = ready.routers.into_iter().map(|router| router.addr).filter(|addr| *addr != ready.router);
    Ok(FoundCluster {
        routers: std::iter::once(ready.router.clone()).chain(others).collect(),
        nodes: ready.nodes.into_iter().map(|node| node.addr).collect(),
        pids,
        named_by: format!("ready file {}", file.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(routers: &[&str], nodes: &[&str], pids: &[u32], named_by: &str) -> FoundCluster {
        let owned = |addrs: &[&str]| addrs.iter().map(ToString::to_string).collect();
        let (routers, nodes) = (owned(routers), owned(nodes));
        FoundCluster { routers, nodes, pids: pids.to_vec(), named_by: named_by.to_owned() }
    }

    fn leave_ready_file(folder: &Path, name: &str, router: &str) -> PathBuf {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text = format!(
            r#"{{"router":"{router}","http":"h:1","nodes":[{{"group":0,"node":0,"addr":"node:1","pid":3}}],"routers":[{{"addr":"{router}","pid":1}},{{"addr":"other:1","pid":2}}]}}"#
        );
        fs::write(&file, text).unwrap();
        file
    }

    #[test]
    fn flags_come_before_the_environment_and_that_before_ready_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = leave_ready_file(folder.path(), WELL_KNOWN[0], "here:1");
        let mut surroundings = Surroundings {
            router: Some("env:1, env:2".to_owned()),
            current_dir: folder.path().to_owned(),
            runtime_dir: None,
        };
        let mut target = TargetFlags { routers: vec!["flag:1".to_owned()], ..TargetFlags::default() };
        assert_eq!(find(&target, &surroundings), Ok(found(&["flag:1"], &[], &[], "--router")));
        target.routers.clear();
        assert_eq!(find(&target, &surroundings), Ok(found(&["env:1", "env:2"], &[], &[], "KITH_ROUTER")));
        surroundings.router = None;
        let by = format!("ready file {}", file.display());
        assert_eq!(
            find(&target, &surroundings),
            Ok(found(&["here:1", "other:1"], &["node:1"], &[1, 2, 3], &by))
        );
    }

    #[test]
    fn the_runtime_directory_is_looked_at_last() {
        let folder = tempfile::tempdir().unwrap();
        let file = leave_ready_file(folder.path(), WELL_KNOWN[1], "far:1");
        let surroundings = Surroundings {
            router: None,
            current_dir: folder.path().join("elsewhere"),
            runtime_dir: Some(folder.path().to_owned()),
        };
        let by = format!("ready file {}", file.display());
        assert_eq!(
            find(&TargetFlags::default(), &surroundings),
            Ok(found(&["far:1", "other:1"], &["node:1"], &[1, 2, 3], &by))
        );
    }

    #[test]
    fn without_a_cluster_the_help_says_how_to_start_one() {
        let folder = tempfile::tempdir().unwrap();
        let surroundings = Surroundings { current_dir: folder.path().to_owned(), ..Surroundings::default() };
        let failure = find(&TargetFlags::default(), &surroundings).unwrap_err();
        assert_eq!(failure.code, ErrorCode::NoCluster);
        assert!(failure.help.contains("kith dev"), "{}", failure.help);
    }

    #[test]
    fn contradictions_and_unreadable_files_are_refused() {
        let both = TargetFlags {
            routers: vec!["a:1".to_owned()],
            ready_file: Some("x.json".into()),
            ..TargetFlags::default()
        };
        assert_eq!(find(&both, &Surroundings::default()).unwrap_err().code, ErrorCode::Usage);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ready.json");
        for text in [None, Some("{"), Some("{}")] {
            if let Some(text) = text {
                fs::write(&file, text).unwrap();
            }
            let target = TargetFlags { ready_file: Some(file.clone()), ..TargetFlags::default() };
            assert_eq!(
                find(&target, &Surroundings::default()).unwrap_err().code,
                ErrorCode::ReadyFileUnreadable
            );
        }
    }
}
