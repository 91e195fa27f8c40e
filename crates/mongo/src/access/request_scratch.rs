//! Scratch files of one request, which the engine may remove: they hold copies of documents, and a collection may have a
//! `maxPurgeDelay` (T24).
//!
//! Only [`PipelineCursor`](super::pipeline_cursor::PipelineCursor) gives a pipeline a place for scratch files, and only this one,
//! so the engine knows every scratch file.

use std::sync::Arc;

use engine::collection::Collection;
use engine::{DiskCopy, Engine};
use mql::{Code, Error, Result, Scratch, ScratchFile};
use parking_lot::Mutex;
use storage::Time;

/// Makes the scratch files of a request.
pub(super) struct RequestScratch {
    pub(super) files: Arc<dyn Scratch>,
    pub(super) engine: Arc<Engine>,
    /// What the request reads.
    pub(super) collections: Vec<Arc<Collection>>,
    /// When the snapshot was taken that it reads.
    pub(super) as_of: Time,
}

impl Scratch for RequestScratch {
    fn create(&self) -> Result<Box<dyn ScratchFile>> {
        let file = Arc::new(Mutex::new(Some(self.files.create()?)));
        let removable = Arc::clone(&file);
        let remove = move || drop(removable.lock().take());
        let copy = self.engine.note_copy(&self.collections, self.as_of, remove);
        Ok(Box::new(RemovableFile { file, _copy: copy }))
    }
}

impl std::fmt::Debug for RequestScratch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RequestScratch").field("as_of", &self.as_of).finish_non_exhaustive()
    }
}

/// A file that exists until its owner drops it or the engine removes it.
struct RemovableFile {
    file: Arc<Mutex<Option<Box<dyn ScratchFile>>>>,
    _copy: DiskCopy,
}

impl ScratchFile for RemovableFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.lock().as_mut().ok_or_else(removed)?.append(bytes)
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.lock().as_mut().ok_or_else(removed)?.read_at(offset, buffer)
    }
}

fn removed() -> Error {
    let text = "the query sorted or grouped its rows on disk, and they were removed there because a collection that it reads has a \
                maxPurgeDelay; run it again, with an index that serves the sort or a larger mongo-stage-memory";
    Error::new(Code::QUERY_PLAN_KILLED, text)
}
