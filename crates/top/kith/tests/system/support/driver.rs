//! A driver of Gremlin: one WebSocket, on which requests and answers travel in GraphSON.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

/// A connection to the Gremlin door of a router.
pub struct Driver {
    stream: TcpStream,
    asked: u32,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub struct DriverReply {
    /// The status code of the last message.
    pub code: u64,
    /// The message of an error.
    pub message: String,
    /// The values, in GraphSON.
    pub values: Vec<Value>,
    /// The status attributes of the last message, in GraphSON.
    attributes: Vec<Value>,
}

impl DriverReply {
    /// A status attribute.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.chunks(2).find(|pair| pair[0] == name).map(|pair| &pair[1])
    }
}

impl Driver {
    pub fn connect(addr: &str) -> Self {
        let mut stream = TcpStream::connect(addr).expect("the door is open");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let head = format!(
            "GET /gremlin HTTP/1.1\r\nHost: {addr}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("an answer");
            answer.extend(byte);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
        Self { stream, asked: 0 }
    }

    /// Evaluates a text over a graph.
    pub fn ask(&mut self, graph: &str, gremlin: &str) -> DriverReply {
        self.ask_bound(graph, gremlin, json!({}))
    }

    /// Evaluates a text with variables, whose values are in GraphSON, over a graph.
    pub fn ask_bound(&mut self, graph: &str, gremlin: &str, bindings: Value) -> DriverReply {
        self.asked += 1;
        let request = json!({
            "requestId": format!("00000000-0000-4000-8000-{:012x}", self.asked),
            "op": "eval",
            "processor": "",
            "args": {"gremlin": gremlin, "bindings": bindings, "aliases": {"g": graph}},
        });
        self.send(request.to_string().as_bytes());
        let mut reply = DriverReply::default();
        loop {
            let answer = self.receive();
            let status = &answer["status"];
            reply.code = status["code"].as_u64().expect("a code");
            reply.message = status["message"].as_str().unwrap_or_default().to_owned();
            reply.values.extend(list(&answer["result"]["data"]));
            if reply.code != 206 {
                reply.attributes = list(&status["attributes"]);
                return reply;
            }
        }
    }

    /// The values of a traversal that must succeed, in GraphSON.
    pub fn must(&mut self, graph: &str, gremlin: &str) -> DriverReply {
        let reply = self.ask(graph, gremlin);
        assert!([200, 204].contains(&reply.code), "{gremlin}: {reply:?}");
        reply
    }

    /// Sends a text message. Its mask is zero, so its bytes stay as they are.
    fn send(&mut self, payload: &[u8]) {
        let length = u16::try_from(payload.len()).expect("a short request");
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(payload);
        self.stream.write_all(&frame).expect("it reads");
    }

    fn receive(&mut self) -> Value {
        loop {
            let [first, second] = self.bytes();
            let length = match second & 0x7f {
                126 => u64::from(u16::from_be_bytes(self.bytes())),
                127 => u64::from_be_bytes(self.bytes()),
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length).expect("it fits")];
            self.stream.read_exact(&mut payload).expect("a whole message");
            match first {
                0x81 => return serde_json::from_slice(&payload).expect("JSON"),
                0x89 => {}
                other => panic!("an unexpected message {other:#x}: {}", String::from_utf8_lossy(&payload)),
            }
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).expect("an answer");
        bytes
    }
}

/// The members of a list or map in GraphSON.
fn list(value: &Value) -> Vec<Value> {
    value["@value"].as_array().cloned().unwrap_or_default()
}
