//! Keys that are pressed while the screen is shown.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::{
    io::{self, IsTerminal, Read},
    thread,
};
use tokio::sync::mpsc;

/// The number of keys that may wait; further ones are read later.
const WAITING_MAX: usize = 16;

/// Returns the keys that are pressed, if `live` and standard input is a terminal. Otherwise, none ever arrives.
pub fn read(live: bool) -> Keys {
    let (sender, keys) = mpsc::channel(WAITING_MAX);
    let before = (live && io::stdin().is_terminal()).then(unbuffered).flatten();
    if before.is_some() {
        // The thread ends with the process: a read from a terminal cannot be cancelled.
        thread::spawn(move || {
            for key in io::stdin().lock().bytes().map_while(Result::ok) {
                if sender.blocking_send(key).is_err() {
                    return;
                }
            }
        });
    }
    Keys { keys, before }
}

/// Makes the terminal pass on each key at once and not show it. Keys that send signals, such as Ctrl-C, still do. Returns
/// the modes as they were.
fn unbuffered() -> Option<Termios> {
    let before = tcgetattr(io::stdin()).ok()?;
    let mut modes = before.clone();
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    tcsetattr(io::stdin(), OptionalActions::Now, &modes).ok()?;
    Some(before)
}

/// Pressed keys. Dropping this restores the terminal.
pub struct Keys {
    keys: mpsc::Receiver<u8>,
    before: Option<Termios>,
}

impl Keys {
    /// Returns the next key; `None` if no more will come.
    pub async fn recv(&mut self) -> Option<u8> {
        self.keys.recv().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If the terminal is gone, there is nothing to restore.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
