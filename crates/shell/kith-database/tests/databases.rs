//! Tests of features that only one kind of database has: files, servers, logins, TLS, other graphs, and damage.

mod support;

mod databases {
    mod sessions;
}

use kith_database::{
    Database, DatabaseError, GraphIdentity, MysqlDatabase, MysqlOptions, MysqlTarget, PasswordSource,
    SCHEMA_VERSION, SqliteDatabase, SqliteOptions, Tls, testing::MariaDb,
};
use kith_live::{ListPlace, RowAnswer, RowQuery, RowWrite};
use kith_net::security::secret;
use kith_types::{ErrorCode, LogPoint, PartitionCount};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rusqlite::Connection;
use std::{fs, path::Path};
use support::{P, Q, association, batch, identity, lead, list, object, on, target, write};

fn other_graph() -> GraphIdentity {
    GraphIdentity { graph: 7, ..identity() }
}

fn other_count() -> GraphIdentity {
    GraphIdentity { partitions: PartitionCount::new(8).expect("the count is valid"), ..identity() }
}

fn sqlite(file: &Path, identity: GraphIdentity) -> Result<SqliteDatabase, DatabaseError> {
    SqliteDatabase::open(file, identity, SqliteOptions::default())
}

fn refusal<T>(opened: Result<T, DatabaseError>) -> ErrorCode {
    opened.err().expect("the request is refused").code()
}

#[tokio::test]
async fn a_file_belongs_to_one_graph() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("graph.sqlite");
    assert_eq!(refusal(sqlite(&file, identity())), ErrorCode::DatabaseEmpty);
    assert!(!file.exists(), "opening makes no file");
    let create = |identity| SqliteDatabase::create(&file, identity, SqliteOptions::default());
    let database = create(identity()).expect("a new file");
    write(&database, P, lead(&database, P, 1).await, vec![]).await;
    database.close().await;
    let error =
        database.commit(batch(P, LogPoint::new(1, 1), vec![])).await.expect_err("the database was closed");
    assert_eq!(error.code(), ErrorCode::DatabaseUnavailable);
    let error = database.read(P, vec![]).await.expect_err("the database was closed");
    assert_eq!(error.code(), ErrorCode::DatabaseUnavailable);

    for other in [other_graph(), other_count()] {
        assert_eq!(refusal(create(other)), ErrorCode::DatabaseOtherGraph);
        assert_eq!(refusal(sqlite(&file, other)), ErrorCode::DatabaseOtherGraph);
    }
    let again = create(identity()).expect("the database holds that graph");
    assert_eq!(again.points(vec![P]).await, Ok(vec![LogPoint::new(1, 1)]));
    again.close().await;
    let connection = Connection::open(&file).expect("any tool can open the file");
    connection.execute("UPDATE meta SET schema_version = 2", []).expect("the database can be written");
    let error = sqlite(&file, identity()).err().expect("its tables are those of a later release");
    assert_eq!(error, DatabaseError::Newer { found: 2, known: SCHEMA_VERSION });
    fs::write(&file, "this is no database, whatever its name says").expect("the file can be written");
    assert_eq!(refusal(sqlite(&file, identity())), ErrorCode::DatabaseDamaged);
}

#[tokio::test]
async fn any_tool_reads_plain_numbers_from_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("graph.sqlite");
    let database = SqliteDatabase::create(&file, identity(), SqliteOptions::default()).expect("a new file");
    let ids = [0, 5, i64::MAX as u64, 1 << 63, u64::MAX];
    let rows = ids.map(|id| RowWrite::PutObject(object(id, ""))).to_vec();
    write(&database, P, lead(&database, P, 1).await, rows).await;
    let connection = Connection::open(&file).expect("any tool can open the file");
    let statement = "SELECT CAST(id AS TEXT) AS plain FROM plain_objects ORDER BY length(plain), plain";
    let mut statement = connection.prepare(statement).expect("the view exists");
    let found: Vec<String> = statement
        .query_map([], |row| row.get(0))
        .expect("the statement runs")
        .map(|id| id.expect("text"))
        .collect();
    assert_eq!(found, ids.map(|id| id.to_string()));
}

