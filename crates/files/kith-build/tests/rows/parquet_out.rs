//! Rows that are written as Parquet are read back unchanged.

use kith_build::rows::{KeyType, MemorySource, ParquetRows, RowOptions, RowSource, ValueShape, read_rows};
use kith_schema::{RecordWriter, Schema};

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn there_and_back(options: &RowOptions, rows: &Rows) -> Rows {
    let mut file = Vec::new();
    let mut writer = ParquetRows::new(&mut file, options).expect("a writer");
    rows.iter().for_each(|(key, value)| writer.push(key, value).expect("a row"));
    writer.finish().expect("written");
    let source: Box<dyn RowSource> = Box::new(MemorySource::new("rows.parquet", file));
    let mut back = Vec::new();
    let report = read_rows(&[source], options, |key, value| {
        back.push((key.to_vec(), value.to_vec()));
        Ok::<(), std::convert::Infallible>(())
    });
    assert_eq!(report.expect("read").rows, rows.len() as u64);
    back
}

#[test]
fn keys_and_values_of_every_type_come_back() {
    let id = |id: u64| id.to_le_bytes().to_vec();
    let cases: [(KeyType, ValueShape, Rows); 3] = [
        (KeyType::Id, ValueShape::Text, vec![(id(u64::MAX), b"a\n\xc3\xa9".to_vec()), (id(0), vec![])]),
        (KeyType::Bytes, ValueShape::Bytes, vec![(vec![0, 255], vec![255]), (vec![1], vec![])]),
        (KeyType::String, ValueShape::Json, vec![(b"k".to_vec(), b"{\"a\":1.50}".to_vec())]),
    ];
    for (key, value, rows) in cases {
        assert_eq!(there_and_back(&RowOptions::new(key, value), &rows), rows);
    }
    // More rows than a batch, and no rows.
    let many: Rows = (0..10_000).map(|key| (id(key), key.to_string().into_bytes())).collect();
    let options = RowOptions::new(KeyType::Id, ValueShape::Text);
    assert_eq!(there_and_back(&options, &many), many);
    assert_eq!(there_and_back(&options, &vec![]), vec![]);
}

#[test]
fn records_come_back_with_every_type_of_field_and_with_nulls() {
    let schema: Schema = r#"{"fields":[
        {"name":"b","type":"bool","nullable":true},{"name":"i","type":"i32","nullable":true},
        {"name":"l","type":"i64","nullable":true},{"name":"u","type":"u64"},
        {"name":"f","type":"f32","nullable":true},{"name":"d","type":"f64","nullable":true},
        {"name":"t","type":"text","nullable":true},{"name":"y","type":"bytes","nullable":true},
        {"name":"at","type":"timestamp","nullable":true},
        {"name":"v","type":"vector<f32,3>","nullable":true},{"name":"h","type":"vector<f16,2>","nullable":true},
        {"name":"n","type":"vector<i8,2>","nullable":true},
        {"name":"list","type":"list<text>","nullable":true},{"name":"map","type":"map<text,i64>","nullable":true}]}"#
        .parse()
        .unwrap();
    let texts = [
        r#"{"b":true,"i":-1,"l":-9007199254740993,"u":18446744073709551615,"f":0.1,"d":-2.5,"t":"é","y":"AP8=","at":1700000000123,"v":[1,0.5,-2],"h":[0.5,-1],"n":[-128,127],"list":["a",""],"map":{"a":1,"b":-2}}"#,
        r#"{"b":null,"i":null,"l":null,"u":0,"f":null,"d":null,"t":null,"y":null,"at":null,"v":null,"h":null,"n":null,"list":null,"map":null}"#,
        r#"{"b":false,"i":1,"l":1,"u":1,"f":1,"d":1,"t":"","y":"","at":-1,"v":[0,0,0],"h":[0,0],"n":[0,0],"list":[],"map":{}}"#,
    ];
    let mut writer = RecordWriter::new(&schema);
    let rows: Rows = (0_u64..)
        .zip(texts)
        .map(|(key, text)| {
            let mut record = Vec::new();
            writer.write_json(text, &mut record).unwrap();
            (key.to_le_bytes().to_vec(), record)
        })
        .collect();
    let mut options = RowOptions::new(KeyType::Id, ValueShape::Record(schema));
    assert_eq!(there_and_back(&options, &rows), rows);
    // The key is one of the fields.
    options.key_field = Some("u".to_owned());
    let keys = [u64::MAX, 0, 1];
    let rows: Rows =
        rows.iter().zip(keys).map(|((_, value), key)| (key.to_le_bytes().to_vec(), value.clone())).collect();
    assert_eq!(there_and_back(&options, &rows), rows);
}

#[test]
fn what_is_not_of_its_type_is_refused() {
    let mut writer = ParquetRows::new(Vec::new(), &RowOptions::new(KeyType::Id, ValueShape::Text)).unwrap();
    assert!(writer.push(b"short", b"").is_err());
}
