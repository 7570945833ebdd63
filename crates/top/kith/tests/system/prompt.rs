//! `kith gremlin` without a traversal: a prompt on a terminal, and lines without one.

use crate::support;
use nix::{
    pty::{Winsize, openpty},
    sys::termios::Termios,
};
use serde_json::Value;
use std::{
    fs::{self, File},
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};
use support::cluster::Cluster;

/// Far longer than any answer takes.
const TIMEOUT: Duration = Duration::from_secs(60);

fn start(folder: &Path) -> Cluster {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1"]);
    let edges = folder.join("edges.csv");
    fs::write(&edges, "src,dst\n1,2\n1,3\n1,4\n").expect("written");
    let edges = edges.to_str().expect("UTF-8");
    cluster.must(&["load", "graph", edges, "--graph", "people", "--edge-type", "friends"]);
    cluster
}

/// The command on a pseudo-terminal.
struct Terminal {
    keys: File,
    output: Receiver<Vec<u8>>,
    /// The output that has been shown and not yet been waited for.
    shown: String,
    child: Child,
}

impl Terminal {
    fn open(cluster: &Cluster, state: &Path) -> Self {
        Self::of(cluster.kith(&["gremlin", "--graph", "people"]), state, 200)
    }

    /// Runs a command on a terminal with so many columns.
    fn of(mut command: Command, state: &Path, columns: u16) -> Self {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None::<&Termios>).expect("a pseudo-terminal");
        let slave = || Stdio::from(pty.slave.try_clone().expect("cloned"));
        command.stdin(slave()).stdout(slave()).stderr(slave());
        command.env("TERM", "xterm").env("XDG_STATE_HOME", state);
        let child = command.spawn().expect("it runs");
        drop((command, pty.slave));
        let keys = File::from(pty.master);
        let mut screen = keys.try_clone().expect("cloned");
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // A terminal that its last process has closed cannot be read.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { keys, output, shown: String::new(), child }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits until `text` has been shown.
    fn expect(&mut self, text: &str) {
        while !self.shown.contains(text) {
            let more = self.output.recv_timeout(TIMEOUT);
            let more = more.unwrap_or_else(|_| panic!("{text:?} is not in {:?}", self.shown));
            self.shown.push_str(&String::from_utf8_lossy(&more));
        }
        let end = self.shown.find(text).expect("found") + text.len();
        self.shown.drain(..end);
    }
}

#[test]
fn a_prompt_completes_goes_on_and_points_at_mistakes_and_top_ends_at_q() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cluster = start(folder.path());
    let state = folder.path().join("state");
    let mut terminal = Terminal::open(&cluster, &state);
    for (keys, shown) in [
        ("g.V(1).out('friends').count()\r", "\n3\r\n"),
        // One label fits.
        ("g.V(1).out('fri\t').out().count()\r", "\n3\r\n"),
        ("g.V(1).out(\r'friends').\rid().max()\r", "\n4\r\n"),
        ("g.V(1).otu()\r", "\n       ^ unknown step"),
        ("g.V(1).sum()\r", "bad_request"),
        (":explain g.V(1).out()\r", "Asks the graph for"),
        (":profile g.V(1).out().count()\r", "Traversal Metrics"),
        (":hlep\r", "there are :explain"),
        (":help\r", "Ctrl-D"),
    ] {
        terminal.expect("gremlin> ");
        terminal.press(keys);
        terminal.expect(shown);
    }
    terminal.expect("gremlin> ");
    terminal.press(":quit\r");
    assert!(terminal.child.wait().expect("it ends").success());
    let history = fs::read_to_string(state.join("kith/gremlin-history")).expect("a history");
    assert!(history.contains("g.V(1).out('friends').count()"), "{history}");
    // The next prompt has the history.
    let mut terminal = Terminal::open(&cluster, &state);
    terminal.expect("gremlin> ");
    terminal.press("\u{1b}[A");
    terminal.expect(":quit");
    terminal.press("\r");
    assert!(terminal.child.wait().expect("it ends").success());

    // `kith top` ends at once when `q` is pressed, without the end of a line.
    let mut terminal = Terminal::of(cluster.kith(&["top"]), &state, 80);
    terminal.expect("group");
    terminal.press("x");
    terminal.press("q");
    support::wait_until("kith top has ended", || {
        terminal.child.try_wait().expect("it can be waited for").is_some_and(|status| status.success())
    });
}

#[test]
fn without_a_terminal_each_line_is_a_traversal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cluster = start(folder.path());
    let mut command = cluster.kith(&["gremlin", "--graph", "people", "-o", "json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let lines = "g.V(1).out().count()\n\ng.V(1).otu()\ng.V(2).both().id()\n";
    child.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let answers: Vec<Value> = String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!((&answers[0]["result"][0], &answers[2]["result"][0]), (&Value::from(3), &Value::from(1)));
    assert_eq!(answers[1]["error"]["code"], "bad_request");
    assert_eq!(output.status.code(), Some(3));
}
