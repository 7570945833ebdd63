//! Measures the time to decode records, in nanoseconds: pages with a title, a score, tags, a vector of 64 f32 and a
//! count, as records of Kith and of Avro, in turn over the same pages, and compared with a copy of the same bytes. Avro
//! is read by its crate, and by a decoder written by hand for this schema. All sides must return what was written,
//! which a sum over it checks.
//!
//! `KITH_BENCH_ROUNDS` sets the number of rounds (41).

use apache_avro::{Schema as AvroSchema, from_avro_datum, from_value, to_avro_datum, to_value, types::Value};
use kith_rivals::{
    Side,
    avro::{self, Page},
    print, rounds, setting,
};
use kith_schema::{RecordView, RecordWriter, Scalar, Schema};
use kith_types::fmix64;
use std::hint::black_box;

const PAGES: usize = 10_000;
const DIMENSIONS: usize = 64;
const SCHEMA: &str = r#"{"fields":[
    {"name":"title","type":"text"},
    {"name":"score","type":"f64","nullable":true},
    {"name":"tags","type":"list<text>"},
    {"name":"embed","type":"vector<f32,64>"},
    {"name":"visits","type":"i64"}]}"#;
/// The places of fields in both schemas.
const TITLE: usize = 0;
const SCORE: usize = 1;
const TAGS: usize = 2;
const EMBED: usize = 3;
const VISITS: usize = 4;

fn main() {
    let pages: Vec<Page> = (0..PAGES as u64).map(page).collect();
    let schema: Schema = SCHEMA.parse().expect("the schema is valid");
    let [avro_schema, visits_schema] =
        [avro::SCHEMA, avro::VISITS_SCHEMA].map(|text| AvroSchema::parse_str(text).expect("a schema"));
    let kith: Vec<Vec<u8>> = pages.iter().map(|page| written(&schema, page)).collect();
    let avro: Vec<Vec<u8>> = pages.iter().map(|page| avro_written(&avro_schema, page)).collect();
    for ((page, kith), avro) in pages.iter().zip(&kith).zip(&avro) {
        assert_eq!(decoded(&schema, kith), *page);
        assert_eq!(by_crate(&avro_schema, avro), *page);
        assert_eq!(avro::decode(avro).expect("a page"), *page);
        assert_eq!(avro::visits(avro), Some(page.visits));
    }
    let bytes = |records: &[Vec<u8>]| records.iter().map(Vec::len).sum::<usize>() / records.len();
    println!(
        "{PAGES} pages of {} bytes, {} in Avro; nanoseconds of processor a page",
        bytes(&kith),
        bytes(&avro)
    );
    let count = setting("KITH_BENCH_ROUNDS", 41);
    whole(&schema, &avro_schema, &kith, &avro, count);
    one_field(&schema, (&avro_schema, &visits_schema), &kith, &avro, count);
    in_place(&schema, &kith, count);
}

fn page(id: u64) -> Page {
    let random = |what: u64| fmix64(id << 8 | what);
    let words = ["graph", "music", "football", "news", "of the day", "Zürich"];
    let word = |what: u64| words[(random(what) % words.len() as u64) as usize].to_owned();
    Page {
        title: format!("{} {} {id}", word(0), word(1)),
        score: (random(2) % 4 > 0).then(|| random(3) as f64 / u64::MAX as f64),
        tags: (0..random(4) % 5).map(|tag| word(5 + tag)).collect(),
        embed: (0..DIMENSIONS as u64).map(|at| random(16 + at) as f32 / u64::MAX as f32 - 0.5).collect(),
        visits: (random(10) % 10_000_000) as i64,
    }
}

fn written(schema: &Schema, page: &Page) -> Vec<u8> {
    let (mut writer, mut out) = (RecordWriter::new(schema), Vec::new());
    writer.set(TITLE, Scalar::Text(&page.title)).expect("text");
    match page.score {
        Some(score) => writer.set(SCORE, Scalar::F64(score)).expect("a number"),
        None => writer.set_null(SCORE).expect("it may be null"),
    }
    writer.set_list(TAGS, page.tags.iter().map(|tag| Scalar::Text(tag))).expect("texts");
    writer.set_f32s(EMBED, &page.embed).expect("64 of them");
    writer.set(VISITS, Scalar::I64(page.visits)).expect("a number");
    writer.finish(&mut out).expect("a record");
    out
}

fn avro_written(schema: &AvroSchema, page: &Page) -> Vec<u8> {
    let value = to_value(page).and_then(|value| value.resolve(schema)).expect("it fits its schema");
    to_avro_datum(schema, value).expect("it fits its schema")
}

