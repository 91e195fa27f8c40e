//! The file operations of a process, as recorded by strace.
//!
//! All strings are in hexadecimal (`-xx`), so that a line has no quote, bracket or comma but those of strace itself.
//! An unknown call is an error: a state that was built without it would prove nothing.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Calls that change files, or the position of the next write in a file.
const CALLS: &str = "openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync,syncfs,sync_file_range,\
    rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,ftruncate,truncate,fallocate,link,linkat,symlink,\
    symlinkat,lseek,copy_file_range,sendfile,splice,dup,dup2,dup3,close";
/// How long strace may take to record the end.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A file, independent of its names.
pub type FileId = usize;

/// Something that happened to the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    MakeDirectory(PathBuf),
    Create(PathBuf, FileId),
    Resize(FileId, u64),
    Write(FileId, u64, Vec<u8>),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncFile(FileId),
    SyncDirectory(PathBuf),
}

/// When it was done, in seconds since 1970, and what.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: f64,
    pub act: Act,
}

/// Returns the command that records a process into `file`.
pub fn wrapper(file: &Path) -> Vec<OsString> {
    // The tracer is a grandchild (-D): the server stays our own child, which we can kill.
    let mut words: Vec<OsString> = ["strace", "-D", "-f", "-y", "-ttt", "-T", "-xx", "-s", "67108864", "-e"]
        .map(OsString::from)
        .to_vec();
    words.push(format!("trace={}", CALLS.replace(char::is_whitespace, "")).into());
    words.push("-o".into());
    words.push(file.into());
    words
}

/// Returns `true` if strace is there.
pub fn is_possible() -> bool {
    std::process::Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success())
}

