//! Whoever may write one store, and tries to reach others with versions of them.

use super::{bearing, rights, token_file};
use super::{
    offers::Attacker,
    secured::{SecuredCluster, fill, must, with},
};
use kith_schema::Schema;
use kith_types::ErrorCode;
use kith_wire::v1;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every file below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path()))
        } else {
            found.push(entry.path())
        }
    }
    found.sort();
    found
}

/// Copies the files of a version to another folder.
fn copy_files(version: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for file in files_below(version) {
        fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("copied");
    }
}

/// The folder of the version in a store's part of an object store.
fn version_of(objects: &Path, store: &str) -> PathBuf {
    let files = files_below(&objects.join(store));
    let manifest = files.iter().find(|path| path.ends_with("manifest.json")).expect("a version");
    manifest.parent().expect("a folder").to_owned()
}

/// Pushes that would have nodes fetch a version of another store, or write outside their folder: by which field, and the code
/// that refuses it. The places are another store's version, that of the store itself, and a copy elsewhere.
fn ways_to_another_store(
    folder: &Path,
    [secret, own, elsewhere]: [&Path; 3],
) -> Vec<(&'static str, &'static str, serde_json::Value, ErrorCode)> {
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let detour = format!("{}/../../../secrets", text(own));
    vec![
        ("a1", "url", json!(text(secret)), ErrorCode::UrlNotAllowed),
        ("a2", "url", json!(format!("file://{}", text(secret))), ErrorCode::UrlNotAllowed),
        ("a3", "url", json!(detour), ErrorCode::UrlNotAllowed),
        ("a4", "url", json!(text(elsewhere)), ErrorCode::UrlNotAllowed),
        ("a5", "url", json!("s3://bucket/secrets/values/7"), ErrorCode::UrlNotAllowed),
        ("a6", "url", json!("/proc/self/fd"), ErrorCode::UrlNotAllowed),
        ("a7", "name", json!(text(&folder.join("deep"))), ErrorCode::BadRequest),
        ("a8", "name", json!("../secrets/values"), ErrorCode::BadRequest),
        ("a9", "name", json!(".."), ErrorCode::BadRequest),
        ("a10", "name", json!(""), ErrorCode::BadRequest),
    ]
}

#[test]
fn the_right_to_write_one_store_reaches_no_other() {
    let mut builds = PathBuf::new();
    let cluster = SecuredCluster::start(|folder| {
        builds = folder.join("builds");
        rights(folder, &[("ads", "ads", "read = [\"pages\", \"scores\"]\nwrite = [\"scores\"]")])
    });
    let ops = cluster.authority.papers("ops");
    for store in ["pages", "scores", "secrets"] {
        fill(&cluster, store, 10, &ops);
    }
    let token = token_file(&cluster, "ads", "ads");
    let ads = Attacker::new(&cluster, None, Some(&token));
    let objects = cluster.folder.path().join("objects");
    let (secret, own) = (version_of(&objects, "secrets"), version_of(&objects, "scores"));
    let elsewhere = builds.join("secrets");
    copy_files(&secret, &elsewhere);
    let before = files_below(cluster.folder.path());
    let secrets = ads.component("secrets");
    for (push, field, value, code) in
        ways_to_another_store(cluster.folder.path(), [&secret, &own, &elsewhere])
    {
        let refused = ads.push("scores", push, &secrets, &[(field, value.clone())]).expect_err("refused");
        assert_eq!(refused.code(), code, "{field} {value}: {refused}");
    }
    let refused = ads.push("secrets", "a11", &secrets, &[]).expect_err("it may not write it");
    assert_eq!(refused.code(), ErrorCode::PermissionDenied);

    assert_eq!(files_below(cluster.folder.path()), before, "nothing came and nothing went");
    assert!(must(bearing(cluster.kith(&["get", "scores", "3"]), &token)).contains("value 3 of scores"));
    assert!(must(with(cluster.kith(&["get", "secrets", "3"]), &ops)).contains("value 3 of secrets"));
    assert_audited(
        &cluster,
        ["ads", "scores"],
        &["object store of this cluster", "are not read from s3://bucket", "../secrets/values"],
    );
}

/// The audit log says why pushes of a store by a subject were refused, or that they were forced.
fn assert_audited(cluster: &SecuredCluster, [subject, store]: [&str; 2], reasons: &[&str]) {
    let log = cluster.router_log();
    for reason in reasons {
        let is_logged =
            log.lines().any(|line| ["audit", subject, store, reason].iter().all(|part| line.contains(part)));
        assert!(is_logged, "{reason}: {log}");
    }
}

