//! Encodes a snapshot as the bytes of a backup, piece by piece.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{BackupInfo, CRC_BYTES, DATA, END, FRAME_HEAD, HEAD, MAGIC, PIECE_BYTES, Sum, entry_head};
use crate::clock::{ClockRecord, RecordedSuspicion};
use crate::record::StoreRecord;
use crate::{ClockStatus, Direction, KeyRange, Keyspace, Result, Snapshot, Suspicion, Time};

/// A backup being written. It keeps its snapshot open until it is dropped, and with it everything removed since then: a
/// scrub (T24) waits for it.
pub struct Backup {
    snapshot: Arc<dyn Snapshot>,
    info: BackupInfo,
    stage: Stage,
    /// The hash over all bytes so far.
    hash: Sha256,
    sum: Sum,
}

enum Stage {
    Head,
    /// The next keyspace, and the last key written of it.
    Data(usize, Option<Bytes>),
    Done,
}

impl Backup {
    /// Creates a backup of a snapshot with this record, at a time for which the snapshot holds.
    pub(crate) fn new(snapshot: Arc<dyn Snapshot>, mut record: StoreRecord, clock: &ClockStatus) -> Self {
        let raw = |time: Time| time.minus_millis(clock.advanced_ms);
        let suspicion = |Suspicion { leap, .. }| RecordedSuspicion { leap, trusted: raw(clock.trusted) };
        // Without the boot, so that a restored store shows no time before that of the backup, and without the clock
        // offset that the operator accepted on this machine.
        record.clock = ClockRecord {
            bound: raw(clock.now),
            advanced_ms: clock.advanced_ms,
            suspicion: clock.suspect.map(suspicion),
            ..ClockRecord::default()
        };
        let info = BackupInfo::new(clock.now, record);
        Self { snapshot, info, stage: Stage::Head, hash: Sha256::new(), sum: Sum::default() }
    }

    /// Returns the description in the head.
    pub fn info(&self) -> &BackupInfo {
        &self.info
    }

    /// Returns the next bytes, or `None` after the last.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>> {
        let piece = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Head => {
                self.stage = Stage::Data(0, None);
                let payload =
                    [&self.info.time.millis().to_le_bytes()[..], &self.info.record().encode()].concat();
                [&MAGIC[..], &frame(HEAD, &payload)].concat()
            }
            Stage::Data(number, last) => self.data(number, last)?,
            Stage::Done => return Ok(None),
        };
        self.hash.update(&piece);
        Ok(Some(piece.into()))
    }

    /// Encodes the next entries of one keyspace, or the end frame if none are left.
    fn data(&mut self, mut number: usize, mut last: Option<Bytes>) -> Result<Vec<u8>> {
        while let Some(&keyspace) = Keyspace::ALL.get(number) {
            let mut payload = vec![keyspace.number() as u8];
            let range = match last.take() {
                Some(key) => KeyRange::all().after(key.to_vec()),
                None => KeyRange::all(),
            };
            let mut written = None;
            for entry in self.snapshot.scan(keyspace, range, Direction::Forward) {
                let (key, value) = entry?;
                self.sum.add(keyspace, &key, &value);
                payload.extend_from_slice(&entry_head(&key, &value));
                payload.extend_from_slice(&key);
                payload.extend_from_slice(&value);
                written = Some(key);
                if payload.len() >= PIECE_BYTES {
                    break;
                }
            }
            if written.is_some() {
                self.stage = Stage::Data(number, written);
                return Ok(frame(DATA, &payload));
            }
            number += 1;
        }
        Ok(self.end())
    }

    fn end(&self) -> Vec<u8> {
        let mut payload = vec![Keyspace::ALL.len() as u8];
        for entries in self.sum.entries {
            payload.extend_from_slice(&entries.to_le_bytes());
        }
        payload.extend_from_slice(&self.hash.clone().finalize());
        frame(END, &payload)
    }
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FRAME_HEAD + payload.len() + CRC_BYTES);
    bytes.push(kind);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(payload);
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}
