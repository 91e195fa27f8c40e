//! Archives (T32) and deletion records through the real process: a full volume, kill -9, and `bolide verify-log`.

use std::path::Path;
use std::time::Duration;

use crate::process::{Server, run};
use crate::tools::tool;

const KEY: [(&str, &str); 1] = [("x-ms-documentdb-partitionkey", "[\"a\"]")];

/// Starts a server with its data, its archive and its log below a directory.
fn start(directory: &Path) -> Server {
    let archive = directory.join("archive");
    Server::logging(
        &directory.join("data"),
        &directory.join("log"),
        &["--test-clock", "--stopped-clock", "--archive-root", archive.to_str().unwrap()],
    )
}

/// Counts these words in the logs of all servers started there.
fn logged(directory: &Path, words: &str) -> usize {
    std::fs::read_to_string(directory.join("log")).unwrap().matches(words).count()
}

fn set_lifecycle(server: &Server, lifecycle: &str) {
    let (status, text) = server.admin("PATCH", "/_bolide/ttl/db/c", lifecycle);
    assert_eq!(status, 200, "{text}");
}

fn advance(server: &Server, seconds: u64) {
    let (status, text) = server.admin("POST", "/_bolide/clock", &format!("{{\"advanceSeconds\":{seconds}}}"));
    assert_eq!(status, 200, "{text}");
}

/// Waits until the purge reports this.
fn wait_for(server: &Server, what: &str) {
    wait_until(what, || server.admin("GET", "/_bolide/purge", "").1.contains(what));
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1_500 {
        if is_so() {
            return;
        }
        pause();
    }
    panic!("never {what}");
}

fn is_purged(server: &Server) -> bool {
    server.admin("GET", "/_bolide/purge", "").1.contains("\"backlog\":{\"items\":0,")
}