#[tokio::test]
async fn damaged_rows_of_a_file_are_errors() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("graph.sqlite");
    let database = SqliteDatabase::create(&file, identity(), SqliteOptions::default()).expect("a new file");
    let end =
        write(&database, P, lead(&database, P, 1).await, vec![RowWrite::PutObject(object(1, ""))]).await;
    let connection = Connection::open(&file).expect("any tool can open the file");
    let execute = |statement: &str| connection.execute_batch(statement).expect("the database can be written");
    execute("UPDATE changes SET bytes = x'ff'; UPDATE objects SET type = 70000");
    execute("DELETE FROM partitions WHERE partition_id = 1");
    let damaged = |code| assert_eq!(code, ErrorCode::DatabaseDamaged);
    damaged(database.changes(P, LogPoint::default(), 9).await.expect_err("the rows are damaged").code());
    damaged(refusal(database.read(P, vec![RowQuery::Object(1)]).await));
    damaged(refusal(database.read(Q, vec![]).await));
    damaged(database.commit(batch(Q, end, vec![])).await.expect_err("there is no row").code());
    // Another process must not have written to the write-ahead log.
    execute("INSERT INTO changes SELECT partition_id, position + 1, term, written_ms, bytes FROM changes");
    damaged(database.commit(batch(P, end, vec![])).await.expect_err("the position is taken").code());
}

#[tokio::test]
async fn a_database_on_a_server_belongs_to_one_graph() {
    let server = MariaDb::shared().await;
    let address = server.address(&server.database().await);
    let open = |identity| MysqlDatabase::open(target(&address), identity, MysqlOptions::default());
    let create = |identity| MysqlDatabase::create(target(&address), identity, MysqlOptions::default());
    assert_eq!(refusal(open(identity()).await), ErrorCode::DatabaseEmpty);
    let (one, two) = tokio::join!(create(identity()), create(identity()));
    let (one, two) = (one.expect("the database is empty"), two.expect("both create the same graph"));
    write(&one, P, lead(&one, P, 1).await, vec![]).await;
    assert_eq!(two.points(vec![P]).await, Ok(vec![LogPoint::new(1, 1)]));
    one.close().await;
    let error = one.commit(batch(P, LogPoint::new(1, 1), vec![])).await.expect_err("the database was closed");
    assert_eq!(error.code(), ErrorCode::DatabaseUnavailable);
    for other in [other_graph(), other_count()] {
        assert_eq!(refusal(create(other).await), ErrorCode::DatabaseOtherGraph);
        assert_eq!(refusal(open(other).await), ErrorCode::DatabaseOtherGraph);
    }
    assert_eq!(create(identity()).await.expect("the database holds that graph").identity(), identity());
    let name = address.rsplit('/').next().expect("a name");
    server.execute(&format!("UPDATE {name}.meta SET schema_version = 2")).await;
    let error = open(identity()).await.err().expect("its tables are those of a later release");
    assert_eq!(error, DatabaseError::Newer { found: 2, known: SCHEMA_VERSION });
}

#[tokio::test]
async fn a_graph_is_removed_from_its_server_and_other_tables_stay() {
    let server = MariaDb::shared().await;
    let name = server.database().await;
    let address = server.address(&name);
    let create = |identity| MysqlDatabase::create(target(&address), identity, MysqlOptions::default());
    let remove = |identity| MysqlDatabase::remove(target(&address), identity, MysqlOptions::default());
    server.execute(&format!("CREATE TABLE {name}.mine (id INT)")).await;
    assert_eq!(remove(identity()).await, Ok(()), "there is none");
    let database = create(identity()).await.expect("the database is empty");
    write(&database, P, lead(&database, P, 1).await, vec![RowWrite::PutObject(object(1, ""))]).await;
    assert_eq!(remove(other_graph()).await.map_err(|error| error.code()), Err(ErrorCode::DatabaseOtherGraph));
    assert_eq!(remove(identity()).await, Ok(()));
    assert!(database.points(vec![P]).await.is_err(), "its tables are gone");
    let left = server.rows(&format!("SHOW TABLES FROM {name}")).await;
    assert!(left.len() == 1 && left[0].contains("mine"), "{left:?}");
    let again = create(other_graph()).await.expect("the database is empty again");
    assert_eq!(again.scan_objects(P, None, 9).await.map(|page| page.objects), Ok(vec![]));
}

