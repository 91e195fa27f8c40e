//! Settings from the command line, the environment and a file.

use std::io::Write;

use crate::process::{Server, command, run};

#[test]
fn help_and_version_succeed() {
    for argument in ["--help", "--version"] {
        let output = run(&[argument]);
        assert!(output.status.success(), "{argument}");
        assert!(String::from_utf8_lossy(&output.stdout).to_lowercase().contains("bolide"), "{argument}");
    }
}

#[test]
fn wrong_settings_are_refused_by_name() {
    for (arguments, part) in [
        (&["--listn", "x"][..], "--listen"),
        (&["fly"], "fly"),
        (&["--listen", "nonsense"], "'listen'"),
        (&["--memory", "--data", "x"], "exclude each other"),
        (&["--durability", "maybe"], "sync or buffered"),
        (&["--max-clock-jump", "1h"], "'max-clock-jump'"),
        (&["--max-start-gap", "0"], "'max-start-gap'"),
        (&["--listen", "0.0.0.0:0", "--memory"], "needs a key"),
        (&["--key-file", "/no/such/file"], "/no/such/file"),
        (&["--config", "/no/such/file"], "/no/such/file"),
        (&["--mongo-listen", "0.0.0.0:0"], "needs a key"),
        (&["--mongo-profile", "cluster"], "'mongo-profile'"),
        (&["--storage", "postgres://host"], "not supported yet"),
        (&["--burst-capacity"], "needs 'enforce-throughput'"),
        (&["--log", "engine=loud"], "'log'"),
        (&["--max-body-bytes", "99999999"], "'max-body-bytes' must be a number from 65536 to 16777216"),
        (&["completions", "tcsh"], "tcsh"),
        (
            &["--max-queries", "65", "--memory"],
            "'max-queries' may be half of 'blocking-threads', which is 128",
        ),
        (&["export", "--data", "x", "--dir", "y"], "'bolide export' does not use --data"),
        (&["--mongo-listen", "off", "status"], "'bolide status' does not use --mongo-listen"),
    ] {
        let output = run(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn a_file_is_read_and_its_mistakes_are_named() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "memory = true\nlisten = \"127.0.0.1:0\"\ntest-clock = true").unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let server = Server::start_command(command().args(["--config", &path]));
    assert!(server.admin("GET", "/_bolide/clock", "").1.contains("\"testClock\":true"));
    writeln!(file, "lissen = 1").unwrap();
    let output = run(&["--config", &path]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("did you mean 'listen'") && message.contains(&path), "{message}");
}

#[test]
fn the_command_line_beats_the_environment() {
    let server = Server::start_command(
        command()
            .args(["--listen", "127.0.0.1:0"])
            .env("BOLIDE_LISTEN", "nonsense")
            .env("BOLIDE_MEMORY", "true"),
    );
    assert_eq!(server.get("/ready").0, 200);
    let output = command().args(["--memory"]).env("BOLIDE_LISTEN", "nonsense").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_key_of_ones_own_comes_from_a_file_and_is_not_printed() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "c29tZSBrZXk=").unwrap();
    let path = file.path().to_str().unwrap();
    let mut server = Server::start(&["--memory", "--key-file", path]);
    assert_eq!(server.connection_string, format!("AccountEndpoint=http://{}/;", server.address));
    let next = server.next_line();
    assert!(next.contains(path) && !next.contains("c29tZSBrZXk="), "{next}");
    assert_eq!(server.get("/dbs").0, 401, "the emulator's key is not the key");
}

