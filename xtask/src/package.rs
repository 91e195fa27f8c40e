//! The Debian package, and the checks of everything in `packaging/`.
//!
//! The package is made by `dpkg-deb` from one table of files. The test installs it into an empty root, as an installer of
//! systems would, starts the server that lies there after its configuration, moved below that root, and removes it again. The
//! Dockerfile, the compose file and the systemd unit are linted; no container is built here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::compat::node_modules_in;
use crate::paths;
use crate::process::{self, install};
use crate::report::{Outcome, Report};
use crate::server::{Build, Server};

const TIMEOUT: Duration = Duration::from_mins(15);
const TOOLS: [&str; 5] = ["dpkg", "dpkg-deb", "systemd-analyze", "node", "npm"];

/// The path of each file in the package, and its mode.
const FILES: [(&str, &str, u32); 8] = [
    ("packaging/bolide.toml", "etc/bolide/bolide.toml", 0o644),
    ("packaging/bolide.service", "usr/lib/systemd/system/bolide.service", 0o644),
    ("packaging/debian/sysusers.conf", "usr/lib/sysusers.d/bolide.conf", 0o644),
    ("packaging/debian/copyright", "usr/share/doc/bolide/copyright", 0o644),
    ("LICENSE-MIT", "usr/share/doc/bolide/LICENSE-MIT", 0o644),
    ("LICENSE-APACHE", "usr/share/doc/bolide/LICENSE-APACHE", 0o644),
    ("README.md", "usr/share/doc/bolide/README.md", 0o644),
    ("COMPAT.md", "usr/share/doc/bolide/COMPAT.md", 0o644),
];

/// The texts that the binary generates: its arguments and the files.
const WRITTEN_BY_THE_BINARY: [(&[&str], &str); 4] = [
    (&["man"], "usr/share/man/man1/bolide.1"),
    (&["completions", "bash"], "usr/share/bash-completion/completions/bolide"),
    (&["completions", "zsh"], "usr/share/zsh/vendor-completions/_bolide"),
    (&["completions", "fish"], "usr/share/fish/vendor_completions.d/bolide.fish"),
];

/// The control files of the package.
const ABOUT: [(&str, u32); 4] =
    [("conffiles", 0o644), ("postinst", 0o755), ("prerm", 0o755), ("postrm", 0o755)];

/// The certificate of a server with the installed configuration.
const ROOT_CERTIFICATE: &str = "var/lib/bolide/tls/root.pem";

/// Builds the package and reports its path.
pub(crate) fn build_one(report: &mut Report, binary: &Path) {
    report.part("debian package", || Ok(Outcome::Passed(paths::shown(&build(binary)?))));
}

/// Builds, installs, starts, removes; and lints what is only written.
pub(crate) fn check(report: &mut Report, binary: &Path, built: Build) {
    report.part("packages", || {
        if let Some(tool) = TOOLS.iter().find(|tool| !process::available(tool)) {
            return Ok(Outcome::Missing(format!("{tool} is not installed")));
        }
        let package = build(binary)?;
        let Some(mut dpkg) = Installer::new()? else {
            return Ok(Outcome::Missing("only root, or fakeroot, can install a package".to_owned()));
        };
        dpkg.install_and_remove(&package)?;
        container_commands(binary)?;
        lint()?;
        cargo_install(built)?;
        Ok(Outcome::Passed(paths::shown(&package)))
    });
}

fn folder() -> PathBuf {
    paths::target().join("package")
}

fn build(binary: &Path) -> Result<PathBuf> {
    let tree = folder().join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    put(&tree, "usr/bin/bolide", 0o755, &fs::read(binary)?)?;
    for (source, place, mode) in FILES {
        let bytes = fs::read(paths::root().join(source)).with_context(|| source.to_owned())?;
        put(&tree, place, mode, &bytes)?;
    }
    for (arguments, place) in WRITTEN_BY_THE_BINARY {
        let finished = process::run_quietly(Command::new(binary).args(arguments), TIMEOUT)?;
        ensure!(finished.success, "bolide {} fails:\n{}", arguments.join(" "), finished.output);
        put(&tree, place, 0o644, finished.output.as_bytes())?;
    }
    for (name, mode) in ABOUT {
        let bytes =
            fs::read(paths::root().join("packaging/debian").join(name)).with_context(|| name.to_owned())?;
        put(&tree, &format!("DEBIAN/{name}"), mode, &bytes)?;
    }
    let architecture = architecture()?;
    put(&tree, "DEBIAN/control", 0o644, control(binary, &tree, &architecture)?.as_bytes())?;
    let package = folder().join(format!("bolide_{}_{architecture}.deb", env!("CARGO_PKG_VERSION")));
    let mut pack = Command::new("dpkg-deb");
    install(pack.args(["--root-owner-group", "--build"]).arg(&tree).arg(&package))?;
    Ok(package)
}

fn put(tree: &Path, place: &str, mode: u32, bytes: &[u8]) -> Result<()> {
    let path = tree.join(place);
    fs::create_dir_all(path.parent().expect("a file lies in a folder"))?;
    fs::write(&path, bytes)?;
    Ok(fs::set_permissions(&path, fs::Permissions::from_mode(mode))?)
}