/// Returns the bytes of the files in a directory; 0 if it does not exist.
fn files_bytes(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Returns all lines of an archive's directory, in the order of its files.
fn lines(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let text: String = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(str::to_owned).collect()
}

/// Returns the day of the test clock, and the next, in the form of file names.
fn days(server: &Server) -> [String; 2] {
    let (_, text) = server.admin("GET", "/_bolide/clock", "");
    let now: String =
        text.split("\"now\":").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    let now: u64 = now.parse().unwrap();
    [now, now + 86_400].map(|seconds| {
        let arguments = ["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%d"];
        let date = std::process::Command::new("date").args(arguments).output().unwrap();
        String::from_utf8(date.stdout).unwrap().trim().to_owned()
    })
}

/// A full volume: every write to it fails as on a full disk.
#[test]
fn t32_a_full_volume_stops_that_purge_alone_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = start(directory.path());
    server.create_container(",\"defaultTtl\":1000");
    set_lifecycle(&server, r#"{"archive":{"directory":"cold"},"deletionRecord":true}"#);
    for number in 0..100 {
        assert_eq!(server.create(&format!("item-{number}")), 201);
    }
    let cold = directory.path().join("archive/cold");
    std::fs::create_dir_all(&cold).unwrap();
    // The day may change while the test runs.
    for day in days(&server) {
        std::os::unix::fs::symlink("/dev/full", cold.join(format!("{day}-0001.jsonl"))).unwrap();
    }
    advance(&server, 1000);
    wait_for(&server, "\"waitingForArchive\":1");
    let (_, shown) = server.admin("GET", "/_bolide/ttl/db/c", "");
    assert!(shown.contains("No space left on device"), "{shown}");
    assert!(shown.contains("\"backlog\":{\"items\":100,"), "{shown}");
    assert_eq!(server.read("item-7"), 404, "it has expired nevertheless");
    assert_eq!(server.create("item-7"), 201);
    let (_, metrics) = server.admin("GET", "/metrics", "");
    assert!(metrics.contains("\nbolide_archive_waiting_containers 1\n"), "{metrics}");
    let (code, status) = tool(&server, &["status"]);
    let problem = "PROBLEM     the purge of a container or collection waits for an archive";
    assert!(code == Some(1) && status.contains(problem), "{status}");
    let waits = "the purge of 'db/c' waits for its archive";
    wait_until("a line in the log", || logged(directory.path(), waits) > 0);
    server.kill();
    assert_eq!(logged(directory.path(), waits), 1, "once, however often it is tried");

    server = start(directory.path());
    wait_for(&server, "\"waitingForArchive\":1");
    for entry in std::fs::read_dir(&cold).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    advance(&server, 60);
    wait_for(&server, "\"backlog\":{\"items\":0,");
    let mut archived = lines(&cold);
    assert!(archived.iter().all(|line| line.contains(r#""database":"db","container":"c","#)));
    archived.sort();
    archived.dedup();
    assert_eq!(archived.len(), 100, "each of them, and not the one that lives");
    assert_eq!(server.read("item-7"), 200);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(logged(directory.path(), waits), 2, "and once after the start");
    assert_eq!(logged(directory.path(), "the archive of 'db/c' is writable again"), 1);
}

/// Killed again and again while it archives and purges: lines may be duplicated, none is missing, the record has each once.
#[test]
fn t32_kill_9_loses_no_line_and_no_entry() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path());
    server.create_container(",\"defaultTtl\":1000");
    set_lifecycle(&server, r#"{"archive":{"directory":"cold"},"deletionRecord":true}"#);
    let mut number = 0;
    for _ in 0..30 {
        let operations: Vec<String> = (0..100)
            .map(|at| {
                let id = number + at;
                format!(r#"{{"operationType":"Create","resourceBody":{{"id":"{id}","pk":"a"}}}}"#)
            })
            .collect();
        let headers =
            [KEY[0], ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
        let (status, text) =
            server.request("POST", "/dbs/db/colls/c/docs", &headers, &format!("[{}]", operations.join(",")));
        assert_eq!(status, 200, "{text}");
        number += 100;
    }
    advance(&server, 1000);
    let cold = directory.path().join("archive/cold");
    let (mut server, mut kills, mut seen) = (server, 0, 0);
    while kills < 5 {
        // As soon as there are more lines: the items of some are not removed yet.
        wait_until("more lines", || files_bytes(&cold) > seen || is_purged(&server));
        if is_purged(&server) {
            break;
        }
        server.kill();
        kills += 1;
        seen = files_bytes(&cold);
        server = start(directory.path());
    }
    assert!(kills > 0, "all was purged before the first kill");
    wait_for(&server, "\"backlog\":{\"items\":0,");
    let (_, exported) = server.admin("GET", "/_bolide/ttl/db/c/log", "");
    assert_eq!(exported.lines().filter(|line| line.contains("\"event\":\"purged\"")).count(), number);
    assert_eq!(server.terminate(), Some(0));
    let mut archived = lines(&cold);
    archived.sort();
    archived.dedup();
    assert_eq!(archived.len(), number);

    let file = directory.path().join("record.jsonl");
    std::fs::write(&file, &exported).unwrap();
    let data = directory.path().join("data");
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
    let verified = run(&["verify-log", file, "--data", data, "--test-clock"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let all = run(&["verify-log", "--data", data, "--test-clock"]);
    assert!(all.status.success());
    assert!(String::from_utf8(all.stdout).unwrap().contains("db/c): 3001 entries, all as they were written"));
}

#[test]
fn verify_log_tells_what_is_wrong_and_where() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path());
    server.create_container(",\"defaultTtl\":1000");
    set_lifecycle(&server, r#"{"deletionRecord":true}"#);
    for id in ["x", "y", "z"] {
        assert_eq!(server.create(id), 201);
    }
    advance(&server, 1000);
    wait_for(&server, "\"purgedItems\":3");
    let (_, exported) = server.admin("GET", "/_bolide/ttl/db/c/log", "");
    let (_, shown) = server.admin("GET", "/_bolide/ttl/db/c", "");
    let head = shown.split("\"head\":\"").nth(1).unwrap()[..64].to_owned();
    drop(server);
    let path = directory.path().join("record.jsonl");
    let file = path.to_str().unwrap();
    let verify = |text: &str, more: &[&str]| {
        std::fs::write(&path, text).unwrap();
        let output = run(&[&["verify-log", file], more].concat());
        let told = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(told).unwrap())
    };
    let (code, told) = verify(&exported, &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("4 entries, all as they were written") && told.contains(&head), "{told}");
    assert!(told.contains("--head"), "without a head the output says what that means: {told}");
    let (code, told) = verify(&exported, &["--head", &head, "--count", "4"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(!told.contains("--head"), "{told}");

    let earlier = exported.lines().nth(1).unwrap().rsplit_once("\"hash\":\"").unwrap().1[..64].to_owned();
    let (code, told) = verify(&exported, &["--head", &earlier, "--count", "2"]);
    assert_eq!(code, Some(0), "a head that was noted earlier: {told}");
    assert!(told.contains("2 of them were written after"), "{told}");
    let (code, told) = verify(&exported, &["--head", &earlier, "--count", "3"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("line 3 has the hash") && told.contains("was noted"), "{told}");
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let (code, told) =
        verify(&exported, &["--head", &earlier, "--count", "3", "--data", data, "--test-clock"]);
    assert_eq!(code, Some(1), "the data directory does not make up for it: {told}");
    let output = run(&["verify-log", "--data", data, "--test-clock", "--head", &head]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--head and --count apply to one record"));

    let cut: String = exported.split_inclusive('\n').take(3).collect();
    let without_second: String =
        exported.split_inclusive('\n').enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| line).collect();
    for (text, words) in [
        (exported.replacen("\"y\"", "\"w\"", 1), "line 3 was changed"),
        (without_second, "line 2 is entry 3, not entry 2"),
        (cut, "there are 3 entries, and there were 4"),
        (String::new(), "there are 0 entries"),
        ("{}\n".to_owned(), "line 1 is not a line of a deletion record"),
        (exported.replace('\n', "\r\n"), "line 1 is not a line of a deletion record"),
    ] {
        let (code, told) = verify(&text, &["--head", &head, "--count", "4"]);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(run(&["verify-log"]).status.code(), Some(2));
    assert_eq!(run(&["verify-log", "/nowhere/at/all"]).status.code(), Some(2));
    let nowhere = directory.path().join("nowhere");
    assert_eq!(run(&["verify-log", "--data", nowhere.to_str().unwrap()]).status.code(), Some(2));
    assert!(!nowhere.exists());
}

/// A container may name an archive only where the server has one.
#[test]
fn t32_without_a_root_no_archive_can_be_set_and_an_earlier_setting_waits() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path());
    server.create_container(",\"defaultTtl\":1000");
    set_lifecycle(&server, r#"{"archive":{"directory":"cold"}}"#);
    assert_eq!(server.create("x"), 201);
    assert_eq!(server.terminate(), Some(0));
    let server = Server::in_directory(&directory.path().join("data"), &["--test-clock", "--stopped-clock"]);
    advance(&server, 1000);
    wait_for(&server, "\"waitingForArchive\":1");
    let (_, shown) = server.admin("GET", "/_bolide/ttl/db/c", "");
    assert!(shown.contains("started without"), "{shown}");
    let (status, refused) = server.admin("PATCH", "/_bolide/ttl/db/c", r#"{"archive":{"directory":"warm"}}"#);
    assert_eq!(status, 400);
    assert!(refused.contains("archive-root"), "{refused}");
    let inside = directory.path().join("data/archive");
    let output = run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        directory.path().join("other").to_str().unwrap(),
        "--archive-root",
        inside.to_str().unwrap().replace("data/", "other/").as_str(),
    ]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("lies in the data directory"));
}

/// Pauses between two polls, which would otherwise delay the purge.
#[expect(clippy::disallowed_methods, reason = "another process cannot be told to hurry")]
fn pause() {
    std::thread::sleep(Duration::from_millis(40));
}

fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
}

#[test]
fn archives_backups_and_exports_are_their_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path());
    server.create_container(",\"defaultTtl\":1000");
    set_lifecycle(&server, r#"{"archive":{"directory":"cold"}}"#);
    assert_eq!(server.create("item"), 201);
    let [backup, exports, file] =
        ["all.backup", "exports/of/today", "c.jsonl"].map(|it| directory.path().join(it));
    let [backup_text, exports_text, file_text] =
        [&backup, &exports, &file].map(|path| path.to_str().unwrap());
    // The file that is overwritten may have been readable by every user.
    std::fs::write(&file, "of before").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    for arguments in [
        &["backup", "--to", backup_text][..],
        &["export", "--dir", exports_text],
        &["export", "db/c", "--file", file_text, "--overwrite"],
    ] {
        let (code, text) = tool(&server, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
    }
    advance(&server, 1000);
    wait_for(&server, "\"backlog\":{\"items\":0,");
    let archive = directory.path().join("archive");
    let archived = std::fs::read_dir(archive.join("cold")).unwrap().map(|entry| entry.unwrap().path());
    let exported = std::fs::read_dir(exports.join("db")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = archived.chain(exported).chain([backup, file]).collect();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    for made in
        [&archive, &archive.join("cold"), &directory.path().join("exports"), &exports, &exports.join("db")]
    {
        assert_eq!(mode(made), 0o700, "{}", made.display());
    }
}

#[test]
fn a_data_directory_that_every_user_can_read_is_warned_about() {
    let directory = tempfile::tempdir().unwrap();
    let (data, log) = (directory.path().join("data"), directory.path().join("log"));
    std::fs::create_dir(&data).unwrap();
    let warning = format!("every user of this machine can read the data directory '{}'", data.display());
    for (mode, warnings) in [(0o755, 1), (0o750, 1), (0o700, 1), (0o701, 2)] {
        std::fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let server = Server::logging(&data, &log, &[]);
        assert_eq!(server.terminate(), Some(0));
        assert_eq!(logged(directory.path(), &warning), warnings, "{mode:o}");
    }
}
