//! For tests: a real etcd from the system's packages, on loopback, with its data in a temporary folder.

use kith_net::testing::free_addresses;
use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The bound on every wait, which is far above what any of them takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Another process may take a port between its choice and its use, so starting is tried this often.
const STARTS_MAX: u32 = 5;

/// A running member of an etcd, usually the only one. It is killed when dropped.
pub struct Etcd {
    child: Option<Child>,
    folder: tempfile::TempDir,
    name: &'static str,
    client_port: u16,
    peer_port: u16,
    scheme: &'static str,
    /// All members, in the form of `--initial-cluster`.
    members: String,
    /// The user name and password that `etcdctl` uses.
    user: Option<String>,
}

impl Etcd {
    /// Starts a single member. Returns once it answers.
    pub fn start() -> Self {
        Self::start_as("http")
    }

    /// Starts a single member that uses only TLS, and accepts only clients with a certificate of [`Etcd::ca`].
    pub fn start_tls() -> Self {
        Self::start_as("https")
    }

    /// Starts three members of one etcd. Returns once each of them answers.
    pub fn start_three() -> [Self; 3] {
        for _ in 0..STARTS_MAX {
            let mut three = ["a", "b", "c"].map(|name| Self::member(name, "http"));
            let all = three.each_ref().map(|etcd| etcd.members.clone()).join(",");
            for etcd in &mut three {
                etcd.members.clone_from(&all);
                etcd.spawn();
            }
            // No member answers before two of them run.
            if three.each_mut().map(Self::is_up) == [true; 3] {
                return three;
            }
        }
        panic!("etcd did not start {STARTS_MAX} times");
    }

    fn start_as(scheme: &'static str) -> Self {
        for _ in 0..STARTS_MAX {
            let mut etcd = Self::member("default", scheme);
            if scheme == "https" {
                etcd.make_certificates();
            }
            etcd.spawn();
            if etcd.is_up() {
                return etcd;
            }
        }
        panic!("etcd did not start {STARTS_MAX} times");
    }

    /// Returns a single member that has not been started yet.
    fn member(name: &'static str, scheme: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let free = free_addresses(2);
        let (client_port, peer_port) = (free[0].port(), free[1].port());
        let members = format!("{name}=http://127.0.0.1:{peer_port}");
        Self { child: None, folder, name, client_port, peer_port, scheme, members, user: None }
    }

    /// `host:port`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    /// The address, as `--metadata` takes it.
    pub fn address(&self) -> String {
        format!("etcd://{}", self.host())
    }

    /// The certificate authority of [`Etcd::start_tls`].
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A certificate for servers and clients, and its private key.
    pub fn identity(&self) -> (PathBuf, PathBuf) {
        (self.folder.path().join("etcd.pem"), self.folder.path().join("etcd.key"))
    }

    fn make_certificates(&self) {
        let openssl = |arguments: &str| {
            let output = Command::new("openssl")
                .args(arguments.split(' '))
                .current_dir(self.folder.path())
                .output()
                .expect("openssl runs: see scripts/packages.sh");
            assert!(
                output.status.success(),
                "openssl {arguments}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(&format!("req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"));
        openssl(&format!("req {key} -subj /CN=kith -keyout etcd.key -out etcd.csr"));
        let extensions = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n";
        fs::write(self.folder.path().join("extensions"), extensions).expect("written");
        let signed = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions";
        openssl(&format!("x509 -req -in etcd.csr {signed} -out etcd.pem"));
    }

    /// Kills the member, as a power failure would. Its data stays.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it can be waited for");
        }
    }

    /// Starts it again at its address, with its data. Returns once it answers.
    pub fn restart(&mut self) {
        self.kill();
        self.spawn();
        assert!(self.is_up(), "etcd starts again: {}", self.log());
    }

    /// Runs `etcdctl`, which must succeed. Returns its output.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let output = self.ctl_command(arguments).output().expect("etcdctl runs: see scripts/packages.sh");
        assert!(
            output.status.success(),
            "etcdctl {arguments:?}: {}\n{}",
            String::from_utf8_lossy(&output.stderr),
            self.log()
        );
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Compacts all revisions before the current one.
    pub fn compact(&self) {
        let status = self.ctl(&["endpoint", "status", "-w", "fields"]);
        let revision = status.lines().find_map(|line| line.strip_prefix("\"Revision\" : "));
        self.ctl(&["compact", revision.expect("a revision").trim()]);
    }

    /// Enables users: from now on only `kith` with `password` may use the keys of cluster `c`, and no others.
    pub fn enable_users(&mut self, password: &str) {
        self.ctl(&["role", "add", "kith"]);
        self.ctl(&["role", "grant-permission", "--prefix=true", "kith", "readwrite", "/kith/c/"]);
        for (user, role) in [("root", "root"), ("kith", "kith")] {
            self.ctl(&["user", "add", &format!("{user}:{password}")]);
            self.ctl(&["user", "grant-role", user, role]);
        }
        self.ctl(&["auth", "enable"]);
        self.user = Some(format!("root:{password}"));
    }

    fn ctl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3");
        command.arg(format!("--endpoints={}://{}", self.scheme, self.host())).args(arguments);
        if self.scheme == "https" {
            let (cert, key) = self.identity();
            command.arg(format!("--cacert={}", self.ca().display()));
            command.args([format!("--cert={}", cert.display()), format!("--key={}", key.display())]);
        }
        if let Some(user) = &self.user {
            command.arg(format!("--user={user}"));
        }
        command
    }

    fn spawn(&mut self) {
        let client = format!("{}://{}", self.scheme, self.host());
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        let log = fs::File::options().create(true).append(true).open(self.folder.path().join("etcd.log"));
        let mut command = Command::new("etcd");
        command
            .arg(format!("--data-dir={}", self.folder.path().join("data").display()))
            .args([format!("--listen-client-urls={client}"), format!("--advertise-client-urls={client}")])
            .args([format!("--listen-peer-urls={peer}"), format!("--initial-advertise-peer-urls={peer}")])
            .args([format!("--name={}", self.name), format!("--initial-cluster={}", self.members)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log file"));
        if self.scheme == "https" {
            let (cert, key) = self.identity();
            command
                .args([format!("--cert-file={}", cert.display()), format!("--key-file={}", key.display())]);
            command.args([format!("--trusted-ca-file={}", self.ca().display()), "--client-cert-auth".into()]);
        }
        self.child = Some(command.spawn().expect("etcd starts: see scripts/packages.sh"));
    }

    /// Waits until the member answers. Returns `false` if it exited.
    fn is_up(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < TIMEOUT {
            let child = self.child.as_mut().expect("it was started");
            if child.try_wait().expect("the child can be waited for").is_some() {
                return false;
            }
            let health = self.ctl_command(&["endpoint", "health"]).output();
            if health.expect("etcdctl runs: see scripts/packages.sh").status.success() {
                return true;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("etcd does not answer: {}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("etcd.log")).unwrap_or_default()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
