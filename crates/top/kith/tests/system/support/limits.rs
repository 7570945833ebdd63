//! A process whose memory is limited, and how often it read from the disk.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// A control group with a limit of memory, of either version. Removed when dropped: its processes should have ended.
pub struct MemoryGroup {
    folders: Vec<PathBuf>,
    is_first_version: bool,
}

impl MemoryGroup {
    /// A group that may use so much memory, cached pages of files among it; `None`, said aloud, where none can be made.
    pub fn new(bytes: u64) -> Option<Self> {
        Self::try_new(bytes).map_err(|error| eprintln!("skipped: no control group for memory: {error}")).ok()
    }

    fn try_new(bytes: u64) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("kith-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let root = Path::new("/sys/fs/cgroup");
        let is_first_version = root.join("memory").is_dir();
        let parents = if is_first_version { vec!["memory", "blkio"] } else { vec![""] };
        let mut group = Self { folders: Vec::new(), is_first_version };
        for parent in parents {
            let folder = root.join(parent).join(&name);
            fs::create_dir(&folder)?;
            group.folders.push(folder);
        }
        let limit = if is_first_version { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(group.folders[0].join(limit), bytes.to_string())?;
        if is_first_version {
            // It counts only where there is a limit, be it out of reach.
            let rule = format!("{} 1000000000", disk_of(&std::env::temp_dir())?);
            fs::write(group.folders[1].join("blkio.throttle.read_iops_device"), rule)?;
        }
        Ok(group)
    }

    /// Takes a process in. Pages that it had before stay with whom they were.
    pub fn add(&self, pid: u32) {
        for folder in &self.folders {
            fs::write(folder.join("cgroup.procs"), pid.to_string()).expect("a process of ours");
        }
    }

    /// Reads from disks so far, of all processes in it.
    pub fn disk_reads(&self) -> u64 {
        if self.is_first_version {
            let text = self.read(1, "blkio.throttle.io_serviced");
            let reads =
                text.lines().filter_map(|line| line.split_once(" Read ")?.1.trim().parse::<u64>().ok());
            return reads.sum();
        }
        let text = self.read(0, "io.stat");
        text.split_whitespace().filter_map(|word| word.strip_prefix("rios=")?.parse::<u64>().ok()).sum()
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        let name = if self.is_first_version { "memory.usage_in_bytes" } else { "memory.current" };
        self.read(0, name).trim().parse().expect("a number")
    }

    /// Drops from memory whatever can be read again.
    pub fn drop_caches(&self) {
        let (file, text) =
            if self.is_first_version { ("memory.force_empty", "0") } else { ("memory.reclaim", "1T") };
        // It fails when less could be dropped than was asked for.
        let _ = fs::write(self.folders[0].join(file), text);
    }

    fn read(&self, folder: usize, name: &str) -> String {
        let path = self.folders[folder].join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

/// `major:minor` of the disk that a folder lies on.
fn disk_of(folder: &Path) -> io::Result<String> {
    let dev = fs::metadata(folder)?.dev();
    let (major, minor) = (dev >> 8 & 0xfff, dev & 0xff | dev >> 12 & 0xfff00);
    let block = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"))?;
    // A partition lies in the folder of its disk.
    let disk = if block.join("partition").exists() { block.join("..") } else { block };
    Ok(fs::read_to_string(disk.join("dev"))?.trim().to_owned())
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Its processes may be a moment from their end.
        for folder in &self.folders {
            for () in super::in_time() {
                if fs::remove_dir(folder).is_ok() || !folder.exists() {
                    break;
                }
                std::thread::sleep(super::LOOK);
            }
        }
    }
}
