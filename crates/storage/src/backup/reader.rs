//! Reads and verifies a backup.

use std::io::{self, Read as _};

use bytes::{Buf, Bytes};
use sha2::{Digest, Sha256};

use super::{BackupInfo, CRC_BYTES, Contents, DATA, END, FRAME_HEAD, FRAME_MAX, HEAD, MAGIC, Sum};
use crate::record::StoreRecord;
use crate::{Error, Keyspace, MAX_VALUE_BYTES, Result, Time};

/// A reader of a backup. Every entry it returns is verified; that the backup is complete is known only at its end.
pub struct BackupReader<R> {
    source: R,
    info: BackupInfo,
    /// The offset of the next frame.
    at: u64,
    hash: Sha256,
    sum: Sum,
    /// The rest of the current frame.
    frame: Option<(Keyspace, Bytes)>,
    /// The last key returned.
    last: Option<(Keyspace, Bytes)>,
    /// Set once everything has been read.
    contents: Option<Contents>,
}

impl<R: io::Read> BackupReader<R> {
    /// Reads the head of a backup.
    pub fn open(mut source: R) -> Result<Self> {
        let mut magic = [0; MAGIC.len()];
        read_exactly(&mut source, &mut magic, 0)?;
        if magic != *MAGIC {
            return Err(wrong(0, "it is not a backup, or from another version of Bolide"));
        }
        let mut reader = Self {
            source,
            info: BackupInfo::new(Time::ZERO, StoreRecord::default()),
            at: MAGIC.len() as u64,
            hash: Sha256::new_with_prefix(magic),
            sum: Sum::default(),
            frame: None,
            last: None,
            contents: None,
        };
        let start = reader.at;
        let (kind, mut payload) = reader.next_frame()?;
        if kind != HEAD || payload.len() < 8 {
            return Err(wrong(start, "it has no head frame"));
        }
        let time = Time::from_millis(payload.get_u64_le());
        reader.info = BackupInfo::new(time, StoreRecord::decode(&payload)?);
        Ok(reader)
    }

    /// Returns the description in the head.
    pub fn info(&self) -> &BackupInfo {
        &self.info
    }

    /// Returns the number of bytes read so far.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Returns the next entry, or `None` after the last one, once the end frame has confirmed all of them.
    pub fn next_entry(&mut self) -> Result<Option<(Keyspace, Bytes, Bytes)>> {
        loop {
            if self.contents.is_some() {
                return Ok(None);
            }
            if let Some((keyspace, rest)) = self.frame.take().filter(|(_, rest)| !rest.is_empty()) {
                return self.entry(keyspace, rest).map(Some);
            }
            let start = self.at;
            let before = self.hash.clone();
            let (kind, mut payload) = self.next_frame()?;
            match kind {
                DATA => {
                    let keyspace = payload.try_get_u8().ok().and_then(|n| Keyspace::ALL.get(usize::from(n)));
                    let keyspace = keyspace.ok_or_else(|| wrong(start, "it names an unknown keyspace"))?;
                    self.frame = Some((*keyspace, payload));
                }
                END => self.end(start, before, &payload)?,
                _ => return Err(wrong(start, "a frame of unknown kind")),
            }
        }
    }

    /// Returns what the backup holds, or `None` before all of it has been read.
    pub fn contents(&self) -> Option<&Contents> {
        self.contents.as_ref()
    }

    fn entry(&mut self, keyspace: Keyspace, mut rest: Bytes) -> Result<(Keyspace, Bytes, Bytes)> {
        let start = self.at;
        let cut = || wrong(start, "an entry does not fit into its frame");
        let (key, value) = match (rest.try_get_u16_le(), rest.try_get_u32_le()) {
            (Ok(key), Ok(value)) => (usize::from(key), value as usize),
            _ => return Err(cut()),
        };
        if key == 0 || value > MAX_VALUE_BYTES || rest.len() < key + value {
            return Err(cut());
        }
        let (key, value) = (rest.split_to(key), rest.split_to(value));
        let is_behind = self.last.as_ref().is_none_or(|(known, last)| {
            known.number() < keyspace.number() || (*known == keyspace && *last < key)
        });
        if !is_behind {
            return Err(wrong(start, "entries are not in order"));
        }
        self.sum.add(keyspace, &key, &value);
        self.last = Some((keyspace, key.clone()));
        self.frame = Some((keyspace, rest));
        Ok((keyspace, key, value))
    }

    /// Checks the end frame: everything was read, and nothing follows.
    fn end(&mut self, start: u64, before: Sha256, payload: &[u8]) -> Result<()> {
        let contents = std::mem::take(&mut self.sum).finish();
        let mut expected = vec![Keyspace::ALL.len() as u8];
        for entries in contents.entries {
            expected.extend_from_slice(&entries.to_le_bytes());
        }
        let hash: [u8; 32] = before.finalize().into();
        expected.extend_from_slice(&hash);
        if payload != expected {
            return Err(wrong(start, "its end frame does not match its contents"));
        }
        let mut more = [0];
        let follows = self.source.read(&mut more).map_err(|error| Error::io("read the backup", &error))?;
        if follows > 0 {
            return Err(wrong(self.at, "data follows its end"));
        }
        self.contents = Some(contents);
        Ok(())
    }

    fn next_frame(&mut self) -> Result<(u8, Bytes)> {
        let start = self.at;
        let mut head = [0; FRAME_HEAD];
        read_exactly(&mut self.source, &mut head, start)?;
        let [kind, l0, l1, l2, l3] = head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if length > FRAME_MAX {
            return Err(wrong(start, "a frame exceeds the maximum length"));
        }
        // Allocate for the bytes that arrive, not for the length announced.
        let mut payload = Vec::new();
        let wanted = (length + CRC_BYTES) as u64;
        let read = io::Read::take(&mut self.source, wanted).read_to_end(&mut payload);
        read.map_err(|error| Error::io("read the backup", &error))?;
        if (payload.len() as u64) < wanted {
            return Err(ends_early(start));
        }
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        crc.update(&payload[..length]);
        if crc.finalize().to_le_bytes() != payload[length..] {
            return Err(wrong(start, "a checksum does not match"));
        }
        self.hash.update(head);
        self.hash.update(&payload);
        self.at = start + FRAME_HEAD as u64 + wanted;
        payload.truncate(length);
        Ok((kind, payload.into()))
    }
}

fn read_exactly(source: &mut impl io::Read, buffer: &mut [u8], at: u64) -> Result<()> {
    source.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ends_early(at),
        _ => Error::io("read the backup", &error),
    })
}

fn ends_early(at: u64) -> Error {
    wrong(at, "it ends in the middle of what begins here")
}

fn wrong(at: u64, what: &str) -> Error {
    Error::Backup { at, what: what.to_owned() }
}
