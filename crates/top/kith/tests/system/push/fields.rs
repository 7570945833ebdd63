//! Pushes whose records have other fields, or times in another unit, than the store expects.

use super::{PARTITIONS, code, json_of, refusal, text, write};
use crate::support;
use serde_json::{Value, json};
use support::cluster::{Cluster, kith};

const WHOLE: &str = r#"{"fields":[{"name":"name","type":"text"},{"name":"age","type":"i64","nullable":true},{"name":"born","type":"timestamp","nullable":true}]}"#;
const PART: &str = r#"{"fields":[{"name":"name","type":"text"},{"name":"born","type":"timestamp","nullable":true},{"name":"town","type":"text","nullable":true}]}"#;

#[test]
fn fields_that_a_push_lacks_are_named_and_times_are_dates() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "1", "--partitions", PARTITIONS]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, content: &str| write(folder.path(), name, content);
    let (whole, part) = (file("whole.json", WHOLE), file("part.json", PART));
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "record"]);
    let push = |arguments: &[&str]| {
        let all = [&["store", "push", "people", "-o", "json"], arguments].concat();
        cluster.kith(&all).output().expect("kith runs")
    };
    let pushed = |arguments: &[&str]| {
        let output = push(arguments);
        assert!(output.status.success(), "{}", text(&output));
        json_of(&String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let shown = || cluster.must(&["mget", "people", "1", "2"]);

    // Seconds are doubted, and read as such once the push says so.
    let seconds = file("seconds.csv", "key,name,age,born\n1,Ada,36,1700000000\n2,Bob,,2026-11-29\n");
    let doubted = pushed(&[&seconds, "--schema", &whole]);
    assert!(doubted["warning"].as_str().is_some_and(|it| it.contains("--times born:time-s")), "{doubted}");
    assert!(shown().contains("1970-01-20T16:13:20Z"), "{}", shown());
    let right = pushed(&[&seconds, "--times", "born:time-s"]);
    assert_eq!(right["warning"], Value::Null, "{right}");
    assert!(shown().contains("2023-11-14T22:13:20Z") && shown().contains("2026-11-29T00:00:00Z"));
    let one = cluster.must(&["get", "people", "1"]);
    assert_eq!(one.trim(), r#"{"name":"Ada","age":36,"born":1700000000000}"#, "JSON keeps numbers");
    assert_eq!(code(&refusal(&push(&[&seconds, "--times", "age:time-s"]))), "bad_input");

    // Rows, and changes of single rows.
    let lacking = file("lacking.jsonl", "{\"key\":1,\"value\":{\"name\":\"Ada\",\"born\":null}}\n");
    for more in [&[][..], &["--delta"]] {
        let error = refusal(&push(&[&[lacking.as_str()], more].concat()));
        assert!(code(&error) == "bad_input" && error.to_string().contains("age"), "{error}");
    }
    // A version that was built elsewhere, on the command line as by every other builder.
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let rows = file("rows.csv", "key,name,born,town\n1,Ada,2026-11-29T01:02:03+0100,Zug\n");
    let build = ["store", "build", "people", "--partitions", PARTITIONS, "--key", "id", "--value", "record"];
    let built = kith(&[&build[..], &["--schema", &part, "--out", out, &rows]].concat()).output();
    assert!(built.as_ref().is_ok_and(|built| built.status.success()), "{built:?}");
    let refused = push(&[out]);
    let error = refusal(&refused);
    assert!(code(&error) == "incompatible_schema" && error.to_string().contains("age"), "{error}");
    assert!(text(&refused).contains("\"town\" (text) is new"), "{}", text(&refused));
    assert_eq!(cluster.must(&["get", "people", "1"]), one, "a refused push changes nothing");
    let filled = pushed(&[out, "--fill-missing"]);
    let changes = filled["schema_changes"].to_string();
    assert!(changes.contains("age") && changes.contains("town"), "{filled}");
    assert_eq!(
        json_of(&cluster.must(&["get", "people", "1"])),
        json!({"name": "Ada", "born": 1_795_910_523_000_u64, "town": "Zug"})
    );
}
