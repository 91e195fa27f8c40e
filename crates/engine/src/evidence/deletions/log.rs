//! A deletion log and its head.

use sha2::{Digest, Sha256};
use storage::{Read, Transaction};

use super::verify::{HASH_MEMBER, NO_HASH};
use crate::evidence::expiry_record::hex;
use crate::keys::{Key, PartitionId};
use crate::types::error::{Error, Result};

/// The head of a log: the state of its end, and the data about the log as a whole.
///
/// ```text
///   entries u64, number of the entry that has the rules in force u64, hash of the last entry 32 bytes,
///   1 if entries are still added else 0 u8, length of the database's name u16, that name, the container's name to the end
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) count: u64,
    /// The entry that has the rules in force.
    pub(super) rules: u64,
    pub(super) hash: [u8; 32],
    /// Whether entries are still added.
    pub(super) is_open: bool,
    pub(super) database: String,
    pub(super) container: String,
}

impl Head {
    pub(super) fn load(reader: &(impl Read + ?Sized), partition: PartitionId) -> Result<Option<Head>> {
        let (keyspace, key) = Key::DeletionHead(partition).encode();
        reader.get(keyspace, &key)?.map(|value| Head::decode(&value)).transpose()
    }

    /// Returns the hash of the last entry as lines write it.
    pub(super) fn hash_text(&self) -> String {
        if self.count == 0 { NO_HASH.to_owned() } else { hex(&self.hash) }
    }

    /// Appends one more entry and writes the head. `members` are those of the event, each with a comma before it.
    pub(super) fn append(
        &mut self,
        tx: &mut Transaction<'_>,
        partition: PartitionId,
        event: &str,
        members: &str,
    ) {
        let (log, number, previous) = (partition.0, self.count + 1, self.hash_text());
        let time = bson::format_date(i64::try_from(tx.trusted_time().millis()).unwrap_or(i64::MAX));
        let mut line = format!(
            r#"{{"log":{log},"n":{number},"previous":"{previous}","time":"{time}","event":"{event}"{members}"#
        );
        self.hash = Sha256::digest(line.as_bytes()).into();
        self.count = number;
        line.push_str(HASH_MEMBER);
        line.push_str(&hex(&self.hash));
        line.push_str("\"}");
        let (keyspace, key) = Key::Deletion(partition, number).encode();
        tx.put(keyspace, key, line.into_bytes());
        let (keyspace, key) = Key::DeletionHead(partition).encode();
        tx.put(keyspace, key, self.encode());
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(51 + self.database.len() + self.container.len());
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(&self.rules.to_be_bytes());
        out.extend_from_slice(&self.hash);
        out.push(u8::from(self.is_open));
        let length = u16::try_from(self.database.len()).expect("a name is short");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(self.database.as_bytes());
        out.extend_from_slice(self.container.as_bytes());
        out
    }

    pub(super) fn decode(value: &[u8]) -> Result<Head> {
        let parse = || {
            let (count, rest) = value.split_first_chunk()?;
            let (rules, rest) = rest.split_first_chunk()?;
            let (hash, rest) = rest.split_first_chunk()?;
            let (open, rest) = rest.split_first()?;
            let (length, rest) = rest.split_first_chunk()?;
            let (database, container) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            (*open < 2).then_some(Head {
                count: u64::from_be_bytes(*count),
                rules: u64::from_be_bytes(*rules),
                hash: *hash,
                is_open: *open == 1,
                database: str::from_utf8(database).ok()?.to_owned(),
                container: str::from_utf8(container).ok()?.to_owned(),
            })
        };
        parse().ok_or_else(|| Error::Corrupt("the head of a deletion record".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_back_and_a_cut_one_is_damage() {
        let (database, container) = ("db".to_owned(), String::new());
        let head = Head { count: 3, rules: 1, hash: [7; 32], is_open: true, database, container };
        let bytes = head.encode();
        assert_eq!(Head::decode(&bytes), Ok(head));
        for length in 0..bytes.len() {
            assert!(Head::decode(&bytes[..length]).is_err(), "cut at {length}");
        }
    }
}