#[tokio::test]
async fn the_most_partitions_that_a_cluster_may_have_can_be_created() {
    let server = MariaDb::shared().await;
    let all = PartitionCount::new(PartitionCount::MAX).expect("the count is valid");
    let identity = GraphIdentity { graph: 1, partitions: all };
    let address = server.address(&server.database().await);
    let created = MysqlDatabase::create(target(&address), identity, MysqlOptions::default()).await;
    let points = created.expect("the database is empty").points(all.iter().collect()).await;
    assert_eq!(points.map(|points| points.len()), Ok(PartitionCount::MAX as usize));
}

#[tokio::test]
async fn damaged_rows_of_a_server_are_errors() {
    let server = MariaDb::shared().await;
    let name = server.database().await;
    let database =
        MysqlDatabase::create(target(&server.address(&name)), identity(), MysqlOptions::default()).await;
    let database = database.expect("the database is empty");
    let end =
        write(&database, P, lead(&database, P, 1).await, vec![RowWrite::PutObject(object(1, ""))]).await;
    server.execute(&format!("UPDATE {name}.changes SET bytes = x'ff'")).await;
    server.execute(&format!("UPDATE {name}.objects SET type = 70000")).await;
    server.execute(&format!("DELETE FROM {name}.partitions WHERE partition_id = 1")).await;
    let damaged = |code| assert_eq!(code, ErrorCode::DatabaseDamaged);
    damaged(database.changes(P, LogPoint::default(), 9).await.expect_err("the rows are damaged").code());
    damaged(refusal(database.read(P, vec![RowQuery::Object(1)]).await));
    damaged(refusal(database.read(Q, vec![]).await));
    damaged(database.commit(batch(Q, end, vec![])).await.expect_err("there is no row").code());
    server.execute(&format!("INSERT INTO {name}.changes VALUES (2, 2, 1, 0, x'')")).await;
    damaged(database.commit(batch(P, end, vec![])).await.expect_err("the position is taken").code());
    server.execute(&format!("DROP TABLE {name}.counts")).await;
    damaged(refusal(database.read(P, vec![RowQuery::Count(list(1))]).await));
}

#[tokio::test]
async fn large_batches_are_split_into_packets() {
    let server = MariaDb::start(&["--max-allowed-packet=4M".to_owned()]).await;
    let database = on(&server, MysqlOptions::default()).await;
    let mut rows: Vec<_> = (0..9).map(|id| RowWrite::PutObject(object(id, &"x".repeat(1 << 20)))).collect();
    rows.extend((0..2_000).map(|id2| RowWrite::PutAssociation(list(1), association(id2, id2))));
    let end = lead(&database, P, 1).await;
    let change = kith_live::LoggedChange { rows, ..Default::default() };
    let parts = vec![support::part(P, end, vec![change])];
    database.commit(kith_live::Batch { parts, requires: Vec::new() }).await.expect("no packet is too large");
    let queries = (0..2_000).map(|id2| RowQuery::Association(list(1).to(id2))).collect();
    let found = database.read(P, queries).await.expect("the read succeeds").answers;
    assert!(found.iter().all(|answer| matches!(answer, RowAnswer::Association(Some(_)))));
    let page = database.scan_objects(P, None, 99).await.expect("the read succeeds");
    assert_eq!(page.objects.len(), 9);
}