#[test]
fn a_version_of_another_store_is_refused_also_in_a_place_that_is_listed() {
    let cluster = SecuredCluster::start(|folder| {
        let builds = folder.join("builds");
        fs::write(folder.join("listed"), format!("scores,pages={}", builds.display())).expect("written");
        rights(folder, &[])
    });
    let ops = cluster.authority.papers("ops");
    for store in ["scores", "secrets"] {
        fill(&cluster, store, 10, &ops);
    }
    let objects = cluster.folder.path().join("objects");
    let folder = cluster.folder.path().join("builds/7");
    copy_files(&version_of(&objects, "secrets"), &folder);
    let mut cluster = cluster;
    let listed = fs::read_to_string(cluster.folder.path().join("listed")).expect("read");
    let papers = cluster.papers.clone();
    cluster.spawn(&["router", "--id", "1", "--read-from", &listed], &papers);
    let writer = Attacker::at(&cluster, 1, Some(&ops), None);
    let secrets = writer.component("secrets");
    let url = json!(folder.to_str().expect("UTF-8"));
    let refused = writer.push("scores", "b1", &secrets, &[("url", url.clone())]).expect_err("another store");
    assert_eq!(refused.code(), ErrorCode::OtherStore, "{refused}");
    assert!(refused.to_string().contains("secrets"), "{refused}");
    let refused = writer.push("secrets", "b2", &secrets, &[("url", url)]).expect_err("not for this store");
    assert_eq!(refused.code(), ErrorCode::UrlNotAllowed, "{refused}");
    assert!(must(with(cluster.kith(&["get", "scores", "3"]), &ops)).contains("value 3 of scores"));
}

#[test]
fn a_version_that_lacks_fields_of_the_served_one_is_refused_unless_it_may() {
    let cluster = SecuredCluster::start(|folder| rights(folder, &[]));
    let ops = cluster.authority.papers("ops");
    let written = |name: &str, text: &str| {
        let file = cluster.folder.path().join(name);
        fs::write(&file, text).expect("written");
        file.display().to_string()
    };
    let kith = |arguments: &[&str]| must(with(cluster.kith(arguments), &ops));
    let record = ["--key", "id", "--value", "record"];
    kith(&[&["store", "create", "people", "--key-field", "id"], &record[..]].concat());
    kith(&["store", "push", "people", &written("whole.csv", "id,name,age\n7,Ada,36\n")]);
    let objects = cluster.folder.path().join("objects");
    let served = fs::read(version_of(&objects, "people").join("manifest.json")).expect("a manifest");
    let served: Value = serde_json::from_slice(&served).expect("JSON");
    let partitions = served["partition_count"].to_string();
    let out = cluster.folder.path().join("out");
    let rows = written("few.csv", "id,name\n7,Grace\n");
    let build = ["store", "build", "people", &rows, "--key-field", "id", "--partitions", &partitions];
    let to = ["--out", out.to_str().expect("UTF-8"), "-o", "json"];
    let built: Value = serde_json::from_str(&kith(&[&build, &record[..], &to].concat())).expect("JSON");

    let writer = Attacker::new(&cluster, Some(&ops), None);
    let component = writer.component("people");
    let (version, hash) = (&built["version"], &built["manifest_hash"]);
    let manifest = fs::read(out.join(version.to_string()).join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let schema = manifest["values"]["schema"].as_str().expect("text").parse::<Schema>().expect("a schema");
    let schema = json!(schema.id().to_string());
    let push = |push: &str, schema: &Value, others: v1::PushRequest| {
        let folder = format!("{version}-{push}");
        copy_files(&out.join(version.to_string()), &objects.join("people/values").join(&folder));
        let changes = [
            ("version", version.clone()),
            ("manifest_hash", hash.clone()),
            ("folder", json!(folder)),
            ("schema", schema.clone()),
        ];
        writer.push_with("people", push, &component, &changes, others)
    };
    let fill_missing = || v1::PushRequest { fill_missing: true, ..Default::default() };
    let force = || v1::PushRequest { force: true, ..fill_missing() };
    let refused = push("c0", &json!(component.schema), force()).expect_err("that is the served one's");
    assert_eq!(refused.code(), ErrorCode::BadRequest, "{refused}");
    assert!(refused.to_string().contains("is said to have the schema"), "{refused}");
    let refused = push("c1", &schema, v1::PushRequest::default()).expect_err("it has no age");
    assert_eq!(refused.code(), ErrorCode::IncompatibleSchema, "{refused}");
    assert!(refused.to_string().contains("lacks fields of the current one: \"age\""), "{refused}");
    assert!(kith(&["get", "people", "7"]).contains("Ada"));
    let reasons = ["forced audit=true", "is said to have the schema", "lacks fields"];
    assert_audited(&cluster, ["ops", "people"], &reasons);
    push("c2", &schema, fill_missing()).expect("it may lack it");
    assert!(kith(&["get", "people", "7"]).contains("Grace"));
}
