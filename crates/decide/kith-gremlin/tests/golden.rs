//! Values as gremlin-python codes them (`data/golden.txt`, which `data/make-golden.py` makes).

use kith_gremlin::{graphbinary, graphson, value::Value};

/// A line of the file: a value's type and text, its GraphBinary and its GraphSON. A coding with a `*` is only read.
struct Line<'a> {
    expected: &'a str,
    binary: Vec<u8>,
    is_binary_ours: bool,
    graphson: &'a str,
    is_graphson_ours: bool,
}

fn lines() -> impl Iterator<Item = Line<'static>> {
    include_str!("data/golden.txt").lines().map(|line| {
        let mut parts = line.split('\t');
        let mut part = || parts.next().expect("three parts");
        let (expected, binary, graphson) = (part(), part(), part());
        let hex = binary.trim_start_matches('*').as_bytes();
        let byte = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).expect("digits are ASCII");
            u8::from_str_radix(digits, 16).expect("digits are hexadecimal")
        };
        Line {
            expected,
            binary: hex.chunks(2).map(byte).collect(),
            is_binary_ours: !binary.starts_with('*'),
            graphson: graphson.trim_start_matches('*'),
            is_graphson_ours: !graphson.starts_with('*'),
        }
    })
}

fn described(value: &Value) -> String {
    format!("{} {value}", value.type_name())
}

#[test]
fn graphbinary_of_gremlin_python_is_read_and_written() {
    for line in lines() {
        let value = graphbinary::read_value(&line.binary).expect(line.expected);
        assert_eq!(described(&value), line.expected);
        let written = graphbinary::write_value(&value).expect(line.expected);
        assert_eq!(written == line.binary, line.is_binary_ours, "{}: {written:02x?}", line.expected);
        assert_eq!(graphbinary::read_value(&written).as_ref(), Ok(&value), "{}", line.expected);
    }
}

#[test]
fn graphson_of_gremlin_python_is_read_and_written() {
    for line in lines() {
        let value = graphson::read_value(line.graphson).expect(line.expected);
        assert_eq!(described(&value), line.expected);
        let written = graphson::to_json(&value).expect(line.expected).to_string();
        assert_eq!(written == line.graphson, line.is_graphson_ours, "{}: {written}", line.expected);
        assert_eq!(graphson::read_value(&written).as_ref(), Ok(&value), "{}", line.expected);
    }
}

#[test]
fn both_codings_give_the_same_value() {
    for line in lines() {
        assert_eq!(
            graphbinary::read_value(&line.binary),
            graphson::read_value(line.graphson),
            "{}",
            line.expected
        );
    }
}

#[test]
fn a_coding_that_is_cut_is_an_error() {
    for line in lines() {
        for length in 0..line.binary.len() {
            graphbinary::read_value(&line.binary[..length]).expect_err("cut");
        }
        for (length, _) in line.graphson.char_indices() {
            let is_number = line.graphson.parse::<f64>().is_ok();
            assert!(
                is_number || graphson::read_value(&line.graphson[..length]).is_err(),
                "{}",
                line.expected
            );
        }
    }
}