#[tokio::test]
async fn a_server_reads_no_more_rows_than_it_returns() {
    let server = MariaDb::start(&[]).await;
    let database = on(&server, MysqlOptions::default()).await;
    let mut end = lead(&database, P, 1).await;
    for chunk in 0..8 {
        // Half of the associations have the same time.
        let time = |id2| if id2 % 2 == 0 { 1_000 } else { id2 };
        let ids = chunk * 500..chunk * 500 + 500;
        let mut rows: Vec<_> =
            ids.clone().map(|id2| RowWrite::PutAssociation(list(1), association(id2, time(id2)))).collect();
        rows.extend(ids.map(|id| RowWrite::PutObject(object(id, "here"))));
        end = write(&database, P, end, rows).await;
    }
    let page = |after: Option<(u64, u64)>| {
        let after = after.map(|(time, id2)| ListPlace { time, id2 });
        vec![RowQuery::List { list: list(1), after, skip: 0, limit: 10 }]
    };
    let reads = [
        page(None),
        page(Some((1_000, 2_000))),
        page(Some((999, 999))),
        vec![RowQuery::Association(list(1).to(17)), RowQuery::Association(list(1).to(3_999))],
        vec![RowQuery::Object(0), RowQuery::Object(2_000), RowQuery::Object(9_999)],
    ];
    for queries in reads {
        let before = server.rows_read().await;
        database.read(P, queries.clone()).await.expect("the read succeeds");
        let read = server.rows_read().await - before;
        assert!(read <= 30, "{queries:?} reads {read} rows");
    }
    // Of the associations that a page by index skips, only the entries of the index are passed over.
    let page = vec![RowQuery::List { list: list(1), after: None, skip: 3_900, limit: 10 }];
    let (before, sent) = (server.rows_read().await, server.rows_sent().await);
    let found = database.read(P, page).await.expect("the read succeeds").answers;
    let (read, sent) = (server.rows_read().await - before, server.rows_sent().await - sent);
    assert!(matches!(&found[0], RowAnswer::List(found) if found.len() == 10), "{found:?}");
    assert!(read <= 3_900 + 60 && sent <= 30, "{read} rows read, {sent} sent");
    let before = server.rows_read().await;
    database.scan_objects(P, Some(2_000), 10).await.expect("the read succeeds");
    database.scan_associations(P, Some(list(1).to(2_000)), 10).await.expect("the read succeeds");
    database.changes(P, LogPoint::new(1, 6), 9).await.expect("the read succeeds");
    let read = server.rows_read().await - before;
    assert!(read <= 60, "scans and the log read {read} rows");
}

/// Starts a server with two users: one may do everything in `social`, the other may only read it.
async fn with_users() -> MariaDb {
    let server = MariaDb::start_with_users().await;
    for statement in [
        "CREATE DATABASE social",
        "CREATE USER kith@localhost IDENTIFIED BY 'right'",
        "CREATE USER reader@localhost IDENTIFIED BY 'right'",
        "GRANT ALL ON social.* TO kith@localhost",
        "GRANT SELECT ON social.* TO reader@localhost",
    ] {
        server.execute(statement).await;
    }
    server
}

#[tokio::test]
async fn logins_and_rights_are_checked_by_the_server() {
    let server = with_users().await;
    let file = server.path("password");
    secret::testing::write(Path::new(&file), "right\n");
    let target = |user: &str, password: Option<PasswordSource>| {
        let address = format!("mysql://{user}@127.0.0.1:{}/social", server.port());
        MysqlTarget::parse(&address, password).expect("the address is valid")
    };
    let from_file = || Some(PasswordSource::File(file.clone()));
    let create = |target| MysqlDatabase::create(target, identity(), MysqlOptions::default());
    assert_eq!(refusal(create(target("kith", None)).await), ErrorCode::DatabaseRefused);
    let missing = Some(PasswordSource::Variable("KITH_TEST_NO_SUCH_VARIABLE".to_owned()));
    let error = create(target("kith", missing)).await.err().expect("the password is missing");
    assert!(error.to_string().contains("KITH_TEST_NO_SUCH_VARIABLE"), "{error}");
    let database = create(target("kith", from_file())).await.expect("the password is right");
    let end = lead(&database, P, 1).await;

    let reader = MysqlDatabase::open(target("reader", from_file()), identity(), MysqlOptions::default());
    let reader = reader.await.expect("the user may read");
    assert_eq!(reader.points(vec![P]).await, Ok(vec![end]));
    let error = reader.commit(batch(P, end, vec![])).await.expect_err("the user may not write");
    assert_eq!(error.code(), ErrorCode::DatabaseRefused, "{error}");
    server.execute("SET GLOBAL read_only = 1").await;
    let error = database.commit(batch(P, end, vec![])).await.expect_err("no leader may write");
    assert_eq!(error.code(), ErrorCode::DatabaseReadOnly, "{error}");
}