#[test]
fn config_prints_each_value_with_its_origin_and_no_secret() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "durability = \"buffered\"\npartitions = 3\nmongo-listen = \"off\"").unwrap();
    let path = file.path().to_str().unwrap();
    let output = command()
        .args(["config", "--memory", "--config", path])
        .envs([("BOLIDE_PARTITIONS", "4"), ("BOLIDE_KEY", "c29tZSBrZXk="), ("BOLIDE_LISTN", "x")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for line in [
        format!("# config = \"{path}\"  # command line"),
        "data = \"./bolide-data\"  # default".to_owned(),
        "memory = true  # command line".to_owned(),
        format!("durability = \"buffered\"  # file {path}"),
        "partitions = 4  # environment BOLIDE_PARTITIONS".to_owned(),
        "key = \"<hidden>\"  # environment BOLIDE_KEY".to_owned(),
        "# key-file is not set".to_owned(),
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is missing:\n{text}");
    }
    assert!(!text.contains("c29tZSBrZXk="), "{text}");
    let remarks = String::from_utf8(output.stderr).unwrap();
    assert!(remarks.contains("BOLIDE_LISTN") && remarks.contains("did you mean BOLIDE_LISTEN?"), "{remarks}");
}

#[test]
fn config_tells_what_is_wrong_after_it_has_shown_it() {
    let output = run(&["config", "--listen", "0.0.0.0:1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("listen = \"0.0.0.0:1\"  # command line\n"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs a key"));
}

#[test]
fn the_environment_of_an_emulator_is_understood() {
    let names = [
        ("PORT", "0"),
        ("LOG_LEVEL", "warn"),
        ("CERT_PATH", "/run/certificate.pfx"),
        ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "false"),
    ];
    let output = command().arg("config").envs(names).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("listen = \"127.0.0.1:8081\"  # default\n"), "{text}");
    assert!(
        text.contains("memory = true  # environment AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE\n"),
        "{text}"
    );
    let output = command().args(["config", "--emulator-env"]).envs(names).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("listen = \"127.0.0.1:0\"  # environment PORT\n"), "{text}");
    let remarks = String::from_utf8(output.stderr).unwrap();
    assert!(remarks.contains("CERT_PATH has no meaning here"), "{remarks}");
    let server = Server::start_command(command().arg("--emulator-env").envs(names));
    assert_eq!(server.get("/ready").0, 200);
}

#[test]
fn limits_are_what_the_operator_says() {
    let server = Server::start(&["--memory", "--max-body-bytes", "65536"]);
    server.create_container("");
    let body = |length: usize| format!(r#"{{"id":"{length}","pk":"a","text":"{}"}}"#, "x".repeat(length));
    let key = [("x-ms-documentdb-partitionkey", "[\"a\"]")];
    let create = |length| server.request("POST", "/dbs/db/colls/c/docs", &key, &body(length)).0;
    assert_eq!((create(60_000), create(70_000)), (201, 413));
}

#[test]
fn shells_and_the_manual_know_every_command_and_setting() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shell}");
        for part in ["verify-log", "mongo-listen", "buffered"] {
            assert!(script.contains(part), "{shell}: {part}");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    assert!(run(&["man", directory.path().to_str().unwrap()]).status.success());
    let page = std::fs::read_to_string(directory.path().join("bolide.1")).unwrap();
    assert!(page.as_bytes() == run(&["man"]).stdout);
    for part in ["verify\\-log", "mongo\\-listen", "127.0.0.1:10255"] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    assert!(directory.path().join("bolide-serve.1").exists());
}

#[test]
fn a_query_that_needs_more_memory_than_it_may_have_is_told_the_settings_name() {
    let partition = ("x-ms-documentdb-partitionkey", "[\"a\"]");
    let query = r#"{"query":"SELECT DISTINCT VALUE c.b FROM c ORDER BY c.b","parameters":[]}"#;
    let headers =
        [("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json"), partition];
    for (memory, expected) in [("1048576", 400), ("67108864", 200)] {
        let server = Server::start(&["--memory", "--query-memory", memory]);
        server.create_container("");
        for letter in ["x", "y", "z"] {
            let body = format!(r#"{{"id":"{letter}","pk":"a","b":"{}"}}"#, letter.repeat(600_000));
            assert_eq!(server.request("POST", "/dbs/db/colls/c/docs", &[partition], &body).0, 201);
        }
        let (status, text) = server.request("POST", "/dbs/db/colls/c/docs", &headers, query);
        assert_eq!(status, expected, "{text:.500}");
        assert_eq!(text.contains("the setting 'query-memory'"), status == 400, "{text:.500}");
    }
}