/// Reads everything of a record of Kith into owned values.
fn decoded(schema: &Schema, record: &[u8]) -> Page {
    let view = RecordView::new(schema, record).expect("a record");
    let field = |index| view.at(index).expect("undamaged");
    let list = field(TAGS).and_then(|field| field.as_list()).expect("a list");
    let tags = list.iter().map(|tag| match tag {
        Ok(Scalar::Text(text)) => text.to_owned(),
        other => panic!("a tag is {other:?}"),
    });
    let vector = field(EMBED).and_then(|field| field.as_vector()).expect("a vector");
    let mut embed = vec![0.0; vector.dimensions()];
    vector.copy_to(&mut embed);
    Page {
        title: field(TITLE).and_then(|field| field.as_text()).expect("text").to_owned(),
        score: field(SCORE).and_then(|field| field.as_f64()),
        tags: tags.collect(),
        embed,
        visits: visits(&view),
    }
}

fn visits(view: &RecordView<'_>) -> i64 {
    view.at(VISITS).expect("undamaged").and_then(|field| field.as_i64()).expect("a number")
}

/// Reads everything of a record of Avro into owned values, through the crate's own values.
fn by_crate(schema: &AvroSchema, mut record: &[u8]) -> Page {
    let value = from_avro_datum(schema, &mut record, None).expect("a record");
    from_value(&value).expect("a page")
}

/// A sum over parts of a page.
fn sum_of(page: &Page) -> u64 {
    let tags: usize = page.tags.iter().map(String::len).sum();
    page.visits.unsigned_abs() + (page.title.len() + tags) as u64 + u64::from(page.embed[63].to_bits())
}

fn over<'a>(records: &'a [Vec<u8>], each: impl Fn(&[u8]) -> u64 + 'a) -> Box<dyn FnMut(usize) -> u64 + 'a> {
    Box::new(move |_| records.iter().map(|record| each(record)).fold(0, u64::wrapping_add))
}

fn whole(schema: &Schema, avro_schema: &AvroSchema, kith: &[Vec<u8>], avro: &[Vec<u8>], count: usize) {
    println!("everything, owned");
    let mut sides: [Side<'_>; 3] = [
        ("Kith", over(kith, |record| sum_of(black_box(&decoded(schema, record))))),
        ("Avro, by hand", over(avro, |record| sum_of(black_box(&avro::decode(record).expect("a page"))))),
        ("apache-avro", over(avro, |record| sum_of(black_box(&by_crate(avro_schema, record))))),
    ];
    let took = rounds(&mut sides, count, PAGES);
    print(&sides, &took);
    println!("apache-avro to its own value, not to a struct");
    let mut sides: [Side<'_>; 1] = [(
        "apache-avro",
        over(avro, |mut record| {
            let value = from_avro_datum(avro_schema, &mut record, None).expect("a record");
            u64::from(matches!(black_box(value), Value::Record(_)))
        }),
    )];
    let took = rounds(&mut sides, count, PAGES);
    print(&sides, &took);
}

fn one_field(
    schema: &Schema,
    (avro_schema, visits_schema): (&AvroSchema, &AvroSchema),
    kith: &[Vec<u8>],
    avro: &[Vec<u8>],
    count: usize,
) {
    println!("one field, the last");
    let mut sides: [Side<'_>; 3] = [
        (
            "Kith",
            over(kith, |record| visits(&RecordView::new(schema, record).expect("a record")).unsigned_abs()),
        ),
        ("Avro, by hand", over(avro, |record| avro::visits(record).expect("a page").unsigned_abs())),
        (
            "apache-avro",
            over(avro, |mut record| {
                let value = from_avro_datum(avro_schema, &mut record, Some(visits_schema));
                match value.expect("a record") {
                    Value::Record(fields) => match fields[..] {
                        [(_, Value::Long(visits))] => visits.unsigned_abs(),
                        _ => panic!("one field was asked for"),
                    },
                    other => panic!("a record is {other:?}"),
                }
            }),
        ),
    ];
    let took = rounds(&mut sides, count, PAGES);
    print(&sides, &took);
}

/// Compares views of a record in place with a copy of it.
fn in_place(schema: &Schema, kith: &[Vec<u8>], count: usize) {
    println!("the title and the vector where they lie, beside a copy of the record");
    let mut buffer = vec![0; kith.iter().map(Vec::len).max().unwrap_or(0)];
    let mut sides: [Side<'_>; 2] = [
        (
            "Kith",
            over(kith, |record| {
                let view = RecordView::new(schema, record).expect("a record");
                let title = view.at(TITLE).expect("undamaged").and_then(|field| field.as_text());
                let vector = view.at(EMBED).expect("undamaged").and_then(|field| field.as_vector());
                black_box((title, vector));
                1
            }),
        ),
        (
            "copy",
            Box::new(|_| {
                for record in kith {
                    buffer[..record.len()].copy_from_slice(record);
                    black_box(&mut buffer);
                }
                kith.len() as u64
            }),
        ),
    ];
    let took = rounds(&mut sides, count, PAGES);
    print(&sides, &took);
}