/// Returns the control information of the package.
fn control(binary: &Path, tree: &Path, architecture: &str) -> Result<String> {
    let text = fs::read_to_string(paths::root().join("packaging/debian/control")).context("control")?;
    Ok(text
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@ARCHITECTURE@", architecture)
        .replace("@LIBC@", &newest_libc(&fs::read(binary)?).context("the binary names no version of libc")?)
        .replace("@KIBIBYTES@", &(bytes_below(tree)? / 1024).to_string()))
}

fn architecture() -> Result<String> {
    let asked = process::run_quietly(Command::new("dpkg").arg("--print-architecture"), TIMEOUT)?;
    ensure!(asked.success, "dpkg does not tell the architecture:\n{}", asked.output);
    Ok(asked.output.trim().to_owned())
}

/// Returns the highest `GLIBC_x.y` that a binary asks for.
fn newest_libc(binary: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"GLIBC_";
    let versions = binary.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let newest = versions.filter_map(|(start, _)| {
        let text =
            binary[start + MARK.len()..].split(|byte| !byte.is_ascii_digit() && *byte != b'.').next()?;
        let mut numbers = std::str::from_utf8(text).ok()?.split('.').map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    newest.max().map(|(major, minor)| format!("{major}.{minor}"))
}

fn bytes_below(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        sum +=
            if entry.file_type()?.is_dir() { bytes_below(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(sum)
}

/// `dpkg` over an empty root, so that this machine stays as it is.
struct Installer {
    root: PathBuf,
    is_root: bool,
}

impl Installer {
    /// Returns none if this user may not install packages and `fakeroot` is missing.
    fn new() -> Result<Option<Installer>> {
        let asked = process::run_quietly(Command::new("id").arg("-u"), TIMEOUT)?;
        let is_root = asked.output.trim() == "0";
        if !is_root && !process::available("fakeroot") {
            return Ok(None);
        }
        let root = folder().join("root");
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        for place in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc"] {
            fs::create_dir_all(root.join(place))?;
        }
        fs::write(root.join("var/lib/dpkg/status"), "")?;
        Ok(Some(Installer { root, is_root }))
    }

    fn dpkg(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(if self.is_root { "dpkg" } else { "fakeroot" });
        if !self.is_root {
            command.arg("dpkg");
        }
        // The root is empty, so none of the package's dependencies is installed there.
        command.arg(format!("--root={}", self.root.display()));
        install(command.args(["--force-script-chrootless", "--force-depends"]).args(arguments))
    }

    fn has(&self, place: &str) -> bool {
        self.root.join(place).exists()
    }

    fn install_and_remove(&mut self, package: &Path) -> Result<()> {
        self.dpkg(&["--install", &package.display().to_string()])?;
        self.verify_unit()?;
        self.start()?;
        self.dpkg(&["--remove", "bolide"])?;
        ensure!(!self.has("usr/bin/bolide"), "the binary is still there after removal");
        ensure!(self.has("etc/bolide/key"), "a removal that is no purge took the key");
        self.dpkg(&["--purge", "bolide"])?;
        ensure!(!self.has("etc/bolide"), "a purge left something in /etc/bolide");
        ensure!(self.has(ROOT_CERTIFICATE), "a purge of the package took the data");
        Ok(())
    }

    /// Checks that the key is new and not world-readable, and that the installed server follows its configuration.
    fn start(&self) -> Result<()> {
        let key = self.root.join("etc/bolide/key");
        let mode = fs::metadata(&key).context("the package made no key")?.permissions().mode() & 0o777;
        ensure!(mode == 0o640, "the key has mode {mode:o}");
        let configuration = folder().join("bolide.toml");
        let installed = fs::read_to_string(self.root.join("etc/bolide/bolide.toml"))?;
        fs::write(&configuration, moved(&installed, &self.root))?;
        let binary = self.root.join("usr/bin/bolide");
        let server = Server::start_configured(&binary, &configuration)?;
        ensure!(
            !server.announcement().contains("AccountKey=")
                && server.announcement().contains("mongodb://bolide@"),
            "the public key is in force, or there is no MongoDB API:\n{}",
            server.announcement()
        );
        let url = format!("http://{}/", server.address());
        let mut status = Command::new(&binary);
        install(status.args(["status", "--url", &url, "--key-file"]).arg(&key))?;
        server.stop()?;
        ensure!(self.has(ROOT_CERTIFICATE), "the data are not where the configuration says");
        Ok(())
    }

    fn verify_unit(&self) -> Result<()> {
        let unit = fs::read_to_string(self.root.join("usr/lib/systemd/system/bolide.service"))?;
        // The verifier requires that the program of the unit exists; it is below our root.
        let program = self.root.join("usr/bin/bolide");
        let copy = folder().join("bolide.service");
        fs::write(&copy, unit.replace("/usr/bin/bolide", &program.display().to_string()))?;
        let mut command = Command::new("systemd-analyze");
        let finished = process::run_quietly(command.args(["verify", "--man=no"]).arg(&copy), TIMEOUT)?;
        let complaints: Vec<&str> = finished.output.lines().filter(|line| line.contains("bolide")).collect();
        ensure!(finished.success && complaints.is_empty(), "the systemd unit:\n{}", finished.output);
        Ok(())
    }
}

/// Returns a configuration below another root and on free ports, otherwise unchanged.
fn moved(configuration: &str, root: &Path) -> String {
    configuration
        .replace(" = \"/", &format!(" = \"{}/", root.display()))
        .replace(":8081\"", ":0\"")
        .replace(":10255\"", ":0\"")
}

/// Checks that the binary understands the commands of the container's health check and start.
fn container_commands(binary: &Path) -> Result<()> {
    let dockerfile = fs::read_to_string(paths::root().join("packaging/Dockerfile"))?;
    let commands = exec_forms(&dockerfile);
    ensure!(commands.len() >= 2, "the Dockerfile has lost its health check or its start");
    for words in commands {
        let arguments = words.iter().filter(|word| *word != "bolide");
        let asked = process::run_quietly(Command::new(binary).args(arguments).arg("--help"), TIMEOUT)?;
        ensure!(asked.success, "the Dockerfile runs {words:?}:\n{}", asked.output);
    }
    Ok(())
}

/// Returns the words of every `CMD ["...", "..."]`.
fn exec_forms(dockerfile: &str) -> Vec<Vec<String>> {
    let forms = dockerfile.lines().filter_map(|line| line.split_once("CMD [")?.1.strip_suffix(']'));
    let words = |form: &str| form.split(',').map(|word| word.trim().trim_matches('"').to_owned()).collect();
    forms.map(words).collect()
}

/// Lints the Dockerfile and the compose file. A warning is a failure too.
fn lint() -> Result<()> {
    let linters = paths::root().join("packaging/lint");
    node_modules_in(&linters)?;
    for (linter, arguments) in [
        ("dockerfile-utils", ["lint", "packaging/Dockerfile"].as_slice()),
        ("dclint", ["--max-warnings", "0", "packaging/compose.yaml"].as_slice()),
    ] {
        let mut command = Command::new("node");
        command
            .arg(linters.join("node_modules/.bin").join(linter))
            .args(arguments)
            .current_dir(paths::root());
        let finished = process::run_quietly(&mut command, TIMEOUT)?;
        let quiet = finished.output.trim().is_empty();
        if !finished.success || (linter == "dockerfile-utils" && !quiet) {
            bail!("{linter}:\n{}", finished.output);
        }
    }
    Ok(())
}

/// Runs `cargo install --path` with the existing build output.
fn cargo_install(built: Build) -> Result<()> {
    let root = folder().join("cargo-install");
    let mut command = Command::new("cargo");
    command
        .args(["install", "--locked", "--quiet", "--force", "--profile", built.profile()])
        .args(["--path", "crates/server", "--root"])
        .arg(&root);
    command.arg("--target-dir").arg(paths::target()).current_dir(paths::root());
    ensure!(process::run(&mut command, TIMEOUT)?.success, "cargo install fails");
    install(Command::new(root.join("bin/bolide")).arg("--version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_libc_is_found_by_number() {
        assert_eq!(
            newest_libc(b"\0GLIBC_2.9\0x\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE"),
            Some("2.34".to_owned())
        );
        assert_eq!(newest_libc(b"nothing"), None);
    }

    #[test]
    fn paths_and_ports_of_a_configuration_are_moved_and_nothing_else() {
        let text = "# man bolide\ndata = \"/var/lib/bolide\"\nlisten = \"127.0.0.1:8081\"\nmemory = false\n";
        assert_eq!(
            moved(text, Path::new("/there")),
            "# man bolide\ndata = \"/there/var/lib/bolide\"\nlisten = \"127.0.0.1:0\"\nmemory = false\n"
        );
    }

    #[test]
    fn commands_are_found_in_a_dockerfile() {
        let found =
            exec_forms("HEALTHCHECK --timeout=3s CMD [\"a\", \"--b\"]\nENTRYPOINT [\"a\"]\nCMD [\"c\"]\n");
        assert_eq!(found, [vec!["a".to_owned(), "--b".to_owned()], vec!["c".to_owned()]]);
    }

    #[test]
    fn the_image_has_one_name_wherever_it_is_built_or_used() {
        let tag = concat!("bolide:", env!("CARGO_PKG_VERSION"));
        for page in
            ["packaging/Dockerfile", "packaging/compose.yaml", "docs/packages.md", "docs/guides/testing.md"]
        {
            let text = fs::read_to_string(paths::root().join(page)).unwrap();
            assert!(text.contains(tag), "{page} does not say {tag}");
        }
    }

    #[test]
    fn every_packaged_file_exists() {
        for (source, _, _) in FILES {
            assert!(paths::root().join(source).is_file(), "{source}");
        }
        for (name, _) in ABOUT {
            assert!(paths::root().join("packaging/debian").join(name).is_file(), "{name}");
        }
    }
}
