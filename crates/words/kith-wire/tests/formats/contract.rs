//! The whole contract as text: every message, field, enum and method with its number and type. It is made from the
//! descriptors that routers and nodes also serve by reflection. A renumbered or retyped field breaks every peer.

use kith_sim::golden;
use kith_wire::{DESCRIPTORS, Message};
use std::fmt::Write;

#[derive(Clone, PartialEq, prost::Message)]
struct Files {
    #[prost(message, repeated, tag = "1")]
    files: Vec<File>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct File {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "4")]
    messages: Vec<Type>,
    #[prost(message, repeated, tag = "5")]
    enums: Vec<Enum>,
    #[prost(message, repeated, tag = "6")]
    services: Vec<Service>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Type {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    fields: Vec<Field>,
    #[prost(message, repeated, tag = "8")]
    oneofs: Vec<Named>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Field {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "3")]
    number: i32,
    #[prost(int32, tag = "4")]
    label: i32,
    #[prost(int32, tag = "5")]
    kind: i32,
    #[prost(string, tag = "6")]
    kind_name: String,
    #[prost(int32, optional, tag = "9")]
    oneof: Option<i32>,
    #[prost(bool, tag = "17")]
    is_optional: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Enum {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    values: Vec<EnumValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EnumValue {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, tag = "2")]
    number: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    methods: Vec<Method>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Method {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    request: String,
    #[prost(string, tag = "3")]
    reply: String,
    #[prost(bool, tag = "5")]
    requests: bool,
    #[prost(bool, tag = "6")]
    replies: bool,
}

/// The names of `FieldDescriptorProto.Type`, numbered from 1.
const KINDS: [&str; 18] = [
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group",
    "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
];
const REPEATED: i32 = 3;

fn field(of: &Type, field: &Field) -> String {
    let kind = match field.kind_name.as_str() {
        "" => KINDS[field.kind as usize - 1],
        name => name.trim_start_matches(".kith.v1."),
    };
    let prefix = match field.oneof {
        _ if field.label == REPEATED => "repeated ".to_owned(),
        _ if field.is_optional => "optional ".to_owned(),
        Some(oneof) => format!("oneof {}: ", of.oneofs[oneof as usize].name),
        None => String::new(),
    };
    format!("{} {} {prefix}{kind}", field.number, field.name)
}

#[test]
fn every_message_field_and_method() {
    let files = Files::decode(DESCRIPTORS).unwrap();
    let [file] = &files.files[..] else { panic!("one file") };
    assert_eq!(file.package, "kith.v1");
    let mut text = String::from(
        "# Every service, message and enum of kith.v1 (crates/words/kith-wire/proto/kith.proto). The test is\n\
         # crates/words/kith-wire/tests/formats/contract.rs. Lines may be added; none may change or go.\n",
    );
    for service in &file.services {
        let _ = writeln!(text, "\nservice {}", service.name);
        for method in &service.methods {
            assert!(!method.requests, "no method takes a stream of requests");
            let stream = if method.replies { "stream " } else { "" };
            let short = |name: &str| name.trim_start_matches(".kith.v1.").to_owned();
            let (request, reply) = (short(&method.request), short(&method.reply));
            let _ = writeln!(text, "{}({request}) {stream}{reply}", method.name);
        }
    }
    for message in &file.messages {
        let _ = writeln!(text, "\nmessage {}", message.name);
        message.fields.iter().for_each(|of| {
            let _ = writeln!(text, "{}", field(message, of));
        });
    }
    for listed in &file.enums {
        let _ = writeln!(text, "\nenum {}", listed.name);
        listed.values.iter().for_each(|value| {
            let _ = writeln!(text, "{} {}", value.number, value.name);
        });
    }
    golden::file("contract.txt", text.as_bytes());
}
