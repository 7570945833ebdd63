//! A TCP line to a server that a test can cut: nothing passes any more, in either direction, and nobody hears of it.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

pub struct Line {
    addr: String,
    is_cut: Arc<AtomicBool>,
}

impl Line {
    /// To `target`; ends with the test.
    pub fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address").to_string();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&target) else { continue };
                let (near_in, far_in) = (near.try_clone().expect("cloned"), far.try_clone().expect("cloned"));
                for (from, to) in [(near_in, far), (far_in, near)] {
                    let cut = Arc::clone(&cut);
                    thread::spawn(move || pass(from, to, &cut));
                }
            }
        });
        Self { addr, is_cut }
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// From now on what is sent is lost.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    /// Data sent from now on passes; connections from before have lost something, and end.
    pub fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    let (mut buffer, mut has_lost) = ([0; 16 << 10], false);
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        has_lost |= cut.load(Ordering::SeqCst);
        match (has_lost, cut.load(Ordering::SeqCst)) {
            (false, _) if to.write_all(&buffer[..bytes]).is_ok() => {}
            (true, true) => {}
            _ => break,
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}