/// Waits until strace has written down the end of a process.
pub fn wait_for_end(file: &Path, process: u32) -> Result<String> {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let prefix = format!("{process} ");
        let end = text.trim_end().lines().next_back().unwrap_or_default();
        if end.starts_with(&prefix) && end.ends_with("+++") {
            return Ok(text);
        }
        ensure!(begun.elapsed() < MAX_WAIT, "strace did not tell the end of process {process}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The state of the files so far, over the recordings of several processes in turn.
pub struct Recorder {
    root: PathBuf,
    pub events: Vec<Event>,
    /// Which file has which name.
    names: HashMap<PathBuf, FileId>,
    sizes: Vec<u64>,
    /// The content as the process would read it; beyond its end the file has zeros.
    contents: Vec<Vec<u8>>,
}

/// An open file of the process.
struct Handle {
    file: FileId,
    position: u64,
    appends: bool,
}

impl Recorder {
    /// Follows what happens to the directory `root` and below it.
    pub fn new(root: &Path) -> Recorder {
        Recorder {
            root: root.to_owned(),
            events: Vec::new(),
            names: HashMap::new(),
            sizes: Vec::new(),
            contents: Vec::new(),
        }
    }

    /// Adds the recording of a process.
    pub fn add(&mut self, text: &str) -> Result<()> {
        let mut handles: HashMap<u32, Handle> = HashMap::new();
        let mut unfinished: HashMap<&str, String> = HashMap::new();
        for line in text.lines() {
            let (thread, rest) = line.split_once(' ').context("a line without a thread")?;
            let (time, rest) = rest.trim_start().split_once(' ').context("a line without a time")?;
            if rest.starts_with("+++") || rest.starts_with("---") {
                continue;
            }
            if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
                unfinished.insert(thread, begun.to_owned());
                continue;
            }
            let whole = match rest.strip_prefix("<... ") {
                Some(resumed) => {
                    let (_, end) = resumed.split_once("resumed>").context("a strange continuation")?;
                    unfinished.remove(thread).context("a continuation of nothing")? + end
                }
                None => rest.to_owned(),
            };
            let call = Call::parse(&whole).with_context(|| format!("cannot read: {:.300}", whole))?;
            // A continuation has the time of its end, other lines have that of their beginning.
            let begun: f64 = time.parse()?;
            let at = if rest.starts_with("<...") { begun } else { begun + call.duration };
            self.call(&call, at, &mut handles).with_context(|| format!("cannot follow: {:.300}", whole))?;
        }
        Ok(())
    }

    fn below(&self, path: &Path) -> bool {
        path.starts_with(&self.root) || Some(path) == self.root.parent()
    }

    fn push(&mut self, at: f64, act: Act) {
        self.events.push(Event { at, act });
    }

    fn resize(&mut self, at: f64, file: FileId, size: u64) {
        self.sizes[file] = size;
        self.contents[file].truncate(size as usize);
        self.push(at, Act::Resize(file, size));
    }

    fn write(&mut self, at: f64, file: FileId, offset: u64, bytes: Vec<u8>) {
        let end = offset as usize + bytes.len();
        let content = &mut self.contents[file];
        if content.len() < end {
            content.resize(end, 0);
        }
        content[offset as usize..end].copy_from_slice(&bytes);
        self.sizes[file] = self.sizes[file].max(end as u64);
        self.push(at, Act::Write(file, offset, bytes));
    }

    fn call(&mut self, call: &Call, at: f64, handles: &mut HashMap<u32, Handle>) -> Result<()> {
        let Ok(result) = u64::try_from(call.result) else { return Ok(()) };
        let path = |number: usize| {
            call.strings.get(number).map(|bytes| PathBuf::from(OsString::from_vec(bytes.clone())))
        };
        let first = path(0).unwrap_or_default();
        match call.name.as_str() {
            "openat" | "open" | "creat" => self.open(call, at, &first, result as u32, handles)?,
            "close" => self.close(call, handles)?,
            "mkdir" | "mkdirat" if self.below(&first) => self.push(at, Act::MakeDirectory(first)),
            "rename" | "renameat" | "renameat2" if self.below(&first) => {
                let to = path(1).context("no new name")?;
                if let Some(file) = self.names.remove(&first) {
                    self.names.insert(to.clone(), file);
                }
                self.push(at, Act::Rename(first, to));
            }
            "unlink" | "unlinkat" | "rmdir" if self.below(&first) => {
                self.names.remove(&first);
                self.push(at, Act::Remove(first));
            }
            "mkdir" | "mkdirat" | "rename" | "renameat" | "renameat2" | "unlink" | "unlinkat" | "rmdir" => {}
            _ => self.handle_call(call, at, result, handles)?,
        }
        Ok(())
    }

    fn open(
        &mut self,
        call: &Call,
        at: f64,
        path: &Path,
        number: u32,
        handles: &mut HashMap<u32, Handle>,
    ) -> Result<()> {
        if !path.starts_with(&self.root) {
            handles.remove(&number);
            return Ok(());
        }
        let writes = call.text.contains("O_WRONLY") || call.text.contains("O_RDWR");
        let file = match self.names.get(path) {
            Some(file) => *file,
            None if call.text.contains("O_CREAT") => {
                let file = self.sizes.len();
                self.sizes.push(0);
                self.contents.push(Vec::new());
                self.names.insert(path.to_owned(), file);
                self.push(at, Act::Create(path.to_owned(), file));
                file
            }
            // A directory, or a file that was there before.
            None => {
                ensure!(!writes, "a file without a creation is written to");
                handles.remove(&number);
                return Ok(());
            }
        };
        if call.text.contains("O_TRUNC") && self.sizes[file] > 0 {
            self.resize(at, file, 0);
        }
        handles.insert(number, Handle { file, position: 0, appends: call.text.contains("O_APPEND") });
        Ok(())
    }

    /// Another thread may have got the number for another file before the end of this call is recorded.
    fn close(&self, call: &Call, handles: &mut HashMap<u32, Handle>) -> Result<()> {
        let number = call.descriptor.context("no descriptor")?;
        let named = call.place.as_ref().and_then(|place| self.names.get(place));
        if handles.get(&number).is_some_and(|handle| named == Some(&handle.file)) {
            handles.remove(&number);
        }
        Ok(())
    }

    /// A call on an open file.
    fn handle_call(
        &mut self,
        call: &Call,
        at: f64,
        result: u64,
        handles: &mut HashMap<u32, Handle>,
    ) -> Result<()> {
        let number = call.descriptor.context("no descriptor")?;
        let place = call.place.clone().unwrap_or_default();
        if !self.below(&place) {
            return Ok(());
        }
        let Some(handle) = handles.get_mut(&number) else {
            match call.name.as_str() {
                "fsync" | "fdatasync" => self.push(at, Act::SyncDirectory(place)),
                "lseek" => {}
                other => bail!("{other} on {}", place.display()),
            }
            return Ok(());
        };
        let file = handle.file;
        if !place.to_string_lossy().ends_with("(deleted)") {
            ensure!(self.names.get(&place) == Some(&file), "another file than the one that was opened");
        }
        match call.name.as_str() {
            "fsync" | "fdatasync" => self.push(at, Act::SyncFile(file)),
            "lseek" => handle.position = result,
            "write" | "pwrite64" => {
                let mut bytes = call.strings.first().context("no bytes")?.clone();
                bytes.truncate(result as usize);
                ensure!(bytes.len() as u64 == result, "only a part of what was written is told");
                let offset = match (call.name.as_str(), handle.appends) {
                    ("pwrite64", _) => call.last_number()?,
                    (_, true) => self.sizes[file],
                    (_, false) => handle.position,
                };
                let end = offset + result;
                if call.name == "write" {
                    handle.position = end;
                }
                self.write(at, file, offset, bytes);
            }
            "copy_file_range" => {
                let (from, start) = (file, handle.position as usize);
                handle.position += result;
                let to = handles.get_mut(&call.third_descriptor()?).context("a copy to elsewhere")?;
                let (file, offset) = (to.file, to.position);
                to.position += result;
                let mut bytes = vec![0; result as usize];
                let read = self.contents[from].get(start..).unwrap_or_default();
                let read = &read[..read.len().min(bytes.len())];
                bytes[..read.len()].copy_from_slice(read);
                self.write(at, file, offset, bytes);
            }
            "ftruncate" => {
                let size = call.last_number()?;
                self.resize(at, file, size);
            }
            other => bail!("{other} on a file of the store"),
        }
        Ok(())
    }
}

/// One call, parsed.
struct Call {
    name: String,
    text: String,
    /// The first argument if it is a descriptor, and its path.
    descriptor: Option<u32>,
    place: Option<PathBuf>,
    strings: Vec<Vec<u8>>,
    arguments: String,
    result: i64,
    duration: f64,
}

impl Call {
    fn parse(line: &str) -> Result<Call> {
        let (name, rest) = line.split_once('(').context("no call")?;
        let (arguments, end) = rest.rsplit_once(") = ").or(rest.rsplit_once(")  = ")).context("no result")?;
        let arguments = arguments.trim_end();
        let result = end.split([' ', '<']).next().unwrap_or_default();
        let result = result.parse().unwrap_or(-1);
        let duration = end.rsplit_once('<').map_or("0", |(_, duration)| duration.trim_end_matches('>'));
        let digits: String = arguments.chars().take_while(char::is_ascii_digit).collect();
        let place = arguments[digits.len()..].strip_prefix('<').and_then(|rest| rest.split('>').next());
        let place = place.map(unescape).transpose()?.map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        let strings = arguments.split('"').skip(1).step_by(2).map(unescape).collect::<Result<_>>()?;
        let text = arguments.rsplit('"').next().unwrap_or_default().to_owned();
        let duration = duration.parse().unwrap_or(0.0);
        let arguments = if name == "copy_file_range" { arguments.to_owned() } else { String::new() };
        Ok(Call {
            name: name.to_owned(),
            arguments,
            text,
            descriptor: digits.parse().ok(),
            place,
            strings,
            result,
            duration,
        })
    }

    /// Returns the target of a copy.
    fn third_descriptor(&self) -> Result<u32> {
        let third = self.arguments.split(", ").nth(2).context("no third argument")?;
        let digits: String = third.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().context("no descriptor")
    }

    fn last_number(&self) -> Result<u64> {
        let last = self.text.rsplit(", ").next().unwrap_or_default();
        last.trim().parse().with_context(|| format!("'{last}' is no number"))
    }
}

/// `\x2f\x74` as bytes; a name may have a remark behind it.
fn unescape(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let [b'\\', b'x', high, low, more @ ..] = rest {
        let digit = |digit: u8| (digit as char).to_digit(16).context("no hexadecimal digit");
        bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
        rest = more;
    }
    ensure!(rest.is_empty() || rest.starts_with(b" ") || rest.starts_with(b"("), "cannot read '{text:.80}'");
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
    }

    #[test]
    fn a_recording_tells_files_offsets_and_order() {
        let (root, file, new) = (hex("/d"), hex("/d/a"), hex("/d/b"));
        let text = format!(
            "7 1.0 mkdir(\"{root}\", 0777) = 0 <0.1>\n\
             7 2.0 openat(AT_FDCWD<{root}>, \"{file}\", O_RDWR|O_CREAT|O_CLOEXEC, 0666) = 5<{file}> <0.1>\n\
             7 3.0 write(5<{file}>, \"\\x01\\x02\", 2) = 2 <0.1>\n\
             8 3.1 fdatasync(5<{file}> <unfinished ...>\n\
             7 3.5 write(5<{file}>, \"\\x03\", 1) = 1 <0.1>\n\
             8 4.0 <... fdatasync resumed>) = 0 <0.9>\n\
             7 5.0 ftruncate(5<{file}>, 8) = 0 <0.1>\n\
             7 5.1 write(1<{}>, \"\\x03\", 1) = 1 <0.1>\n\
             7 6.0 rename(\"{file}\", \"{new}\") = 0 <0.1>\n\
             7 7.0 unlink(\"{file}\") = -1 ENOENT (No such file or directory) <0.1>\n\
             7 8.0 openat(AT_FDCWD<{root}>, \"{root}\", O_RDONLY|O_CLOEXEC) = 6<{root}> <0.1>\n\
             7 8.1 fsync(6<{root}>) = 0 <0.25>\n\
             7 9.0 +++ exited with 0 +++\n",
            hex("/dev/null")
        );
        let mut recorder = Recorder::new(Path::new("/d"));
        recorder.add(&text).unwrap();
        let acts: Vec<Act> = recorder.events.iter().map(|event| event.act.clone()).collect();
        let path = |text: &str| PathBuf::from(text);
        let expected = [
            Act::MakeDirectory(path("/d")),
            Act::Create(path("/d/a"), 0),
            Act::Write(0, 0, vec![1, 2]),
            Act::Write(0, 2, vec![3]),
            Act::SyncFile(0),
            Act::Resize(0, 8),
            Act::Rename(path("/d/a"), path("/d/b")),
            Act::SyncDirectory(path("/d")),
        ];
        assert_eq!(acts, expected);
        assert!((recorder.events[7].at - 8.35).abs() < 1e-9, "the end of a call counts");
    }
}