#[tokio::test]
async fn a_missing_database_is_created_if_the_user_may() {
    let server = with_users().await;
    let file = server.path("password");
    secret::testing::write(Path::new(&file), "right\n");
    server.execute("GRANT ALL ON `a ``b`.* TO kith@localhost").await;
    server.execute("GRANT SELECT ON `a ``b`.* TO reader@localhost").await;
    let target = |user: &str| {
        let address = format!("mysql://{user}@127.0.0.1:{}/a%20%60b", server.port());
        MysqlTarget::parse(&address, Some(PasswordSource::File(file.clone()))).expect("the address is valid")
    };
    let create = |user| MysqlDatabase::create(target(user), identity(), MysqlOptions::default());
    let error = create("reader").await.err().expect("the user may not create it");
    assert!(error.to_string().contains("no database \"a `b\", and it may not be created"), "{error}");
    // Only a new graph makes a database.
    let opened = MysqlDatabase::open(target("kith"), identity(), MysqlOptions::default()).await;
    assert_eq!(refusal(opened), ErrorCode::DatabaseEmpty);
    let database = create("kith").await.expect("the user may create it");
    lead(&database, P, 1).await;
    create("kith").await.expect("it is there");
}

#[tokio::test]
async fn connections_over_tls_check_the_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let authority = |name: &str| {
        let mut params = CertificateParams::new(vec![]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
            .expect("the certificate is valid");
        fs::write(path(name), issuer.pem()).expect("the folder can be written");
        issuer
    };
    let (issuer, _) = (authority("ca.pem"), authority("other-ca.pem"));
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, &issuer).expect("the certificate is valid");
    fs::write(path("cert.pem"), certificate.pem()).expect("the folder can be written");
    fs::write(path("key.pem"), key.serialize_pem()).expect("the folder can be written");
    let tls = [format!("--ssl-cert={}", path("cert.pem")), format!("--ssl-key={}", path("key.pem"))];
    let server = MariaDb::start(&tls).await;
    let name = server.database().await;
    let required = |address: &str, ca: Option<&str>| {
        let tls = Tls::Required(ca.map(|ca| path(ca).into()));
        let target = MysqlTarget { tls, ..target(address) };
        MysqlDatabase::create(target, identity(), MysqlOptions::default())
    };
    let at = |host: &str| format!("mysql://root@{host}:{}/{name}", server.port());
    let database = required(&at("localhost"), Some("ca.pem")).await.expect("its certificate is right");
    lead(&database, P, 1).await;
    let other_name = required(&at("127.0.0.1"), Some("ca.pem")).await;
    assert!(other_name.is_err(), "the certificate is for another name");
    assert!(required(&at("localhost"), Some("other-ca.pem")).await.is_err(), "the authority is another");
    assert!(required(&at("localhost"), None).await.is_err(), "the authority is not a public one");
    let plain = MariaDb::start(&["--skip-ssl".to_owned()]).await;
    let refused = required(&format!("mysql://root@localhost:{}/x", plain.port()), None).await;
    assert_eq!(refusal(refused), ErrorCode::DatabaseRefused, "it does not offer TLS");
}
